// A result's way to JSON and back, and what is no result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <span>

#include "runtime/base/input_error.h"
#include "studies/step/step_result.h"

namespace tandem::studies::step_result_json_test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

/// Draws what the JSON tells of a step: of the whole step's compute no phases, of memory no inputs.
class RandomResult {
 public:
  explicit RandomResult(unsigned seed) : random_(seed) {}

  StepResult draw() {
    StepResult r;
    r.scenario = "step " + std::to_string(whole(1000));
    r.gpus = whole(1 << 20);
    r.gpu = "h100";
    r.tokens = whole(1 << 30);
    r.tokens_per_second_per_gpu = number();
    r.model_flops_per_gpu = 1e15 * number();
    r.mfu = number();
    r.hfu = number();
    r.parts = waiting();
    kernel(r.parts, Phase::forward) = number();
    r.step_time = r.parts.total();
    const std::size_t stages = 1 + static_cast<std::size_t>(whole(5));
    for (std::size_t s = 0; s < stages; ++s) {
      r.stage_times.push_back({.ranks = whole(64), .parts = waiting()});
      for (const Phase phase : {Phase::forward, Phase::backward_input, Phase::backward_weight, Phase::recompute})
        kernel(r.stage_times.back().parts, phase) = number();
      r.stages.push_back({.parameters = bytes(),
                          .gradients = bytes(),
                          .optimizer = bytes(),
                          .activations = bytes(),
                          .buffers = bytes(),
                          .peak_at = number()});
    }
    for (std::size_t phase = 0; phase < phase_count; ++phase)
      r.kinds.push_back({.name = phase % 2 == 0 ? "gemm" : "all_reduce (tp)",
                         .phase = static_cast<Phase>(phase),
                         .count = number(),
                         .time = number()});
    r.gpu_memory = bytes();
    if (whole(2) == 0)
      r.device_memory = {
          .allocated = bytes(), .reserved = bytes(), .communicators = bytes(), .context = bytes(), .retries = whole(9)};
    if (whole(2) == 0) r.warnings = {"a.yaml:1:2: unwise", "b"};
    r.lower_bound = number();
    r.upper_bound = number();
    r.rank_classes = static_cast<std::size_t>(whole(4096));
    r.link_classes = static_cast<std::size_t>(whole(4096));
    r.tasks = static_cast<std::size_t>(whole(1 << 30));
    r.run = {.backend = "simgrid",
             .collectives = whole(2) == 0 ? "fluid" : "",
             .folded = whole(2) == 0,
             .wall = number(),
             .peak_rss = bytes()};
    if (whole(2) == 0) {
      r.sync_every = 2 + whole(500);
      r.step_kinds = {.local = number(), .sync = number()};
    }
    if (whole(2) == 0)
      r.jitter = {.draws = 100, .p50 = number(), .p90 = number(), .p99 = number(), .mean = number(), .wall = number()};
    if (whole(2) == 0) r.sync = sync();
    if (whole(3) > 0) r.metrics = metrics();
    if (whole(2) == 0) r.experts = experts();
    if (whole(2) == 0) r.merged_fold = {.tolerance = number(), .lower = number(), .upper = number()};
    return r;
  }

 private:
  std::mt19937 random_;

