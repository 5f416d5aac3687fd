#pragma once

#include "sim/campaign/campaign.h"

namespace tandem::sim {

/// Returns the goodput of a long campaign, that is kept work at full speed over time, as `play_campaign` has it on average where
/// a node is always to be had and either none or always some are slow (then `speed` is theirs). With the failure rate f and that
/// of planned stops p, a run ends after a time X, exponential with rate r = f + p. Renewal theory gives
///
///   goodput = (f / r  kept + p / r  done) / (1 / r + f / r  detection + p / r (stall + write) + restarts)
///   kept     = interval exp(-r write) / (exp(r period) - 1)          whole intervals that are durable by X
///   done     = speed (1 - exp(-r interval / speed)) / r / (1 - exp(-r period))      all work until X
///   period   = interval / speed + stall
///   restarts = (exp(f restart) - 1) (1 / f + detection)              until one goes through
///
/// Without planned stops and with write = 0 this is Daly's exact cost function (2006, equation 20) with failures during detection
/// left out. What nodes are waited for adds to `detection`, and does not move the best interval.
double expected_goodput(const CampaignModel& model, double speed = 1);

/// Returns the interval with the highest `expected_goodput`, at least `shortest`, by golden-section search; the whole work, or
/// `never`, where nothing fails.
Seconds best_interval(CampaignModel model, Seconds shortest);

/// E[ETTR] of Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters" (HPCA 2025, arXiv
/// 2410.21680), for failures that are rare:
///
///   (1 - f (u0 + interval / 2)) / (1 + stall / interval)        u0: detection and restart
double expected_ettr(const CampaignModel& model);

}  // namespace tandem::sim
