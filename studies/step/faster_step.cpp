#include "studies/step/faster_step.h"

#include <algorithm>
#include <array>

#include "sim/child_process.h"
#include "sim/simulate.h"
#include "studies/step/folded_time.h"

namespace tandem::studies {
namespace {

/// Some of the speedups, and where they stand among all.
struct Part {
  std::vector<std::size_t> places;
  std::vector<Speedup> speedups;
};

/// Those that make no link faster, and those that do.
std::array<Part, 2> parts_by_links(std::span<const Speedup> speedups) {
  std::array<Part, 2> parts;
  for (std::size_t i = 0; i < speedups.size(); ++i) {
    Part& part = parts[speedups[i].widens_links() ? 1 : 0];
    part.places.push_back(i);
    part.speedups.push_back(speedups[i]);
  }
  return parts;
}

std::vector<Seconds> with_faster_links(const Scenario& scenario, const World& world, std::span<const Speedup> speedups,
                                       std::size_t jobs) {
  WorldOptions by_every_link = world.options;
  by_every_link.by_every_link = true;
  return makespans_folded_in_time(scenario, make_world(scenario, true, by_every_link), {}, speedups, jobs);
}

}  // namespace

std::vector<Seconds> faster_step_times(const Scenario& scenario, const FreshStep& step, std::span<const Speedup> speedups,
                                       std::size_t jobs) {
  if (step.collectives == Collectives::steps) return sim::makespans(step.dag, speedups, jobs, Collectives::steps);
  if (!step.folded) return sim::makespans(step.dag, speedups, jobs);
  const auto as_folded = [&](std::span<const Speedup> some, std::size_t at_once) {
    return makespans_folded_in_time(scenario, step.world, {&step.dag, step.timeline.repeat}, some, at_once);
  };
  const std::array<Part, 2> parts = parts_by_links(speedups);
  const auto& [others, of_links] = parts;
  if (step.world.options.by_every_link || of_links.places.empty()) return as_folded(speedups, jobs);

  const std::size_t jobs_of_links = std::max<std::size_t>(1, jobs * of_links.places.size() / speedups.size());
  const std::size_t jobs_of_others = std::max(jobs, jobs_of_links + 1) - jobs_of_links;
  sim::SharedDoubles times(speedups.size());
  sim::run_in_children(parts.size(), std::min(jobs, parts.size()), [&](std::size_t number) {
    const Part& part = parts[number];
    const std::vector<Seconds> found = &part == &of_links ? with_faster_links(scenario, step.world, part.speedups, jobs_of_links)
                                                          : as_folded(part.speedups, jobs_of_others);
    for (std::size_t i = 0; i < found.size(); ++i) times.values()[part.places[i]] = found[i];
  });
  return {times.values().begin(), times.values().end()};
}

}  // namespace tandem::studies
