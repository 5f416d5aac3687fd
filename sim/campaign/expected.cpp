#include "sim/campaign/expected.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tandem::sim {

double expected_goodput(const CampaignModel& model, double speed) {
  const double f = model.failures.sum(), p = model.planned_rate, r = f + p;
  const Seconds stall = model.checkpoint.stall, write = model.checkpoint.write;
  const Seconds trained = model.interval / speed, period = trained + stall;
  if (r <= 0) return model.interval == CampaignModel::never ? speed : model.interval / period;
  const bool kept_at_all = std::isfinite(r * period);
  const Seconds kept = kept_at_all ? model.interval * std::exp(-r * write) / std::expm1(r * period) : 0;
  const Seconds done = speed * -std::expm1(-r * trained) / r / -std::expm1(-r * period);
  const Seconds restarts = f > 0 ? std::expm1(f * model.restart) * (1 / f + model.detection) : model.restart;
  const Seconds cycle = 1 / r + f / r * model.detection + p / r * (stall + write) + restarts;
  return (f / r * kept + p / r * done) / cycle;
}

Seconds best_interval(CampaignModel model, Seconds shortest) {
  const double rate = model.failures.sum();
  if (rate <= 0) return model.work;
  const auto goodput_at = [&](double logarithm) {
    model.interval = std::exp(logarithm);
    return expected_goodput(model);
  };
  // Beyond the mean time between failures more is lost than what half of all checkpoints could cost.
  constexpr double beyond = 4, close_enough = 1e-6;
  double low = std::log(shortest), high = std::max(low, std::log(beyond / rate));
  constexpr double ratio = 1 / std::numbers::phi;
  double a = high - ratio * (high - low), b = low + ratio * (high - low);
  double at_a = goodput_at(a), at_b = goodput_at(b);
  while (high - low > close_enough) {
    if (at_a >= at_b) {
      high = b;
      b = a;
      at_b = at_a;
      at_a = goodput_at(a = high - ratio * (high - low));
    } else {
      low = a;
      a = b;
      at_a = at_b;
      at_b = goodput_at(b = low + ratio * (high - low));
    }
  }
  return std::min(std::max(shortest, std::exp((low + high) / 2)), model.work);
}

double expected_ettr(const CampaignModel& model) {
  const Seconds overhead = model.detection + model.restart;
  return (1 - model.failures.sum() * (overhead + model.interval / 2)) / (1 + model.checkpoint.stall / model.interval);
}

}  // namespace tandem::sim
