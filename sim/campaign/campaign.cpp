#include "sim/campaign/campaign.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <queue>
#include <stdexcept>
#include <vector>

#include "sim/campaign/counter_random.h"

namespace tandem::sim {
namespace {

constexpr Seconds never = CampaignModel::never;

/// Counts the nodes in the job, those that are spare and those in repair.
class Nodes {
 public:
  Nodes(const CampaignModel& model, CounterRandom& random) : model_(model), random_(random), spares_(model.spare_nodes) {
    // Draws the distance from one slow node to the next, which is geometric, instead of drawing for every node.
    if (model.slow_share <= 0) return;
    if (model.slow_share >= 1) slow_ = model.nodes;
    if (model.slow_share >= 1) return;
    double place = 0;
    while ((place += 1 + std::floor(std::log(random_.uniform()) / std::log1p(-model.slow_share))) <=
           static_cast<double>(model.nodes))
      ++slow_;
  }

  bool any_slow() const { return slow_ > 0; }
  bool has_spare(Seconds now) {
    come_back(now);
    return spares_ > 0;
  }
  /// Takes one of the job's nodes out, each as likely as the others. Returns until when the job waits for another.
  Seconds replace_any(Seconds now) {
    if (slow_ > 0 && random_.uniform() * static_cast<double>(model_.nodes) <= static_cast<double>(slow_)) --slow_;
    return replace(now);
  }
  /// Replaces as many slow nodes as there are spares for.
  void replace_slow(Seconds now) {
    const std::int64_t found = slow_;
    for (std::int64_t i = 0; i < found && has_spare(now); ++i) {
      --slow_;
      replace(now);
    }
  }

 private:
  const CampaignModel& model_;
  CounterRandom& random_;
  std::int64_t spares_, slow_ = 0;
  std::priority_queue<Seconds, std::vector<Seconds>, std::greater<>> repaired_;  ///< when nodes come back

  void come_back(Seconds now) {
    for (; !repaired_.empty() && repaired_.top() <= now; repaired_.pop()) ++spares_;
  }
  Seconds replace(Seconds now) {
    const bool spare = has_spare(now);
    repaired_.push(now + model_.repair);
    Seconds from = now;
    if (spare) {
      --spares_;
    } else {
      from = repaired_.top();
      repaired_.pop();
    }
    if (model_.slow_share > 0 && random_.uniform() <= model_.slow_share) ++slow_;
    return from;
  }
};

class Player {
 public:
  Player(const CampaignModel& model, std::uint64_t seed, std::uint64_t index)
      : model_(model), random_(seed, index), rate_(model.failures.sum()) {
    run_.luck = random_.normal();
    nodes_.emplace(model_, random_);
  }

  CampaignRun run() {
    restart();
    while (!over_) train();
    return run_;
  }

 private:
  const CampaignModel& model_;
  CounterRandom random_;
  double rate_;
  std::optional<Nodes> nodes_;
  CampaignRun run_;
  Seconds now_ = 0, kept_ = 0;  ///< `kept_`: work that a checkpoint holds
  bool over_ = false;

  /// What a run of the job has done after some time.
  struct Done {
    Seconds work = 0, trained = 0, stalled = 0;  ///< work, and the time that it took
  };

  void spend(Seconds CampaignTimes::*part, Seconds time) {
    const Seconds left = model_.longest - now_;
    over_ = over_ || time >= left;
    const Seconds spent = std::clamp(time, 0.0, left);  // a difference of times may be less than nothing by a rounding
    run_.times.*part += spent;
    now_ += spent;
  }

  void keep(const Done& done) {
    spend(&CampaignTimes::training, done.work);
    spend(&CampaignTimes::slow, done.trained - done.work);
    spend(&CampaignTimes::checkpoint, done.stalled);
    kept_ += done.work;
  }

  void fail() {
    constexpr double too_many = 1e8;
    double left = random_.uniform() * rate_;
    std::size_t component = 0;
    while (component + 1 < component_count && left > model_.failures.values[component])
      left -= model_.failures.values[component++];
    if (++run_.failures.values[component] > too_many)
      throw std::runtime_error("the campaign fails again and again before it gets anywhere");
    spend(&CampaignTimes::detection, model_.detection);
    if (over_ || static_cast<Component>(component) == Component::software) return;
    spend(&CampaignTimes::waiting, nodes_->replace_any(now_) - now_);
  }

  void restart() {
    while (!over_) {
      const Seconds fails = random_.exponential(rate_);
      spend(&CampaignTimes::restart, std::min(fails, model_.restart));
      if (fails >= model_.restart) return;
      if (!over_) fail();
    }
  }

  /// Trains until a failure, a planned stop or the end.
  void train() {
    const double speed = nodes_->any_slow() ? model_.slow_speed : 1;
    const Seconds stall = model_.checkpoint.stall, period = model_.interval / speed + stall;
    const Seconds left = model_.work - kept_;
    const Seconds done_after = left == never ? never : time_to_do(left, speed) + stall + model_.checkpoint.write;
    const Seconds fails = random_.exponential(rate_), planned = random_.exponential(model_.planned_rate);
    const Seconds found = speed < 1 && nodes_->has_spare(now_) ? model_.slow_found : never;
    const Seconds ends = std::min({done_after, fails, planned, found, model_.longest - now_});
    if (ends == done_after) {
      keep({left, left / speed, done_after - left / speed});
      over_ = true;
    } else if (ends == model_.longest - now_) {
      keep(done_by(ends, speed));
      over_ = true;
    } else if (ends == fails) {
      const double durable = std::max(0.0, std::floor((ends - model_.checkpoint.write) / period));
      // Without a durable checkpoint nothing is kept; the products below would be infinity times zero.
      if (durable > 0) keep({durable * model_.interval, durable * (period - stall), durable * stall});
      spend(&CampaignTimes::lost, durable > 0 ? ends - durable * period : ends);
      fail();
      restart();
    } else {
      keep(done_by(ends, speed));
      spend(&CampaignTimes::checkpoint, stall + model_.checkpoint.write);
      if (ends == planned)
        ++run_.planned_stops;
      else
        stop_for_slow_nodes();
      restart();
    }
  }

  void stop_for_slow_nodes() {
    ++run_.slow_found;
    nodes_->replace_slow(now_);
  }

  /// Returns how long the work takes, without the checkpoint at its end.
  Seconds time_to_do(Seconds work, double speed) const {
    const double checkpoints = std::max(0.0, std::ceil(work / model_.interval) - 1);
    return work / speed + checkpoints * model_.checkpoint.stall;
  }

  Done done_by(Seconds time, double speed) const {
    const Seconds period = model_.interval / speed + model_.checkpoint.stall;
    const double periods = std::floor(time / period);
    const Seconds since = periods > 0 ? time - periods * period : time;
    const Seconds trained = (periods > 0 ? periods * model_.interval / speed : 0) + std::min(since, model_.interval / speed);
    return {trained * speed, trained, time - trained};
  }
};

}  // namespace

CampaignRun play_campaign(const CampaignModel& model, std::uint64_t seed, std::uint64_t index) {
  return Player(model, seed, index).run();
}

}  // namespace tandem::sim
