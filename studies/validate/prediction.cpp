#include "studies/validate/prediction.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ranges>

namespace tandem::studies {
namespace {

/// Takes away those for which `drop` holds, unless that leaves none.
template <typename Drop>
void drop_unless_all(std::vector<SimulatedRun>& runs, const Drop& drop) {
  if (!std::ranges::all_of(runs, drop)) std::erase_if(runs, drop);
}

/// Every how manyth layer is recomputed.
std::int64_t recompute_every(const SimulatedRun& run) {
  const auto found = std::ranges::find(run.assumed, "recompute_every", &Assumptions::value_type::first);
  return found == run.assumed.end() ? 1 : std::stoll(found->second);
}

/// Of sorted runs.
Seconds median_time(const std::vector<SimulatedRun>& runs) {
  const std::size_t middle = runs.size() / 2;
  return runs.size() % 2 == 1 ? runs[middle].step_time() : (runs[middle - 1].step_time() + runs[middle].step_time()) / 2;
}

/// "zero 1|2, micro_batch 1|2|4"
std::string assumption_text(const std::vector<SimulatedRun>& runs) {
  std::string text;
  for (std::size_t i = 0; i < runs.front().assumed.size(); ++i) {
    std::vector<std::string> values;
    for (const SimulatedRun& run : runs) values.push_back(run.assumed[i].second);
    std::ranges::sort(values);
    const auto repeated = std::ranges::unique(values);
    values.erase(repeated.begin(), repeated.end());
    text += (text.empty() ? "" : ", ") + fmt::format("{} {}", runs.front().assumed[i].first, fmt::join(values, "|"));
  }
  return text;
}

}  // namespace

Prediction predict(std::vector<SimulatedRun> runs) {
  Prediction prediction;
  prediction.fits = std::ranges::any_of(runs, &SimulatedRun::fits);
  drop_unless_all(runs, [](const SimulatedRun& run) { return !run.fits(); });
  drop_unless_all(runs, [](const SimulatedRun& run) { return run.to_fit; });
  const std::int64_t least_recomputed = std::ranges::max(runs | std::views::transform(recompute_every));
  if (prediction.fits) std::erase_if(runs, [&](const SimulatedRun& run) { return recompute_every(run) < least_recomputed; });
  std::ranges::sort(runs, {}, &SimulatedRun::step_time);
  prediction.step_time = median_time(runs);
  prediction.typical = *std::ranges::min_element(
      runs, {}, [&](const SimulatedRun& run) { return std::abs(run.step_time() - prediction.step_time); });
  const StepResult& step = prediction.typical.step;
  prediction.expected = expected_errors(step);
  // The slowest and the fastest lie as far apart as the ends of the interval would if nothing else were off.
  double& unknown = prediction.expected[static_cast<std::size_t>(ErrorPart::unknown)];
  unknown = std::log(runs.back().step_time() / runs.front().step_time()) / 2 / nine_in_ten;
  prediction.interval =
      interval_around(prediction.step_time, prediction.expected, class_of(step), interval_table(), site_of(step));
  prediction.interval.low = std::min(prediction.interval.low, runs.front().step_time());
  prediction.interval.high = std::max(prediction.interval.high, runs.back().step_time());
  const std::string assumed = assumption_text(runs);
  if (!assumed.empty()) prediction.notes.push_back("assumed " + assumed);
  if (!prediction.fits)
    prediction.notes.push_back(fmt::format("simulated with {:.1f} GB, more than a GPU has",
                                           static_cast<double>(prediction.typical.step.peak_memory()) / 1e9));
  return prediction;
}

}  // namespace tandem::studies
