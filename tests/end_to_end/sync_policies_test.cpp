// Policies against stragglers on simulated replicas: what they take where nothing is slow, where one GPU is, and with jitter.

#include "studies/step/sync_policies.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>

#include "studies/step/jitter_times.h"
#include "studies/step/simulated_step.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::sync_policies_test {
namespace {

constexpr const char* every_policy =
    "training.sync=[{kind: backup, backups: 1}, {kind: backup, backups: 1, late: abandon}, {kind: stale, staleness: 0}, {kind: "
    "stale, staleness: 3}, {kind: asynchronous}, {kind: local, every: 4}]";
enum Row : std::size_t {
  synchronous,
  finishing,
  abandoning,
  together,
  stale,
  asynchronous,
  local
};

Scenario replicas(const std::string& mesh, std::vector<std::string> overrides = {}) {
  for (const std::string& word : words("parallelism.zero=0 " + mesh)) overrides.push_back(word);
  overrides.emplace_back(every_policy);
  return tiny_cluster(overrides);
}

struct Compared {
  SimulatedStep step;
  SyncComparison sync;
  const PlayedPolicy& operator[](Row row) const { return sync.policies[row]; }
};

Compared compare(const Scenario& scenario, bool folded = true) {
  SimulatedStep step = simulate_step(scenario, folded);
  SyncComparison sync = *compare_sync_policies(scenario, step.result, folded, {});
  return {.step = std::move(step), .sync = std::move(sync)};
}

class SyncPolicies : public testing::TestWithParam<std::string> {};

TEST_P(SyncPolicies, AllTakeTheSynchronousStepWhereNothingIsSlow) {
  const Compared found = compare(replicas(GetParam()));
  const Seconds step = found.step.result.step_time, near = 1e-9 * step;
  const auto count = static_cast<double>(found.sync.replicas);
  EXPECT_GT(found.sync.exchange, 0);
  EXPECT_NEAR(found.sync.slowest_step + found.sync.exchange, step, near);
  for (const Row row : {synchronous, together, stale, asynchronous}) EXPECT_NEAR(found[row].batch_time, step, near) << row;
  for (const Row row : {finishing, abandoning}) {
    EXPECT_NEAR(found[row].update_time, step, near);
    EXPECT_NEAR(found[row].batch_time, step * count / (count - 1), near);
    EXPECT_NEAR(found[row].dropped_share, 1 / count, 1e-12);
  }
  for (const PlayedPolicy& played : found.sync.policies) EXPECT_NEAR(played.waiting_share, 0, 1e-9);
  EXPECT_EQ(found[synchronous].most_stale, 0);
  EXPECT_NEAR(found[asynchronous].mean_staleness, count - 1, 1e-12);
  EXPECT_NEAR(found[synchronous].tokens_per_second_per_gpu, found.step.result.tokens_per_second_per_gpu,
              1e-9 * found.step.result.tokens_per_second_per_gpu);
}

TEST_P(SyncPolicies, LocalStepsAreThoseOfLocalSgd) {
  Scenario scenario = replicas(GetParam());
  const Seconds played = compare(scenario)[local].batch_time;
  scenario.training.sync.clear();
  scenario.training.sync_every = 4;
  const Seconds period = simulate_step(scenario, true).result.step_time;
  EXPECT_NEAR(played, period, 1e-9 * period);
}

TEST_P(SyncPolicies, OneSlowGpuSlowsOneReplica) {
  const Compared found = compare(replicas(GetParam(), {"faults.slow_gpu={rank: 0, factor: 0.5}"}));
  const SyncComparison& sync = found.sync;
  const Seconds step = found.step.result.step_time;
  const auto count = static_cast<double>(sync.replicas);
  ASSERT_GT(sync.slowest_step, 1.05 * sync.fastest_step);
  EXPECT_NEAR(found[synchronous].batch_time, step, 1e-9 * step);
  EXPECT_NEAR(found[together].batch_time, step, 1e-9 * step);
  const Seconds healthy = sync.fastest_step + sync.exchange, slow = sync.slowest_step + sync.synchronous_exchange;
  EXPECT_NEAR(found[finishing].update_time, healthy, 1e-9 * step);
  EXPECT_NEAR(found[abandoning].update_time, healthy, 1e-9 * step);
  const double rates = (count - 1) / healthy + 1 / slow;
  EXPECT_NEAR(count / found[asynchronous].batch_time, rates, 0.01 * rates);
  EXPECT_NEAR(found[stale].batch_time, slow, 0.01 * slow);
  EXPECT_EQ(found[stale].most_ahead, 3);
  EXPECT_NEAR(found[asynchronous].mean_staleness, count - 1, 0.05 * count);
}

TEST_P(SyncPolicies, AreTheSameFolded) {
  const Scenario scenario =
      replicas(GetParam(), {"faults.slow_gpu={rank: 1, factor: 0.6}", "cluster.fabric.oversubscription=[1,2,4]"});
  const Compared folded = compare(scenario), all = compare(scenario, false);
  for (std::size_t row = 0; row < folded.sync.policies.size(); ++row) {
    const PlayedPolicy& one = folded.sync.policies[row];
    const PlayedPolicy& other = all.sync.policies[row];
    EXPECT_NEAR(one.batch_time, other.batch_time, 1e-8 * other.batch_time) << row;
    EXPECT_NEAR(one.waiting_share, other.waiting_share, 1e-7) << row;
    EXPECT_EQ(one.applied, other.applied) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, SyncPolicies,
    testing::Values("parallelism.dp=8", "parallelism.dp=4 parallelism.tp=2 parallelism.pp=2",
                    "parallelism.dp=2 parallelism.cp=2 parallelism.tp=2 parallelism.sp=true parallelism.order=[dp,pp,tp,cp,ep]",
                    "parallelism.dp=4 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b "
                    "training.overlap.dp=false",
                    "parallelism.dp=2 parallelism.ep=2 parallelism.expert_axis=own model.moe.experts=8 model.moe.top_k=2 "
                    "model.moe.ffn=24"));

/// On 64 GPUs, with kernels that last microseconds to milliseconds.
Scenario with_jitter(const std::string& mesh) {
  return replicas(mesh, {"model={layers: 4, hidden: 2048, heads: 16, head_dim: 128, kv_heads: 16, ffn: 8192, vocab: 4096}",
                         "training={sequence: 2048, micro_batch: 1, global_batch: 64, precision: bf16, schedule: 1f1b}",
                         "cluster.gpus=64", "faults.jitter={kernel: 0.05, rank: 0.03, communication: 0.05, draws: 60}"});
}

class SyncPoliciesWithJitter : public testing::TestWithParam<std::string> {};

// What jitter adds to the synchronous step, in the graph of all ranks and played, folded and not. Folded steps with jitter may be
// off by three tenths of it (jitter_test.cpp).
TEST_P(SyncPoliciesWithJitter, AddWhatTheDrawnStepAdds) {
  constexpr double off_by = 0.3;
  constexpr std::size_t draws = 60;
  const Scenario scenario = with_jitter(GetParam());
  const Compared folded = compare(scenario), all = compare(scenario, false);
  const std::vector<Seconds> drawn =
      drawn_makespans(all.step.dag, variation_of(scenario.jitter), {.seed = 9, .count = draws, .jobs = 2});
  const Seconds undisturbed = all.step.result.step_time;
  const Seconds added = std::accumulate(drawn.begin(), drawn.end(), 0.0) / draws - undisturbed;
  EXPECT_GT(added, 0.01 * undisturbed);
  EXPECT_NEAR(all[synchronous].batch_time - undisturbed, added, off_by * added);
  EXPECT_NEAR(folded[synchronous].batch_time - undisturbed, added, off_by * added);
  std::printf("%s: of a step of %.3f ms jitter adds %.3f ms in the graph, %.3f played, %.3f folded\n", GetParam().c_str(),
              1e3 * undisturbed, 1e3 * added, 1e3 * (all[synchronous].batch_time - undisturbed),
              1e3 * (folded[synchronous].batch_time - undisturbed));
  for (const Compared* found : {&folded, &all}) {
    EXPECT_LT((*found)[abandoning].update_time, (*found)[synchronous].update_time);
    EXPECT_LE((*found)[abandoning].update_time, (*found)[finishing].update_time);
    EXPECT_LT((*found)[asynchronous].batch_time, (*found)[synchronous].batch_time);
    EXPECT_LE((*found)[stale].most_ahead, 3);
    EXPECT_NEAR((*found)[asynchronous].waiting_share, 0, 1e-12);
  }
  EXPECT_NEAR(folded[asynchronous].batch_time, all[asynchronous].batch_time, 0.01 * undisturbed);
}

INSTANTIATE_TEST_SUITE_P(Meshes, SyncPoliciesWithJitter,
                         testing::Values("parallelism.dp=64 training.global_batch=256",
                                         "parallelism.dp=8 parallelism.tp=8 parallelism.sp=true",
                                         "parallelism.dp=16 parallelism.pp=4"));

TEST(SyncPolicies, DrawTheSameWhateverTheNumberOfJobs) {
  Scenario scenario = tiny_cluster(words("parallelism.dp=4 parallelism.tp=2 parallelism.zero=0 training.sync_every=2"));
  const SimulatedStep own = simulate_steps(scenario, true, {}, {.averages = false});
  const Variation variation{.kernel = 0.1, .rank = 0.05, .communication = 0.1};
  const auto one = drawn_ends(own.dag, variation, {.seed = 5, .count = 12, .jobs = 1});
  EXPECT_EQ(one, drawn_ends(own.dag, variation, {.seed = 5, .count = 12, .jobs = 3}));
  EXPECT_NE(one, drawn_ends(own.dag, variation, {.seed = 6, .count = 12, .jobs = 3}));
}

}  // namespace
}  // namespace tandem::studies::sync_policies_test
