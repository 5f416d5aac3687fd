// Segment checkpointing: one input for several layers, which the backward recomputes together.
#include <gtest/gtest.h>

#include "runtime/analysis/memory.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/reading/load.h"
#include "sim/simulate.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::segments_test {
namespace {

class Segments : public testing::TestWithParam<const char*> {};

// fp32 sums in another order: see equivalence_test.cpp.
TEST_P(Segments, AreTheUnshardedStep) {
  const std::string segment = "training.recompute=full training.recompute_segment=2 ";
  EXPECT_LT(largest_difference(tiny_model(words(segment + GetParam()))), 1e-5);
}

// Chunks of an odd number of layers end in a shorter segment; ZeRO-3 gathers weights for the recomputed layers, too.
INSTANTIATE_TEST_SUITE_P(
    Meshes, Segments,
    testing::Values("model.layers=5", "model.layers=6 parallelism.pp=2 parallelism.tp=2 parallelism.sp=true",
                    "model.layers=5 parallelism.dp=4 parallelism.zero=3",
                    "parallelism.dp=2 parallelism.zero=3 parallelism.prefetch=0",
                    "parallelism.dp=2 parallelism.zero=3 parallelism.reshard_after_forward=false parallelism.prefetch=3",
                    "model.layers=6 parallelism.pp=2 training.schedule=zb-h1 parallelism.dp=2 parallelism.zero=2",
                    "model.layers=12 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b",
                    "model.layers=6 parallelism.pp=2 training.schedule=dualpipe model.mtp_depth=1",
                    "training.hidden_dropout=0.2 parallelism.tp=2", "model.layers=3 training.recompute_segment=8"));

constexpr std::int64_t s = 128, b = 2, h = 256, a = 8, layers = 8;

/// Of a GPT whose loss weighs little beside a layer.
Bytes peak(std::int64_t segment) {
  const Scenario scenario = tiny_cluster(
      {"model={layers: 8, hidden: 256, heads: 8, kv_heads: 8, head_dim: 32, ffn: 1024, gated: false, norm: layer, vocab: 8}",
       "training={sequence: 128, micro_batch: 2, global_batch: 2, precision: bf16, attention: unfused, hidden_dropout: 0.1, "
       "attention_dropout: 0.1, recompute: full}",
       "training.recompute_segment=" + std::to_string(segment)});
  const Dag dag = lower(scenario, make_world(scenario, true));
  return memory_use(dag, simulate(dag).timeline).front().activations;
}

// At the fullest moment the inputs of all segments are kept, 2 sbh each, and the last segment's layers whole, 34 sbh + 5 a s^2 b
// each, its first one's input counted once.
TEST(SegmentMemory, IsInputsAndOneWholeSegment) {
  const auto kept = [](std::int64_t segment) {
    return (layers / segment - 1) * 2 * s * b * h + segment * (34 * s * b * h + 5 * a * s * s * b);
  };
  for (const std::int64_t segment : {2, 4, 8}) EXPECT_EQ(peak(segment) - peak(1), kept(segment) - kept(1)) << segment;
}

std::string refusal(const std::string& overrides) {
  try {
    tiny_model(words(overrides));
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(SegmentMemory, IsRefusedWithoutFullRecompute) {
  EXPECT_NE(refusal("training.recompute_segment=2").find("without recompute full"), std::string::npos);
  EXPECT_NE(
      refusal("training.recompute=full training.recompute_every=2 training.recompute_segment=2").find("expected one of them"),
      std::string::npos);
}

}  // namespace
}  // namespace tandem::studies::segments_test
