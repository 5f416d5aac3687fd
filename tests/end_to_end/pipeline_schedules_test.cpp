// Pipeline schedules beyond 1F1B: the same step as the unsharded one, the same times folded and unfolded, and the bubbles of
// their papers.

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "runtime/analysis/time_parts.h"
#include "scenarios/lowering/lower.h"
#include "sim/simulate.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::pipeline_schedules_test {
namespace {

const std::string zb_h1 = "training.schedule=zb-h1 ";
const std::string zb_v = "training.schedule=zb-v parallelism.vpp=2 ";
const std::string dualpipe = "training.schedule=dualpipe ";
const std::string experts = "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 model.moe.shared_experts=1 ";
const std::string latent =
    "model.kv_heads=8 model.mla.q_rank=12 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 model.mla.v_dim=5 ";

class PipelineSchedules : public testing::TestWithParam<std::string> {};

// fp32 sums in another order: see equivalence_test.cpp.
TEST_P(PipelineSchedules, AreTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_model(words(GetParam()))), 1e-5); }

INSTANTIATE_TEST_SUITE_P(ZeroBubbleH1, PipelineSchedules,
                         testing::Values(zb_h1 + "parallelism.pp=2", zb_h1 + "parallelism.pp=4",
                                         zb_h1 + "parallelism.pp=4 training.overlap.pp=false",
                                         zb_h1 + "parallelism.pp=4 training.global_batch=2",
                                         zb_h1 + "parallelism.pp=2 parallelism.tp=2", zb_h1 + "parallelism.pp=1 parallelism.tp=2",
                                         zb_h1 + "parallelism.pp=4 parallelism.tp=2 parallelism.sp=true parallelism.dp=2",
                                         zb_h1 + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=0 training.bucket_MB=0.004",
                                         zb_h1 + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=2 training.bucket_MB=0.001",
                                         zb_h1 + "parallelism.pp=4 parallelism.dp=2 training.overlap.dp=false",
                                         zb_h1 + "parallelism.pp=2 parallelism.dp=2 model.tied_embeddings=true",
                                         zb_h1 + "parallelism.pp=2 parallelism.tp=2 parallelism.sp=true "
                                                 "training.recompute=selective",
                                         zb_h1 + "parallelism.pp=4 training.recompute=full"));

INSTANTIATE_TEST_SUITE_P(ZeroBubbleV, PipelineSchedules,
                         testing::Values(zb_v + "parallelism.pp=2", zb_v + "parallelism.pp=4 model.layers=8",
                                         zb_v + "parallelism.pp=4 model.layers=8 training.overlap.pp=false",
                                         zb_v + "parallelism.pp=4 model.layers=8 training.global_batch=2",
                                         zb_v + "parallelism.pp=2 parallelism.tp=2 parallelism.sp=true parallelism.dp=2",
                                         zb_v + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=0 training.bucket_MB=0.004",
                                         zb_v + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=2 training.bucket_MB=0.001",
                                         zb_v + "parallelism.pp=2 parallelism.dp=2 model.tied_embeddings=true",
                                         zb_v + "parallelism.pp=2 parallelism.tp=2 model.tied_embeddings=true parallelism.zero=0",
                                         zb_v + "parallelism.pp=2 training.recompute=full"));

INSTANTIATE_TEST_SUITE_P(
    DualPipe, PipelineSchedules,
    testing::Values(dualpipe + "parallelism.pp=2", dualpipe + "parallelism.pp=4",
                    dualpipe + "parallelism.pp=4 training.global_batch=16",
                    dualpipe + "parallelism.pp=4 training.global_batch=12 training.overlap.pp=false",
                    dualpipe + "parallelism.pp=2 parallelism.tp=2 parallelism.sp=true parallelism.dp=2",
                    dualpipe + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=0 training.bucket_MB=0.004",
                    dualpipe + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=2 training.bucket_MB=0.001",
                    dualpipe + "parallelism.pp=4 parallelism.dp=2 model.tied_embeddings=true "
                               "training.global_batch=16",
                    dualpipe + "parallelism.pp=2 model.tied_embeddings=true parallelism.zero=0",
                    dualpipe + "parallelism.pp=4 training.recompute=full"));

