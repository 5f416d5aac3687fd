#include "sim/jitter.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "runtime/executor.h"
#include "sim/child_process.h"
#include "sim/simgrid_backend.h"

namespace tandem {
namespace {

/// What a random number is for.
enum Purpose : std::uint64_t {
  of_kernel,
  of_rank,
  of_communication,
  of_peers
};

}  // namespace

double lognormal(double coefficient, double z) {
  if (coefficient == 0) return 1;
  const double variance = std::log1p(coefficient * coefficient);
  return std::exp(std::sqrt(variance) * z - variance / 2);
}

double JitterDraw::kernel(std::uint32_t world_rank, TaskId task) const {
  return lognormal(variation_.kernel, key_.with(of_kernel).with(world_rank).with(task).normal());
}

double JitterDraw::rank(std::uint32_t world_rank) const {
  return lognormal(variation_.rank, key_.with(of_rank).with(world_rank).normal());
}

double JitterDraw::communication(std::uint32_t world_rank, TaskId task) const {
  return lognormal(variation_.communication, key_.with(of_communication).with(world_rank).with(task).normal());
}

RandomKey JitterDraw::peers(std::uint32_t world_rank, CommunicatorId communicator) const {
  return key_.with(of_peers).with(world_rank).with(communicator);
}

std::vector<Seconds> drawn_makespans(const Dag& dag, const Variation& variation, std::uint64_t seed, std::size_t draws,
                                     std::size_t jobs, const std::function<void(std::size_t)>& ended) {
  SharedDoubles results(draws);
  const std::span<double> makespan = results.values();
  std::deque<ChildProcess> running;
  std::size_t done = 0;
  const auto wait_for_first = [&] {
    running.front().wait();  // all take about as long: it is the next to end, or nearly
    running.pop_front();
    if (++done; ended) ended(done);
  };
  for (std::size_t draw = 0; draw < draws; ++draw) {
    if (running.size() >= std::max<std::size_t>(1, jobs)) wait_for_first();
    running.emplace_back([&, draw] {
      SimGridBackend backend(Collectives::fluid, {}, JitterDraw(variation, seed, draw));
      execute(dag, backend);
      makespan[draw] = backend.end_of_step();
    });
  }
  while (!running.empty()) wait_for_first();
  return {makespan.begin(), makespan.end()};
}

Seconds percentile(std::span<const Seconds> times, double p) {
  std::vector<Seconds> sorted(times.begin(), times.end());
  std::ranges::sort(sorted);
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace tandem