  double number() { return std::uniform_real_distribution<double>(0, 10)(random_); }
  std::int64_t whole(std::int64_t end) { return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random_); }
  Bytes bytes() { return whole(Bytes{1} << 40); }

  AxisValues on(std::span<const Axis> axes) {
    AxisValues values{};
    for (const Axis axis : axes) values[static_cast<std::size_t>(axis)] = number();
    return values;
  }
  StepMetrics metrics() {
    StepMetrics m;
    m.parameters = whole(1 << 30);
    m.active_parameters = whole(1 << 30);
    m.sent = on(communication_axes);
    const AxisValues busy = on(communication_axes), covered = on(communication_axes);
    for (std::size_t axis = 0; axis < axis_count; ++axis) m.overlap.by_axis[axis] = {busy[axis], covered[axis]};
    m.overlap.all = {number(), number()};
    m.flops = number();
    m.memory_traffic = number();
    m.ridge = number();
    for (std::int32_t layer = 0; layer < 3; ++layer)
      m.layers.push_back({.layer = layer, .ranks = whole(64), .sent = on(layer_axes), .kept = number()});
    return m;
  }
  PlayedPolicy policy(SyncKind kind) {
    PlayedPolicy played{.policy = {.kind = kind},
                        .applied = 1 + whole(1000),
                        .dropped = whole(1000),
                        .update_time = number(),
                        .batch_time = number(),
                        .tokens_per_second_per_gpu = number(),
                        .speedup = number(),
                        .dropped_share = number(),
                        .wasted_share = number(),
                        .waiting_share = number(),
                        .mean_staleness = number(),
                        .most_stale = whole(100),
                        .most_ahead = whole(100),
                        .staleness = {{.from = 0, .to = 3, .share = number()}, {.from = 4, .to = 7, .share = number()}}};
    if (kind == SyncKind::backup) played.policy.backups = 1 + whole(4);
    if (kind == SyncKind::backup) played.policy.abandons = whole(2) == 0;
    if (kind == SyncKind::stale) played.policy.staleness = whole(10);
    if (kind == SyncKind::asynchronous) {
      played.policy.servers = 1 + whole(4);
      played.serving_share = number();
    }
    if (kind == SyncKind::local) played.policy.every = 2 + whole(10);
    return played;
  }
  SyncComparison sync() {
    SyncComparison sync{.replicas = 2 + whole(100),
                        .ranks_of_replica = 1 + whole(64),
                        .steps = 1 + whole(500),
                        .fastest_step = number(),
                        .slowest_step = number(),
                        .deviation = number(),
                        .synchronous_exchange = number(),
                        .exchange = number()};
    if (whole(2) == 0) sync.averaging = number();
    for (const SyncKind kind :
         {SyncKind::synchronous, SyncKind::backup, SyncKind::stale, SyncKind::asynchronous, SyncKind::local})
      sync.policies.push_back(policy(kind));
    return sync;
  }
  ExpertBalance experts() {
    ExpertBalance balance{.expert_choice = whole(2) == 0, .tokens = 1 + whole(1000)};
    for (std::int64_t e = 2 + whole(6); e > 0; --e) {
      balance.choices.push_back(static_cast<std::int32_t>(1 + whole(100)));
      balance.slots.push_back(static_cast<std::int32_t>(1 + whole(100)));
    }
    if (whole(2) == 0) balance.safe_step_time = number();
    return balance;
  }

  static Seconds& kernel(TimeParts& parts, Phase phase) { return parts.kernels[static_cast<std::size_t>(phase)]; }
  TimeParts waiting() {
    TimeParts parts;
    for (const Axis axis : communication_axes) parts.exposed[static_cast<std::size_t>(axis)] = number();
    parts.bubble = number();
    kernel(parts, Phase::optimizer) = number();
    return parts;
  }
};

void expect_same(const TimeParts& a, const TimeParts& b) {
  EXPECT_EQ(a.kernels, b.kernels);
  EXPECT_EQ(a.exposed, b.exposed);
  EXPECT_EQ(a.bubble, b.bubble);
}

void expect_same(const StepMetrics& a, const StepMetrics& b) {
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.active_parameters, b.active_parameters);
  EXPECT_EQ(a.sent, b.sent);
  const auto same = [](const CommunicationOverlap::Times& x, const CommunicationOverlap::Times& y) {
    EXPECT_EQ(x.busy, y.busy);
    EXPECT_EQ(x.covered, y.covered);
  };
  for (std::size_t axis = 0; axis < axis_count; ++axis) same(a.overlap.by_axis[axis], b.overlap.by_axis[axis]);
  same(a.overlap.all, b.overlap.all);
  EXPECT_EQ(a.flops, b.flops);
  EXPECT_EQ(a.memory_traffic, b.memory_traffic);
  EXPECT_EQ(a.ridge, b.ridge);
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    EXPECT_EQ(a.layers[i].layer, b.layers[i].layer);
    EXPECT_EQ(a.layers[i].ranks, b.layers[i].ranks);
    EXPECT_EQ(a.layers[i].sent, b.layers[i].sent);
    EXPECT_EQ(a.layers[i].kept, b.layers[i].kept);
  }
}

void expect_same(const ExpertBalance& a, const ExpertBalance& b) {
  EXPECT_EQ(a.expert_choice, b.expert_choice);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.choices, b.choices);
  EXPECT_EQ(a.slots, b.slots);
  EXPECT_EQ(a.safe_step_time, b.safe_step_time);
}