// Weights gathered for each piece, in the order in which passes take turns; and context parallelism beside the pipeline.
INSTANTIATE_TEST_SUITE_P(
    BesideOthers, PipelineSchedules,
    testing::Values(zb_h1 + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=3",
                    zb_h1 + "parallelism.pp=4 parallelism.cp=2 parallelism.zero=3 parallelism.prefetch=3",
                    zb_v + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=3 model.tied_embeddings=true",
                    zb_v + "parallelism.pp=2 parallelism.cp=2 parallelism.tp=2 parallelism.sp=true",
                    dualpipe + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=3",
                    dualpipe + "parallelism.pp=4 parallelism.cp=2 parallelism.zero=3 parallelism.reshard_after_forward=false",
                    dualpipe + "parallelism.pp=2 parallelism.dp=4 parallelism.zero=3 parallelism.hsdp=2 training.global_batch=16",
                    zb_h1 + experts + "parallelism.pp=2 parallelism.dp=2 parallelism.ep=2",
                    zb_v + experts + latent + "parallelism.pp=2 parallelism.dp=2 parallelism.ep=2 model.mtp_depth=1",
                    dualpipe + experts + "parallelism.pp=4 parallelism.dp=2 parallelism.ep=2 training.global_batch=16",
                    dualpipe + experts + latent + "parallelism.pp=2 parallelism.dp=2 parallelism.ep=2 model.mtp_depth=1 " +
                        "training.recompute=[norm,mla-up]",
                    experts + latent + "parallelism.dp=2 parallelism.ep=2 training.recompute=[norm,activation,mla-up]",
                    experts + "parallelism.dp=2 parallelism.ep=2 training.recompute=[mlp]",
                    "model.mtp_depth=1 model.tied_embeddings=true parallelism.pp=2 " + dualpipe));

// What is the same on all tensor-parallel ranks travels in parts.
const std::string scattered = "parallelism.scatter_gather=true ";
INSTANTIATE_TEST_SUITE_P(
    ScatterGather, PipelineSchedules,
    testing::Values(scattered + "parallelism.pp=2 parallelism.tp=2",
                    scattered + "parallelism.pp=4 parallelism.tp=4 training.overlap.pp=false",
                    scattered + "parallelism.pp=2 parallelism.tp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b "
                                "training.overlap.pp=false",
                    scattered + zb_v + "parallelism.pp=2 parallelism.tp=2",
                    scattered + dualpipe + "parallelism.pp=2 parallelism.tp=2 training.overlap.pp=false",
                    scattered + "parallelism.pp=2 parallelism.tp=2 parallelism.cp=2 training.recompute=full"));

INSTANTIATE_TEST_SUITE_P(UnevenStages, PipelineSchedules,
                         testing::Values("parallelism.pp=4 model.layers=7 parallelism.first_stage_layers=1 "
                                         "parallelism.last_stage_layers=2",
                                         "parallelism.pp=2 parallelism.first_stage_layers=1",
                                         "parallelism.pp=2 parallelism.vpp=2 model.layers=6 parallelism.last_stage_layers=2 "
                                         "training.schedule=interleaved-1f1b",
                                         zb_v + "parallelism.pp=2 model.layers=6 parallelism.last_stage_layers=2",
                                         dualpipe + "parallelism.pp=4 model.layers=6 parallelism.first_stage_layers=1 "
                                                    "parallelism.last_stage_layers=1"));

