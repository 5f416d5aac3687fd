#include "studies/step/jitter_times.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "runtime/base/stopwatch.h"

namespace tandem::studies {
Variation variation_of(const JitterSpec& jitter) {
  return {.kernel = jitter.kernel, .rank = jitter.rank, .communication = jitter.communication};
}

std::size_t draws_at_a_time(const StepResult& step) {
  const Bytes available = static_cast<Bytes>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const Bytes affordable = std::max<Bytes>(1, available / std::max<Bytes>(1, step.run.peak_rss));
  return std::min<std::size_t>(std::max(1U, std::thread::hardware_concurrency()), static_cast<std::size_t>(affordable));
}

std::optional<JitterTimes> draw_jitter(const Scenario& scenario, const SimulatedStep& step, Collectives collectives,
                                       Progress* progress) {
  const JitterSpec& jitter = scenario.jitter;
  if (!jitter.enabled()) return std::nullopt;
  const Stopwatch stopwatch;
  const auto draws = static_cast<std::size_t>(jitter.draws);
  const auto show = shown_in(progress, "drawing");
  const auto ended = [&](std::size_t count) {
    if (show) show(static_cast<double>(count) / static_cast<double>(draws));
  };
  std::vector<Seconds> times = drawn_makespans(step.dag, variation_of(jitter),
                                               {.seed = jitter.seed,
                                                .count = draws,
                                                .jobs = draws_at_a_time(step.result),
                                                .ended = ended,
                                                .undisturbed = collectives == Collectives::fluid ? &step.timeline : nullptr});
  for (Seconds& time : times) time /= step.dag.info.steps;
  return JitterTimes{.draws = draws,
                     .p50 = percentile(times, 0.5),
                     .p90 = percentile(times, 0.9),
                     .p99 = percentile(times, 0.99),
                     .mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(draws),
                     .wall = stopwatch.elapsed()};
}

}  // namespace tandem::studies
