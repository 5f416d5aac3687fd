#include "sim/campaign/replicas.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

namespace tandem::sim {

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto percentile = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], place - static_cast<double>(below));
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), percentile(0.05), percentile(0.5), percentile(0.95)};
}

std::vector<CampaignRun> play_campaigns(const CampaignModel& model, std::uint64_t seed, std::size_t count, std::size_t jobs,
                                        const std::function<void(double share)>& progress) {
  std::vector<CampaignRun> runs(count);
  std::atomic<std::size_t> next = 0;
  std::mutex telling;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) {
        runs[i] = play_campaign(model, seed, i);
        const std::scoped_lock lock(telling);
        if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(count));
      }
    } catch (...) {
      const std::scoped_lock lock(telling);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min(jobs, count); ++i) others.emplace_back(work);
  work();
  others.clear();
  if (failure) std::rethrow_exception(failure);
  return runs;
}

CampaignTimes mean_times(const std::vector<CampaignRun>& runs) {
  CampaignTimes mean;
  for (const CampaignRun& run : runs) {
    for (const auto part : {&CampaignTimes::training, &CampaignTimes::slow, &CampaignTimes::checkpoint, &CampaignTimes::lost,
                            &CampaignTimes::detection, &CampaignTimes::restart, &CampaignTimes::waiting})
      mean.*part += run.times.*part / static_cast<double>(runs.size());
  }
  return mean;
}

}  // namespace tandem::sim
