#include "sim/jitter.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

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

/// Draws that one process makes, one after the other: neither the process nor its memory need be made anew for each. Their last
/// digits depend on those before, so it is as many whatever is done at a time.
constexpr std::size_t draws_of_child = 4;

struct Drawing {
  const Dag& dag;
  const Variation& variation;
  std::uint64_t seed;
  const StepOrder& order;
  StepCosts& costs;
  const ArrivalPilots* pilots;
  std::size_t jobs;
};
using Measure = std::function<void(std::size_t number, const SimGridBackend&, const Timeline&)>;

/// Makes the draws from `first` on, so many, and has the children measure each by its number, which starts at 0. `ended` is told
/// in the parent how many have ended, child by child in their order, and of a child's before the one that is later by `jobs`
/// begins.
void draw_in_children(const Drawing& drawing, std::uint64_t first, std::size_t count, const Measure& measure,
                      const std::function<void(std::size_t)>& ended) {
  const auto work = [&](std::size_t child) {
    std::unique_ptr<FluidNetwork> network;
    for (std::size_t number = child * draws_of_child; number < std::min(count, (child + 1) * draws_of_child); ++number) {
      const JitterDraw random(drawing.variation, drawing.seed, first + number);
      SimGridBackend backend(Collectives::fluid, {}, random, drawing.pilots,
                             {.order = &drawing.order, .costs = &drawing.costs, .network = &network});
      measure(number, backend, execute(drawing.dag, backend));
    }
  };
  open_simgrid();
  run_in_children((count + draws_of_child - 1) / draws_of_child, drawing.jobs, work,
                  [&](std::size_t child) { ended(std::min(count, (child + 1) * draws_of_child)); });
}

/// The sums of values, and of their squares.
struct Sums {
  double count = 0, values = 0, squares = 0;

  void add(const Sums& other) {
    count += other.count;
    values += other.values;
    squares += other.squares;
  }
};

/// Gives the pilots the moments of the sums.
void set_moments(ArrivalPilots& pilots, const std::vector<Sums>& sums) {
  pilots.excess.clear();
  for (const Sums& sum : sums) {
    const double mean = sum.count > 0 ? sum.values / sum.count : 0;
    const double variance = sum.count > 1 ? (sum.squares - sum.count * mean * mean) / (sum.count - 1) : 0;
    pilots.excess.push_back({mean, std::max(0.0, variance)});
  }
}

ArrivalPilots draw_pilots(const Drawing& drawing, Timeline undisturbed) {
  constexpr std::uint64_t first_pilot = std::uint64_t{1} << 32;  // no draw of the caller's
  ArrivalPilots pilots{.plan = ArrivalPlan(drawing.dag), .undisturbed = std::move(undisturbed), .excess = {}, .are_wanted = true};
  const std::size_t arrivals = pilots.plan.first_arrival.back();
  const std::size_t lanes = std::max<std::size_t>(1, drawing.jobs);
  Shared<Sums> shared(lanes * arrivals);
  const auto of_child = [&](std::size_t child) { return shared.values().subspan(child % lanes * arrivals, arrivals); };
  const auto measure = [&](std::size_t number, const SimGridBackend& backend, const Timeline&) {
    const std::span<Sums> of_these = of_child(number / draws_of_child);
    if (number % draws_of_child == 0) std::ranges::fill(of_these, Sums{});
    const std::vector<double>& excesses = backend.arrival_excesses();
    for (std::size_t i = 0; i < arrivals; ++i)
      if (!std::isnan(excesses[i])) of_these[i].add({1, excesses[i], excesses[i] * excesses[i]});
  };
  std::vector<Sums> sums(arrivals);
  const auto add_up = [&](std::size_t ended) {
    const std::span<const Sums> of_these = of_child((ended - 1) / draws_of_child);
    for (std::size_t i = 0; i < arrivals; ++i) sums[i].add(of_these[i]);
  };
  Drawing drawing_pilots = drawing;
  drawing_pilots.pilots = &pilots;
  for (std::size_t round = 0; round < pilot_rounds; ++round) {
    draw_in_children(drawing_pilots, first_pilot + round * pilots_of_round, pilots_of_round, measure, add_up);
    set_moments(pilots, sums);
  }
  pilots.are_wanted = false;
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

/// Draws steps and returns `width` values of each, which `measure` writes.
std::vector<Seconds> drawn(const Dag& dag, const Variation& variation, const Draws& draws, std::size_t width,
                           const std::function<void(const SimGridBackend&, const Timeline&, std::span<double>)>& measure) {
  const StepOrder order(dag);
  StepCosts costs(dag);
  Drawing drawing{dag, variation, draws.seed, order, costs, nullptr, draws.jobs};
  std::optional<ArrivalPilots> pilots;
  if (std::ranges::any_of(dag.ranks, [](const Rank& rank) { return rank.count > 1; }))
    drawing.pilots = &pilots.emplace(draw_pilots(drawing, draws.undisturbed ? *draws.undisturbed : simulate(dag).timeline));
  SharedDoubles results(draws.count * width);
  const std::span<double> values = results.values();
  const auto measure_one = [&](std::size_t number, const SimGridBackend& backend, const Timeline& timeline) {
    measure(backend, timeline, values.subspan(number * width, width));
  };
  draw_in_children(drawing, 0, draws.count, measure_one, [&](std::size_t ended) {
    if (draws.ended) draws.ended(ended);
  });
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<Seconds> drawn_makespans(const Dag& dag, const Variation& variation, const Draws& draws) {
  return drawn(dag, variation, draws, 1,
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