TEST(PipelineSchedulesFolded, HaveTheTimesOfTheUnfolded) {
  for (const std::string& schedule : {zb_h1, zb_v + "model.layers=8 ", dualpipe}) {
    for (const char* more : {"", "training.overlap.pp=false ", "faults={slow_gpu: {rank: 5, factor: 0.5}}"}) {
      const std::string mesh = "parallelism.tp=2 parallelism.sp=true parallelism.pp=4 parallelism.dp=2 training.global_batch=16 ";
      SCOPED_TRACE(schedule + more);
      std::vector<std::string> overrides = words(schedule + mesh);
      if (*more != '\0') overrides.emplace_back(more);
      expect_equal_when_folded(tiny_cluster(overrides));
    }
  }
}

const std::vector<std::string> schedules{"training.schedule=gpipe ",
                                         "training.schedule=1f1b ",
                                         "training.schedule=interleaved-1f1b parallelism.vpp=2 ",
                                         "training.schedule=interleaved-1f1b parallelism.vpp=4 ",
                                         zb_h1,
                                         zb_v,
                                         dualpipe};

/// The executor throws when the step gets stuck.
void expect_an_end(const std::string& step) {
  SCOPED_TRACE(step);
  const Scenario scenario = tiny_cluster(words(step + " model.layers=32 training.overlap.pp=false"));
  const Dag dag = lower(scenario, make_world(scenario, true));
  EXPECT_GT(simulate(dag).timeline.makespan(), 0);
}

TEST(PipelineSchedulesWithoutOverlap, NeverGetStuck) {
  for (const std::string& schedule : schedules) {
    for (const int pp : {2, 4, 8}) {
      for (const int rounds : {1, 2, 5}) {
        if (rounds == 1 && (schedule == zb_v || schedule == dualpipe)) continue;  // they need more micro-batches
        expect_an_end(schedule + "parallelism.pp=" + std::to_string(pp) +
                      " training.global_batch=" + std::to_string(rounds * pp));
      }
    }
  }
}

// Neither where the CPU waits for routing, or for what stages receive: it posts receives before.
TEST(PipelineSchedulesWithoutOverlap, NeverGetStuckWhereTheCpuWaits) {
  for (const std::string& schedule : schedules) {
    for (const std::string& framework :
         {experts + "training.framework=megatron-core ", std::string("training.framework=megatron-2021 ")})
      expect_an_end(schedule + framework + "parallelism.pp=4 training.global_batch=8");
  }
}

/// Checks that no kernel of a pass starts before what the pass receives is there.
void expect_passes_begin_with_what_they_receive(const Scenario& scenario) {
  using Pass = std::tuple<RankIndex, Phase, std::int16_t, std::int32_t>;
  const Dag dag = lower(scenario, make_world(scenario, true));
  const Timeline timeline = simulate(dag).timeline;
  std::map<Pass, Seconds> arrival;
  const auto pass_of = [](const Task& task) {
    return Pass(task.rank, task.phase == Phase::recompute ? Phase::backward_input : task.phase, task.chunk, task.micro_batch);
  };
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op == OpKind::receive) arrival[pass_of(dag.tasks[id])] = timeline.end[id];
  }
  EXPECT_FALSE(arrival.empty());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].stream != Stream::compute) continue;
    const auto there = arrival.find(pass_of(dag.tasks[id]));
    if (there != arrival.end()) {
      EXPECT_GE(timeline.start[id], there->second) << dag.name_of_task(id);
    }
  }
}

// What is recomputed does not need the gradient that the backward waits for, and yet no framework computes it in advance.
TEST(PipelineRecompute, BeginsWhenTheGradientIsThere) {
  for (const std::string& schedule :
       {std::string("training.schedule=gpipe "), std::string("training.schedule=1f1b "),
        std::string("training.schedule=interleaved-1f1b parallelism.vpp=2 "), zb_h1, zb_v, dualpipe}) {
    for (const char* recompute : {"full ", "[norm] ", "selective "}) {
      for (const char* mesh : {"", "parallelism.tp=2 ", "parallelism.tp=2 parallelism.scatter_gather=true "}) {
        SCOPED_TRACE(schedule + recompute + mesh);
        expect_passes_begin_with_what_they_receive(tiny_cluster(words(
            schedule + mesh + "training.recompute=" + recompute + "parallelism.pp=4 model.layers=8 training.global_batch=16")));
      }
    }
  }
}

