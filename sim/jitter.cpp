#include "sim/jitter.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/executor.h"
#include "sim/arrival_plan.h"
#include "sim/child_process.h"
#include "sim/simgrid_backend.h"

namespace tandem::sim {
namespace {

/// What a random number decides.
enum Drawn : std::uint64_t {
  of_kernel,
  of_rank,
  of_communication,
  of_peers
};

/// The sums of the values that were not NaN, and of their squares.
struct Sums {
  double count = 0, values = 0, squares = 0;
};

ArrivalPilots draw_pilots(const Dag& dag, StepCosts& costs, const Variation& variation, std::uint64_t seed, std::size_t jobs) {
  constexpr std::uint64_t first_pilot = std::uint64_t{1} << 32;  // no draw of the caller's
  ArrivalPilots pilots{.plan = ArrivalPlan(dag), .undisturbed = simulate(dag).timeline};
  const std::size_t arrivals = pilots.plan.first_arrival.back();
  const std::size_t lanes = std::max<std::size_t>(1, jobs);
  SharedDoubles shared(lanes * arrivals);
  const auto of_pilot = [&](std::size_t number) { return shared.values().subspan(number % lanes * arrivals, arrivals); };
  std::vector<Sums> sums(arrivals);
  const auto draw = [&](std::size_t number) {
    SimGridBackend backend(Collectives::fluid, {}, JitterDraw(variation, seed, first_pilot + number), &pilots, &costs);
    execute(dag, backend);
    std::ranges::copy(backend.arrival_excesses(), of_pilot(number).begin());
  };
  run_in_children(pilot_draws, jobs, draw, [&](std::size_t number) {
    const std::span<const double> excesses = of_pilot(number);
    for (std::size_t i = 0; i < arrivals; ++i) {
      if (std::isnan(excesses[i])) continue;
      ++sums[i].count;
      sums[i].values += excesses[i];
      sums[i].squares += excesses[i] * excesses[i];
    }
  });
  for (const Sums& sum : sums) {
    const double mean = sum.count > 0 ? sum.values / sum.count : 0;
    const double variance = sum.count > 1 ? (sum.squares - sum.count * mean * mean) / (sum.count - 1) : 0;
    pilots.excess.push_back({mean, std::max(0.0, variance)});
  }
  return pilots;
}

}  // namespace

JitterDraw::JitterDraw(const Variation& variation, std::uint64_t seed, std::uint64_t draw)
    : variation_(variation),
      key_{seed, draw},
      kernels_(key_.with(of_kernel)),
      communication_(key_.with(of_communication)),
      kernel_factor_(variation.kernel),
      communication_factor_(variation.communication) {}

double JitterDraw::kernel(std::uint32_t world_rank, TaskId task) const {
  return variation_.kernel == 0 ? 1 : kernel_factor_(kernels_.with(world_rank).with(task).normal());
}

double JitterDraw::rank(std::uint32_t world_rank) const {
  return lognormal(variation_.rank, key_.with(of_rank).with(world_rank).normal());
}

double JitterDraw::communication(std::uint32_t world_rank, TaskId task) const {
  return variation_.communication == 0 ? 1 : communication_factor_(communication_.with(world_rank).with(task).normal());
}

RandomKey JitterDraw::peers(std::uint32_t world_rank, CommunicatorId communicator) const {
  return key_.with(of_peers).with(world_rank).with(communicator);
}

namespace {

/// Draws steps, each in a child of its own, and returns `width` values of each, which `measure` writes.
std::vector<Seconds> drawn(const Dag& dag, const Variation& variation, const Draws& draws, std::size_t width,
                           const std::function<void(const SimGridBackend&, const Timeline&, std::span<double>)>& measure) {
  StepCosts costs(dag);
  std::optional<ArrivalPilots> pilots;
  if (std::ranges::any_of(dag.ranks, [](const Rank& rank) { return rank.count > 1; }))
    pilots = draw_pilots(dag, costs, variation, draws.seed, draws.jobs);
  SharedDoubles results(draws.count * width);
  const std::span<double> values = results.values();
  const auto draw = [&](std::size_t number) {
    SimGridBackend backend(Collectives::fluid, {}, JitterDraw(variation, draws.seed, number), pilots ? &*pilots : nullptr,
                           &costs);
    const Timeline timeline = execute(dag, backend);
    measure(backend, timeline, values.subspan(number * width, width));
  };
  run_in_children(draws.count, draws.jobs, draw, [&](std::size_t number) {
    if (draws.ended) draws.ended(number + 1);
  });
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<Seconds> drawn_makespans(const Dag& dag, const Variation& variation, std::uint64_t seed, std::size_t draws,
                                     std::size_t jobs, const std::function<void(std::size_t)>& ended) {
  return drawn(dag, variation, {.seed = seed, .count = draws, .jobs = jobs, .ended = ended}, 1,
               [](const SimGridBackend& backend, const Timeline&, std::span<double> end) { end[0] = backend.end_of_step(); });
}

std::vector<Seconds> ends_of_ranks(const Dag& dag, const Timeline& timeline) {
  std::vector<Seconds> ends(dag.ranks.size(), 0);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    Seconds& end = ends[dag.tasks[id].rank];
    end = std::max(end, timeline.end[id]);
  }
  return ends;
}

std::vector<std::vector<Seconds>> drawn_ends(const Dag& dag, const Variation& variation, const Draws& draws) {
  const std::size_t ranks = dag.ranks.size();
  const std::vector<Seconds> values =
      drawn(dag, variation, draws, ranks, [&](const SimGridBackend&, const Timeline& timeline, std::span<double> ends) {
        std::ranges::copy(ends_of_ranks(dag, timeline), ends.begin());
      });
  std::vector<std::vector<Seconds>> by_draw;
  for (std::size_t first = 0; first < values.size(); first += ranks)
    by_draw.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(first),
                         values.begin() + static_cast<std::ptrdiff_t>(first + ranks));
  return by_draw;
}

Seconds percentile(std::span<const Seconds> times, double p) {
  std::vector<Seconds> sorted(times.begin(), times.end());
  std::ranges::sort(sorted);
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace tandem::sim
