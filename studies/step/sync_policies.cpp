#include "studies/step/sync_policies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "runtime/base/si.h"
#include "scenarios/mesh/mesh.h"
#include "scenarios/spec/parameter_count.h"
#include "sim/drawn_time.h"
#include "sim/random_numbers.h"
#include "sim/replica_play.h"
#include "studies/step/jitter_times.h"

namespace tandem::studies {
namespace {

/// The scenario of replicas that take their steps by themselves.
Scenario alone(Scenario scenario) {
  scenario.training.sync.clear();
  scenario.training.sync_every = 2;  // any period: one step of each kind is lowered
  return scenario;
}

Scenario without_slow_gpus(Scenario scenario) {
  scenario.slow_gpus.clear();
  return scenario;
}

/// Replicas that are made of the same classes of ranks take the same time.
class ReplicaClasses {
 public:
  ReplicaClasses(const ParallelismSpec& parallelism, const std::vector<RankIndex>& class_of) {
    const Mesh mesh(parallelism);
    std::vector<std::set<RankIndex>> ranks(static_cast<std::size_t>(parallelism.dp));
    for (std::uint32_t rank = 0; rank < class_of.size(); ++rank)
      ranks[static_cast<std::size_t>(mesh.coordinates(rank)[Axis::dp])].insert(class_of[rank]);
    std::map<std::set<RankIndex>, std::size_t> known;
    for (const std::set<RankIndex>& replica : ranks) {
      const auto [entry, is_new] = known.emplace(replica, ranks_.size());
      if (is_new) ranks_.push_back(replica);
      of_.push_back(entry->second);
    }
  }

  std::size_t size() const { return ranks_.size(); }
  std::size_t of(std::size_t replica) const { return of_[replica]; }
  /// Returns when each class has ended, by when its ranks have.
  std::vector<Seconds> ends(const std::vector<Seconds>& ends_of_ranks) const {
    std::vector<Seconds> ends(ranks_.size(), 0);
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      for (const RankIndex rank : ranks_[i]) ends[i] = std::max(ends[i], ends_of_ranks[rank]);
    return ends;
  }

 private:
  std::vector<std::set<RankIndex>> ranks_;  ///< by class
  std::vector<std::size_t> of_;             ///< by replica
};

/// What one policy is played with.
struct Pace {
  const ReplicaClasses& classes;
  std::vector<DrawnTime> steps;    ///< by class
  std::vector<Seconds> exchanges;  ///< the same
  std::uint64_t seed = 1;

