#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/progress.h"
#include "scenarios/reading/load_campaign.h"
#include "sim/campaign/replicas.h"
#include "studies/step/step_interval.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// Steps of the campaign, each simulated once.
struct CampaignSteps {
  StepResult healthy;
  std::optional<Seconds> with_slow_node;  ///< where there are slow nodes
};

/// A time between two checkpoints and what becomes of the campaign with it.
struct IntervalForecast {
  std::string name;  ///< used, best, young, daly, half, twice
  std::int64_t steps = 0;
  Seconds interval = 0;
  Spread goodput;
  double expected_goodput = 0;  ///< of the closed form, which knows neither waiting for nodes nor slow nodes
};

/// What `tandem campaign` tells.
struct CampaignForecast {
  std::string scenario, preset, gpu;
  std::int64_t gpus = 0, nodes = 0, spare_nodes = 0;
  std::int64_t tokens_per_step = 0;
  Seconds step_time = 0;
  Interval step_interval;
  std::optional<Seconds> slow_step_time;

  std::optional<double> asked_tokens, asked_days;
  std::int64_t replicas = 0;
  std::uint64_t seed = 0;

  bool asynchronous = false;
  std::int64_t parameters = 0;
  double checkpoint_bytes = 0;
  CampaignModel model;
  bool interval_was_given = false;
  std::vector<IntervalForecast> intervals;  ///< the used one first

  Spread days, tokens, goodput, interruptions;
  Spread days_with_step, tokens_with_step;  ///< the same, the step's time being drawn, too, from its interval
  CampaignTimes times;                      ///< mean
  ByComponent failures;                     ///< mean
  double planned_stops = 0, slow_found = 0;

  Seconds mtbf() const { return 1 / model.failures.sum(); }
  double gpu_hours(double in_days) const { return in_days * 24 * static_cast<double>(gpus); }
};

/// Plays the campaign's replicas, `jobs` at a time, with its own interval between checkpoints and with others. Throws InputError
/// where the settings leave no time to train, or begin a checkpoint before the last is written.
CampaignForecast forecast(const Campaign& campaign, const CampaignSteps& steps, std::size_t jobs, Progress* progress = nullptr);

/// Returns the stable JSON form: SI units, one line per key.
std::string to_json(const CampaignForecast& forecast);

}  // namespace tandem::studies