/// Compute time of one micro-batch on the second stage, which holds neither end of the model.
struct ActionTimes {
  Seconds forward = 0, backward_input = 0, backward_weight = 0;
};

struct Measured {
  Seconds bubble = 0;
  ActionTimes times;
};

Measured measure(int stages, int micro_batches, const std::string& schedule, int chunks = 1) {
  const Scenario scenario = pure_pipeline(stages, micro_batches, schedule, chunks);
  const Dag dag = lower(scenario, make_world(scenario, true));
  const Timeline timeline = simulate(dag).timeline;
  Measured measured;
  measured.bubble = mean_over_ranks(dag, time_parts(dag, timeline)).bubble;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    // Not micro-batch 0, before whose backward gradients are cleared.
    if (dag.ranks[task.rank].pp != 1 || task.micro_batch != 1 || task.stream != Stream::compute) continue;
    const Seconds duration = timeline.end[id] - timeline.start[id];
    if (task.phase == Phase::forward) measured.times.forward += duration;
    if (task.phase == Phase::backward_input) measured.times.backward_input += duration;
    if (task.phase == Phase::backward_weight) measured.times.backward_weight += duration;
  }
  return measured;
}

// Qi et al. 2023 (arXiv 2401.10241), table 2: 1F1B idles (p - 1)(F + B + W), ZB-H1 (p - 1)(F + B - W), with B the time of the
// gradient of the inputs and W that of the weights.
TEST(PipelineBubbles, ZeroBubbleH1) {
  for (const auto& [p, m] : {std::pair(4, 8), std::pair(8, 32)}) {
    const Measured plain = measure(p, m, "1f1b");
    const Measured split = measure(p, m, "zb-h1");
    const ActionTimes t = split.times;
    EXPECT_GT(t.backward_weight, 0.5 * t.forward);
    const Seconds expected = (p - 1) * (t.forward + t.backward_input - t.backward_weight);
    EXPECT_NEAR(split.bubble, expected, 0.02 * expected) << "p " << p << ", m " << m;
    const Seconds of_plain = (p - 1) * (t.forward + t.backward_input + t.backward_weight);
    EXPECT_NEAR(plain.bubble, of_plain, 0.02 * of_plain) << "p " << p << ", m " << m;
  }
}

// deepseek-ai/DualPipe, README: (p / 2 - 1)(F&B + B - 3W), B with the gradient of the weights, and a pair F&B as long as its
// parts where it has no communication to hide. It is exact where F, B and W take as long as each other; attention makes B longer.
TEST(PipelineBubbles, DualPipe) {
  for (const auto& [p, m] : {std::pair(4, 16), std::pair(8, 32), std::pair(16, 48)}) {
    const Measured dualpipe = measure(p, m, "dualpipe");
    const ActionTimes t = dualpipe.times;
    const Seconds backward = t.backward_input + t.backward_weight;
    const int turns = p / 2 - 1;
    const Seconds expected = turns * (t.forward + backward + backward - 3 * t.backward_weight);
    EXPECT_NEAR(dualpipe.bubble, expected, 0.07 * expected) << "p " << p << ", m " << m;
  }
}

TEST(PipelineBubbles, ZeroBubbleVAndDualPipeIdleLessThan1F1B) {
  const Seconds plain = measure(4, 16, "1f1b").bubble;
  EXPECT_LT(measure(4, 16, "zb-v", 2).bubble, 0.5 * plain);
  EXPECT_LT(measure(4, 16, "dualpipe").bubble, 0.5 * plain);
}

}  // namespace
}  // namespace tandem::studies::pipeline_schedules_test