  /// Replicas that all exchange as `averaging` says where that is given.
  Replicas replicas(std::int64_t count, Seconds service, std::optional<Seconds> averaging) const {
    const RandomKey key{seed, std::uint64_t{0x53796E63}};  // apart from the keys of the draws themselves
    return {.count = static_cast<std::size_t>(count),
            .step =
                [this, key](std::size_t replica, std::uint64_t step) {
                  const DrawnTime& time = steps[classes.of(replica)];
                  return time.deviation() == 0 ? time.mean() : time.at(key.with(replica).with(step).normal());
                },
            .exchange = [this, averaging](std::size_t replica) { return averaging.value_or(exchanges[classes.of(replica)]); },
            .service = service};
  }
};

Pace pace_of(const Scenario& scenario, const SimulatedStep& own, const ReplicaClasses& classes,
             const std::vector<Seconds>& undisturbed, Progress* progress) {
  Pace pace{.classes = classes, .steps = {}, .exchanges = {}, .seed = scenario.jitter.seed};
  if (!scenario.jitter.enabled()) {
    for (const Seconds& time : undisturbed) pace.steps.emplace_back(std::span(&time, 1));
    return pace;
  }
  const auto count = static_cast<std::size_t>(scenario.jitter.draws);
  const auto show = shown_in(progress, "drawing replicas");
  const auto ended = [&](std::size_t done) {
    if (show) show(static_cast<double>(done) / static_cast<double>(count));
  };
  const std::vector<std::vector<Seconds>> draws =
      drawn_ends(own.dag, variation_of(scenario.jitter),
                 {.seed = scenario.jitter.seed, .count = count, .jobs = draws_at_a_time(own.result), .ended = ended});
  std::vector<std::vector<Seconds>> by_class(classes.size());
  for (const std::vector<Seconds>& ends_of_ranks : draws) {
    const std::vector<Seconds> ends = classes.ends(ends_of_ranks);
    for (std::size_t i = 0; i < ends.size(); ++i) by_class[i].push_back(ends[i]);
  }
  for (const std::vector<Seconds>& times : by_class) pace.steps.emplace_back(times);
  return pace;
}

/// What the servers of a policy need for one update: a replica's gradients come in as its weights go out. 0 without servers.
Seconds service_of(const SyncPolicy& policy, const Scenario& scenario) {
  if (policy.servers == 0) return 0;
  const ClusterSpec& cluster = scenario.cluster;
  const TrainingSpec& training = scenario.training;
  const Bytes parameter = std::max<Bytes>(size_of(training.grad_dtype) / training.grad_compression, size_of(training.storage()));
  constexpr double bits = 8;
  const double nics = static_cast<double>(policy.servers * cluster.nics_per_node);
  return static_cast<double>(parameter * parameter_count(scenario.model)) /
         (nics * cluster.nic_gbps * cluster.nic_efficiency * giga / bits);
}

ReplicaPlay play(const SyncPolicy& policy, const Pace& pace, const SyncComparison& comparison, Seconds service) {
  const auto steps = static_cast<std::uint64_t>(comparison.steps);
  const PlayLength length{.warm_up = steps, .counted = steps};
  const bool together =
      policy.kind == SyncKind::synchronous || (policy.kind == SyncKind::stale && policy.staleness == 0 && policy.servers == 0);
  const Replicas replicas =
      pace.replicas(comparison.replicas, service, policy.kind == SyncKind::local ? comparison.averaging : std::nullopt);
  if (together) return play_rounds(replicas, {.needed = replicas.count}, length);
  switch (policy.kind) {
    case SyncKind::backup:
      return play_rounds(replicas,
                         {.needed = replicas.count - static_cast<std::size_t>(policy.backups),
                          .late = policy.abandons ? Late::abandons : Late::finishes},
                         length);
    case SyncKind::local: {
      const auto every = static_cast<std::uint64_t>(policy.every);
      const std::uint64_t rounds = (steps + every - 1) / every;
      return play_rounds(replicas, {.needed = replicas.count, .every = every}, {.warm_up = rounds, .counted = rounds});
    }
    case SyncKind::stale:
      return play_freely(replicas, static_cast<std::uint64_t>(policy.staleness), length);
    case SyncKind::synchronous:
    case SyncKind::asynchronous:
      break;
  }
  return play_freely(replicas, any_lead, length);
}

std::vector<StalenessBin> histogram(const ReplicaPlay& play) {
  constexpr std::uint64_t most_bins = 16;
  const std::uint64_t width = play.most_stale() / most_bins + 1;
  std::vector<StalenessBin> bins;
  for (const auto& [updates, gradients] : play.staleness) {
    const auto from = static_cast<std::int64_t>(updates / width * width);
    if (bins.empty() || bins.back().from != from)
      bins.push_back({.from = from, .to = from + static_cast<std::int64_t>(width) - 1, .share = 0});
    bins.back().share += static_cast<double>(gradients) / static_cast<double>(play.applied);
  }
  return bins;
}

PlayedPolicy summed_up(const SyncPolicy& policy, const ReplicaPlay& play, const SyncComparison& comparison,
                       const StepResult& step) {
  const auto replicas = static_cast<double>(comparison.replicas), applied = static_cast<double>(play.applied);
  const Seconds batch = play.time * replicas / applied;
  const Seconds time_of_all = play.time * replicas;
  return {.policy = policy,
          .applied = static_cast<std::int64_t>(play.applied),
          .dropped = static_cast<std::int64_t>(play.dropped),
          .update_time = play.time / static_cast<double>(play.updates),
          .batch_time = batch,
          .tokens_per_second_per_gpu = step.tokens_per_second_per_gpu * step.step_time / batch,
          .speedup = 1,
          .dropped_share = play.dropped_share(),
          .wasted_share = play.wasted / time_of_all,
          .waiting_share = play.waited / time_of_all,
          .mean_staleness = play.mean_staleness(),
          .most_stale = static_cast<std::int64_t>(play.most_stale()),
          .serving_share = 0,
          .most_ahead = static_cast<std::int64_t>(play.most_ahead),
          .staleness = histogram(play)};
}

/// What the exchange of all replicas adds to the slowest one's own step.
Seconds added(Seconds step, const std::vector<Seconds>& own) { return std::max(0.0, step - std::ranges::max(own)); }

/// What the exchange adds to a replica's own step of that length: the slower its backward, the more hides behind it. Known are
/// the slowest replica's and that of those where no GPU is slow.
Seconds exchange_after(Seconds own, Seconds healthy, const SyncComparison& comparison) {
  const Seconds range = comparison.slowest_step - healthy;
  if (own <= healthy || range <= 0) return comparison.exchange;
  return std::lerp(comparison.exchange, comparison.synchronous_exchange, (own - healthy) / range);
}

}  // namespace

std::optional<SyncComparison> compare_sync_policies(const Scenario& scenario, const StepResult& step, bool folded,
                                                    SimulationOptions options) {
  options.fold_time = options.fold_mirrors = false;  // a replica's tasks are looked at one by one
  const std::vector<SyncPolicy>& asked = scenario.training.sync;
  if (asked.empty()) return std::nullopt;
  constexpr StepRange one{.averages = false};
  const ParallelismSpec& p = scenario.parallelism;
  const Scenario own_steps = alone(scenario);
  const SimulatedStep own = simulate_steps(own_steps, folded, options, one);
  const ReplicaClasses classes(p, own.class_of);
  const std::vector<Seconds> undisturbed = classes.ends(ends_of_ranks(own.dag, own.timeline));

  SyncComparison comparison{.replicas = p.dp,
                            .ranks_of_replica = p.replica_size(),
                            .steps = scenario.training.sync_steps,
                            .fastest_step = std::ranges::min(undisturbed),
                            .slowest_step = std::ranges::max(undisturbed),
                            .synchronous_exchange = added(step.step_time, undisturbed)};
  comparison.exchange = comparison.synchronous_exchange;
  Seconds healthy_step = comparison.slowest_step;
  const Scenario healthy = without_slow_gpus(scenario);
  if (!scenario.slow_gpus.empty()) {
    const SimulatedStep own_healthy = simulate_steps(alone(healthy), folded, options, one);
    healthy_step = own_healthy.timeline.makespan();
    comparison.exchange = added(simulate_step(healthy, folded, options).result.step_time, {healthy_step});
  }
  const auto averages = [](const SyncPolicy& policy) { return policy.kind == SyncKind::local; };
  if (std::ranges::any_of(asked, averages))
    comparison.averaging = added(simulate_steps(alone(healthy), folded, options, {}).timeline.makespan(), {healthy_step});

  Pace pace = pace_of(scenario, own, classes, undisturbed, options.progress);
  for (const Seconds time : undisturbed) pace.exchanges.push_back(exchange_after(time, healthy_step, comparison));
  for (const DrawnTime& time : pace.steps) comparison.deviation = std::max(comparison.deviation, time.deviation());
  std::vector<SyncPolicy> policies{{.kind = SyncKind::synchronous}};
  for (const SyncPolicy& policy : asked)
    if (policy.kind != SyncKind::synchronous) policies.push_back(policy);
  for (const SyncPolicy& policy : policies) {
    const Seconds service = service_of(policy, scenario);
    comparison.policies.push_back(summed_up(policy, play(policy, pace, comparison, service), comparison, step));
    PlayedPolicy& played = comparison.policies.back();
    played.serving_share = service / played.update_time;
    played.speedup = comparison.policies.front().batch_time / played.batch_time;
  }
  return comparison;
}

}  // namespace tandem::studies
