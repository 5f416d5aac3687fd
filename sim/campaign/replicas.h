#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/campaign/campaign.h"

namespace tandem::sim {

/// The mean, and the range outside of which one campaign in ten lies.
struct Spread {
  double mean = 0, p5 = 0, p50 = 0, p95 = 0;
};

/// Takes percentiles between the two nearest values, as numpy's default. `values` must not be empty.
Spread spread_of(std::vector<double> values);

/// Plays the campaigns 0 ... `count` - 1 of a seed, `jobs` at a time. The result is the same for any number of jobs. `progress`
/// is told, from one thread at a time, which share has been played.
std::vector<CampaignRun> play_campaigns(const CampaignModel& model, std::uint64_t seed, std::size_t count, std::size_t jobs,
                                        const std::function<void(double share)>& progress = {});

/// Returns the mean of each part.
CampaignTimes mean_times(const std::vector<CampaignRun>& runs);

}  // namespace tandem::sim