void expect_same(const SyncComparison& a, const SyncComparison& b) {
  EXPECT_EQ(a.replicas, b.replicas);
  EXPECT_EQ(a.ranks_of_replica, b.ranks_of_replica);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.fastest_step, b.fastest_step);
  EXPECT_EQ(a.slowest_step, b.slowest_step);
  EXPECT_EQ(a.deviation, b.deviation);
  EXPECT_EQ(a.synchronous_exchange, b.synchronous_exchange);
  EXPECT_EQ(a.exchange, b.exchange);
  EXPECT_EQ(a.averaging, b.averaging);
  ASSERT_EQ(a.policies.size(), b.policies.size());
  for (std::size_t i = 0; i < a.policies.size(); ++i) {
    const PlayedPolicy &one = a.policies[i], &other = b.policies[i];
    EXPECT_EQ(one.policy, other.policy);
    EXPECT_EQ(one.applied, other.applied);
    EXPECT_EQ(one.dropped, other.dropped);
    EXPECT_EQ(one.update_time, other.update_time);
    EXPECT_EQ(one.batch_time, other.batch_time);
    EXPECT_EQ(one.tokens_per_second_per_gpu, other.tokens_per_second_per_gpu);
    EXPECT_EQ(one.speedup, other.speedup);
    EXPECT_EQ(one.dropped_share, other.dropped_share);
    EXPECT_EQ(one.wasted_share, other.wasted_share);
    EXPECT_EQ(one.waiting_share, other.waiting_share);
    EXPECT_EQ(one.mean_staleness, other.mean_staleness);
    EXPECT_EQ(one.most_stale, other.most_stale);
    EXPECT_EQ(one.serving_share, other.serving_share);
    EXPECT_EQ(one.most_ahead, other.most_ahead);
    EXPECT_EQ(one.staleness, other.staleness);
  }
}

void expect_same(const StepResult& a, const StepResult& b) {
  ASSERT_EQ(a.metrics.has_value(), b.metrics.has_value());
  if (a.metrics) expect_same(*a.metrics, *b.metrics);
  ASSERT_EQ(a.experts.has_value(), b.experts.has_value());
  if (a.experts) expect_same(*a.experts, *b.experts);
  EXPECT_EQ(a.scenario, b.scenario);
  EXPECT_EQ(a.gpus, b.gpus);
  EXPECT_EQ(a.gpu, b.gpu);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.step_time, b.step_time);
  EXPECT_EQ(a.sync_every, b.sync_every);
  ASSERT_EQ(a.step_kinds.has_value(), b.step_kinds.has_value());
  if (a.step_kinds) {
    EXPECT_EQ(a.step_kinds->local, b.step_kinds->local);
    EXPECT_EQ(a.step_kinds->sync, b.step_kinds->sync);
  }
  ASSERT_EQ(a.jitter.has_value(), b.jitter.has_value());
  if (a.jitter) {
    EXPECT_EQ(a.jitter->draws, b.jitter->draws);
    EXPECT_EQ(a.jitter->p50, b.jitter->p50);
    EXPECT_EQ(a.jitter->p90, b.jitter->p90);
    EXPECT_EQ(a.jitter->p99, b.jitter->p99);
    EXPECT_EQ(a.jitter->mean, b.jitter->mean);
    EXPECT_EQ(a.jitter->wall, b.jitter->wall);
  }
  ASSERT_EQ(a.sync.has_value(), b.sync.has_value());
  if (a.sync) expect_same(*a.sync, *b.sync);
  ASSERT_EQ(a.merged_fold.has_value(), b.merged_fold.has_value());
  if (a.merged_fold) {
    EXPECT_EQ(a.merged_fold->tolerance, b.merged_fold->tolerance);
    EXPECT_EQ(a.merged_fold->lower, b.merged_fold->lower);
    EXPECT_EQ(a.merged_fold->upper, b.merged_fold->upper);
  }
  EXPECT_EQ(a.tokens_per_second_per_gpu, b.tokens_per_second_per_gpu);
  EXPECT_DOUBLE_EQ(a.model_flops_per_gpu, b.model_flops_per_gpu);  // in TFLOP/s there
  EXPECT_EQ(a.mfu, b.mfu);
  EXPECT_EQ(a.hfu, b.hfu);
  expect_same(a.parts, b.parts);
  ASSERT_EQ(a.stage_times.size(), b.stage_times.size());
  for (std::size_t s = 0; s < a.stage_times.size(); ++s) {
    EXPECT_EQ(a.stage_times[s].ranks, b.stage_times[s].ranks);
    expect_same(a.stage_times[s].parts, b.stage_times[s].parts);
  }
  ASSERT_EQ(a.kinds.size(), b.kinds.size());
  for (std::size_t k = 0; k < a.kinds.size(); ++k) {
    EXPECT_EQ(a.kinds[k].name, b.kinds[k].name);
    EXPECT_EQ(a.kinds[k].phase, b.kinds[k].phase);
    EXPECT_EQ(a.kinds[k].count, b.kinds[k].count);
    EXPECT_EQ(a.kinds[k].time, b.kinds[k].time);
  }
  ASSERT_EQ(a.stages.size(), b.stages.size());
  for (std::size_t s = 0; s < a.stages.size(); ++s) {
    EXPECT_EQ(a.stages[s].parameters, b.stages[s].parameters);
    EXPECT_EQ(a.stages[s].gradients, b.stages[s].gradients);
    EXPECT_EQ(a.stages[s].optimizer, b.stages[s].optimizer);
    EXPECT_EQ(a.stages[s].activations, b.stages[s].activations);
    EXPECT_EQ(a.stages[s].buffers, b.stages[s].buffers);
    EXPECT_EQ(a.stages[s].peak_at, b.stages[s].peak_at);
  }
  EXPECT_EQ(a.gpu_memory, b.gpu_memory);
  EXPECT_EQ(a.warnings, b.warnings);
  EXPECT_EQ(a.lower_bound, b.lower_bound);
  EXPECT_EQ(a.upper_bound, b.upper_bound);
  EXPECT_EQ(a.rank_classes, b.rank_classes);
  EXPECT_EQ(a.link_classes, b.link_classes);
  EXPECT_EQ(a.tasks, b.tasks);
  EXPECT_EQ(a.run.backend, b.run.backend);
  EXPECT_EQ(a.run.collectives, b.run.collectives);
  EXPECT_EQ(a.device_memory, b.device_memory);
  EXPECT_EQ(a.run.folded, b.run.folded);
  EXPECT_EQ(a.run.wall, b.run.wall);
  EXPECT_EQ(a.run.peak_rss, b.run.peak_rss);
}

