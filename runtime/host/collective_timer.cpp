#include "runtime/host/collective_timer.h"

#include <algorithm>

#include "runtime/base/stopwatch.h"
#include "runtime/contents/initial_values.h"
#include "runtime/executor.h"
#include "runtime/host/backend.h"

namespace tandem {
namespace {

MachineRanks one_machine(std::int32_t ranks) {
  MachineRanks machines(1);
  for (std::int32_t rank = 0; rank < ranks; ++rank) machines.front().push_back(static_cast<std::uint32_t>(rank));
  return machines;
}

Timing time(const MeasuredCollective& collective, Seconds budget) {
  const Stopwatch stopwatch;
  const CollectiveLadder ladder = make_collective_ladder({&collective, 1}, one_machine(collective.members), DType::f32);
  HostMemory memory(ladder.dag, data_seed);
  std::vector<Seconds> samples;
  do {
    const std::vector<Seconds> found = samples_of(ladder, execute(ladder.dag, *make_host_backend(memory))).front();
    samples.insert(samples.end(), found.begin(), found.end());
  } while (stopwatch.elapsed() < budget);
  return timing_of(std::move(samples));
}

}  // namespace

std::vector<MeasuredCollective> collectives_worth_measuring_on_host() {
  constexpr std::int32_t most_ranks = 8;
  constexpr LadderSizes sizes{.smallest = 1 << 12, .largest = 1 << 24, .factor = 16};
  std::vector<MeasuredCollective> collectives = collectives_worth_measuring(one_machine(most_ranks), sizes);
  std::ranges::stable_sort(collectives, {}, &MeasuredCollective::bytes);
  return collectives;
}

void time_on_host(std::span<MeasuredCollective> collectives, Seconds budget, const CollectiveProgress& progress) {
  const Stopwatch stopwatch;
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    const Seconds left = budget - stopwatch.elapsed();
    if (i > 0 && left <= 0) return;
    if (progress) progress(collectives[i]);
    collectives[i].timing = time(collectives[i], left / static_cast<double>(collectives.size() - i));
  }
}

}  // namespace tandem
