// Multi-token prediction: the sharded step is the unsharded one, and every depth adds its layer, its head and its term of the
// loss.

#include <gtest/gtest.h>

#include "scenarios/lowering/lower.h"
#include "scenarios/spec/model_flops.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::mtp_test {
namespace {

class MultiToken : public testing::TestWithParam<const char*> {};

TEST_P(MultiToken, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_model(words(GetParam()))), 1e-5); }

INSTANTIATE_TEST_SUITE_P(
    Meshes, MultiToken,
    testing::Values("model.mtp_depth=1 parallelism.tp=2", "model.mtp_depth=1 parallelism.tp=2 parallelism.sp=true",
                    "model.mtp_depth=2 parallelism.dp=2 parallelism.zero=2",
                    "model.mtp_depth=1 parallelism.pp=2 parallelism.dp=2",
                    "model.mtp_depth=2 parallelism.pp=2 parallelism.tp=2 parallelism.sp=true training.recompute=full",
                    "model.mtp_depth=1 model.tied_embeddings=true parallelism.tp=2",
                    "model.mtp_depth=2 model.tied_embeddings=true parallelism.pp=2 parallelism.dp=2",
                    "model.mtp_depth=1 parallelism.cp=2 parallelism.tp=2 parallelism.sp=true",
                    "model.mtp_depth=2 parallelism.dp=2 parallelism.zero=3",
                    "model.mtp_depth=1 parallelism.pp=2 training.schedule=zb-h1",
                    "model.mtp_depth=1 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b"));

std::size_t count(const Dag& dag, OpKind op, Phase phase) {
  std::size_t found = 0;
  for (const Task& task : dag.tasks) found += task.op == op && task.phase == phase ? 1 : 0;
  return found;
}

TEST(MultiTokenStep, AddsALayerAndALossPerDepth) {
  const Scenario scenario = tiny_model(words("model.mtp_depth=2"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  const std::size_t micro_batches = 8;
  EXPECT_EQ(count(dag, OpKind::attention, Phase::forward), (4 + 2) * micro_batches);
  EXPECT_EQ(count(dag, OpKind::cross_entropy_loss, Phase::forward), (1 + 2) * micro_batches);
  const Scenario plain = tiny_model({});
  const double layer_and_head = 3 * 2 * 32 * 96 + model_flops_per_token(plain.model, 16) / 4 - 3 * 2 * 32 * 96 / 4.0;
  const double per_depth = layer_and_head + 3 * 2 * 2 * 32 * 32;
  EXPECT_NEAR(dag.info.model_flops_per_token, model_flops_per_token(plain.model, 16) + 2 * per_depth, 1e-6);
}

// Position i has embedded token i, and depth k token i + k; it predicts token i + 1, and i + 1 + k.
TEST(MultiTokenStep, LooksFurtherAhead) {
  const Scenario scenario = tiny_model(words("model.mtp_depth=2"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  std::vector<std::pair<InputShard::Content, std::int32_t>> first_micro_batch;
  for (const InputShard& input : dag.inputs)
    if (input.first_sequence == 0) first_micro_batch.emplace_back(input.content, input.ahead);
  using Content = InputShard::Content;
  EXPECT_EQ(first_micro_batch, (std::vector<std::pair<Content, std::int32_t>>{{Content::tokens, 0},
                                                                              {Content::targets, 0},
                                                                              {Content::tokens, 1},
                                                                              {Content::targets, 1},
                                                                              {Content::tokens, 2},
                                                                              {Content::targets, 2}}));
}

}  // namespace
}  // namespace tandem::studies::mtp_test