TEST(StepResultJson, ComesBackFieldByField) {
  RandomResult random(17);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const StepResult result = random.draw();
    const StepResult back = step_result_from_json(to_json(result), "r.json");
    expect_same(result, back);
    Json again = to_json_object(back), before = to_json_object(result);  // holds keys that no field above stands for
    for (Json* json : {&again, &before}) json->erase("model_tflops_per_gpu");
    EXPECT_EQ(again.dump(1), before.dump(1));
  }
}

TEST(StepResultJson, OfAnOlderVersionLacksStagesAndKinds) {
  Json json = to_json_object(RandomResult(1).draw());
  for (const char* key : {"stages_s", "kinds", "interval_s", "warnings"}) json.erase(key);
  const StepResult result = step_result_from_json(json, "r.json");
  EXPECT_TRUE(result.stage_times.empty());
  EXPECT_TRUE(result.kinds.empty());
  EXPECT_FALSE(result.stages.empty());
  EXPECT_GT(result.gpu_memory, 0);
}

// JSON has null for what is no number: the utilisation of a GPU whose peak is not known.
TEST(StepResultJson, WhatIsNoNumberIsLeftOut) {
  StepResult result = RandomResult(2).draw();
  result.mfu = std::numeric_limits<double>::infinity();
  EXPECT_EQ(step_result_from_json(to_json(result), "r.json").mfu, 0);
}

std::string refusal_of(const Json& json) {
  try {
    step_result_from_json(json, "r.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(StepResultJson, NamesTheKeyThatIsMissing) {
  const Json whole = to_json_object(RandomResult(3).draw());
  EXPECT_EQ(refusal_of(whole), "accepted");
  for (const char* pointer :
       {"/scenario", "/step_time_s", "/time_s", "/time_s/compute", "/time_s/exposed", "/time_s/bubble", "/memory",
        "/memory/stages", "/memory/stages/0/peak_bytes", "/kinds/0/phase", "/stages_s/0/forward"}) {
    Json json = whole;
    const Json::json_pointer at(pointer);
    json[at.parent_pointer()].erase(at.back());
    EXPECT_THAT(refusal_of(json), HasSubstr("r.json: has no key `")) << pointer;
    EXPECT_THAT(refusal_of(json),
                HasSubstr(at.back() + "`, expected a result, which `tandem simulate SCENARIO --json F` writes"));
  }
}

TEST(StepResultJson, NamesTheValueThatCannotBe) {
  const Json whole = to_json_object(RandomResult(4).draw());
  const std::vector<std::tuple<std::string, Json, std::string>> wrong = {
      {"/kinds/0/phase", "sideways", "`kinds[0].phase` is `\"sideways\"`, expected the name of a phase"},
      {"/run/folded", 1, "`run.folded` is `1`, expected true or false"},
      {"/memory/stages", Json::array(), "`memory.stages` is `[]`, expected a stage at least"},
      {"/gpus", 0.5, "`gpus` is `0.5`, expected a whole number"},
      {"/warnings/0", 7, "`warnings[0]` is `7`, expected a text"}};
  for (const auto& [pointer, value, words] : wrong) {
    Json json = whole;
    json[Json::json_pointer(pointer)] = value;
    EXPECT_THAT(refusal_of(json), HasSubstr(words));
  }
}

}  // namespace
}  // namespace tandem::studies::step_result_json_test
