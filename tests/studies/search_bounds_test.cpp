#include <gtest/gtest.h>

#include "tests/studies/searched.h"

namespace tandem::studies::search_bounds_test {
namespace {

TEST(SearchBounds, HoldForADenseModel) {
  expect_bounds_hold(R"(
model: {preset: llama3-8b, layers: 16}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 1, dp: 16}
training: {sequence: 4096, micro_batch: 1, global_batch: 64, precision: bf16}
)",
                     60, 1);
}

TEST(SearchBounds, HoldForAModelWithTiedEmbeddings) {
  expect_bounds_hold(R"(
model: {preset: gpt3-175b, layers: 8, hidden: 4096, heads: 32}
cluster: {preset: dgx-h100, gpus: 32}
parallelism: {tp: 1, dp: 32}
training: {sequence: 2048, micro_batch: 1, global_batch: 64, precision: bf16}
)",
                     50, 2);
}

TEST(SearchBounds, HoldForCompressedGradients) {
  for (const std::string compressor : {"{method: top-k, ratio: 20}", "{method: one-bit}", "{method: powersgd, rank: 4}"}) {
    expect_bounds_hold(R"(
model: {preset: llama3-8b, layers: 8}
cluster: {preset: dgx-h100, gpus: 16, nic_gbps: 50}
parallelism: {tp: 1, dp: 16}
training: {sequence: 4096, micro_batch: 1, global_batch: 32, precision: bf16, compressor: )" +
                           compressor + R"(}
search:
  axes: {zero: [0, 1], pp: [1, 2, 4]}
)",
                       12, 7, 0.6, 0.8);
  }
}

// Bounds count nothing for attention: other micro-batches may have shorter documents.
TEST(SearchBounds, HoldForDocuments) {
  for (const std::string layout : {"document-zigzag", "zigzag", "contiguous"}) {
    expect_bounds_hold(R"(
model: {preset: llama3-8b, layers: 8}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 1, dp: 16, cp_layout: )" +
                           layout +
                           R"(}
training: {sequence: 8192, micro_batch: 1, global_batch: 32, precision: bf16, documents: {mean: 1500, sigma: 1.2, streams: 2}}
search:
  axes: {tp: [1, 2], cp: [1, 2, 4], pp: [1, 2]}
)",
                       8, 21, 0.6);
  }
}

TEST(SearchBounds, HoldForHeadsDealtOutInGroups) {
  expect_bounds_hold(R"(
model: {preset: llama3-8b, layers: 8}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 1, dp: 16, cp_method: ulysses-ring, cp_ulysses: 2}
training: {sequence: 16384, micro_batch: 1, global_batch: 16, precision: bf16}
search:
  axes: {tp: [1, 2, 4], cp: [4, 8], pp: [1, 2]}
)",
                     12, 22, 0.7);
}

// What a layer waits for its collectives is not hidden behind the kernels of another pass: bounds of kernels alone are far below.
TEST(SearchBounds, HoldForPassesInTurns) {
  expect_bounds_hold(R"(
model: {preset: llama3-70b, layers: 16}
cluster: {preset: dgx-h100, gpus: 32}
parallelism: {tp: 8, dp: 4}
training: {sequence: 4096, micro_batch: 1, global_batch: 64, precision: bf16}
search:
  axes: {tp: [8], cp: [1], sp: [true], pp: [2, 4], zero: [0, 1, 2], micro_batch: [1, 2], schedule: [dualpipe], recompute: [none, selective]}
)",
                     8, 41, 0.85, 0.9);
}

// Each layer's are gathered and reduced by themselves.
TEST(SearchBounds, HoldForShardedWeights) {
  for (const std::string more : {"", ", reshard_after_forward: false", ", prefetch: 3", ", gather_unit: weight"}) {
    expect_bounds_hold(R"(
model: {preset: mixtral-8x7b, layers: 8}
cluster: {preset: dgx-h100, gpus: 32, nic_gbps: 100}
parallelism: {tp: 1, dp: 32, ep: 1, zero: 3)" +
                           more +
                           R"(}
training: {sequence: 4096, micro_batch: 1, global_batch: 64, precision: bf16}
search:
  axes: {zero: [3], tp: [1, 2], cp: [1], pp: [1, 2, 4], vpp: [1, 2, 4], schedule: [1f1b, interleaved-1f1b, zb-v, dualpipe]}
)",
                       10, 31, 0.7, 0.95);
  }
}

// A stage gathers what its passes come to first: of DualPipe's second half, the chunk of the mirrored copy.
TEST(SearchBounds, HoldForShardedWeightsOfMirroredCopies) {
  expect_bounds_hold(R"(
model: {preset: mixtral-8x7b, layers: 8}
cluster: {preset: dgx-h100, gpus: 32, nic_gbps: 100}
parallelism: {tp: 1, dp: 32, ep: 1, zero: 3}
training: {sequence: 4096, micro_batch: 1, global_batch: 64, precision: bf16}
search:
  axes: {order: [[tp, cp, ep, pp, dp]], zero: [3], tp: [1, 2], sp: [false], cp: [1], pp: [2], vpp: [1], ep: [1], micro_batch: [1, 2],
         schedule: [dualpipe], recompute: [none, selective]}
)",
                     6, 32, 0.6, 0.9);
}

// Where passes hide no gathers and reductions, they go on within passes, and may be over while a stage waits for others.
TEST(SearchBounds, HoldForShardedWeightsWithoutOverlap) {
  expect_bounds_hold(R"(
model: {preset: llama3-8b, layers: 8}
cluster: {preset: dgx-h100, gpus: 16, nic_gbps: 50}
parallelism: {tp: 1, dp: 16, zero: 3}
training: {sequence: 4096, micro_batch: 1, global_batch: 32, precision: fp8, overlap: {dp: false}}
search:
  axes: {order: [[tp, cp, ep, pp, dp]], zero: [3], tp: [1, 2, 4], sp: [true], cp: [1], pp: [2, 4], vpp: [1, 2], micro_batch: [8, 16],
         schedule: [1f1b, interleaved-1f1b, zb-v, dualpipe], recompute: [none]}
)",
                     12, 33, 0.6, 0.85);
}

// Between slow nodes a pass waits for gathers that begin when its layers come near.
TEST(SearchBounds, HoldForWeightsThatComeLate) {
  expect_bounds_hold(R"(
model: {preset: llama3-8b, layers: 32}
cluster: {preset: dgx-h100, gpus: 32, nic_gbps: 50}
parallelism: {tp: 1, dp: 32, zero: 3}
training: {sequence: 4096, micro_batch: 1, global_batch: 64, precision: bf16}
search:
  axes: {zero: [3], tp: [1, 2], cp: [1], pp: [2, 4], vpp: [2, 4], micro_batch: [1, 2], schedule: [interleaved-1f1b]}
)",
                     8, 43, 0.92, 0.95);
}

TEST(SearchBounds, HoldForExperts) {
  expect_bounds_hold(R"(
model: {preset: mixtral-8x22b, layers: 8}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 1, dp: 16, ep: 8}
training: {sequence: 4096, micro_batch: 1, global_batch: 64, precision: bf16}
)",
                     40, 3);
}

TEST(SearchBounds, HoldWithoutOverlapOfGradientsInFp8) {
  expect_bounds_hold(R"(
model: {preset: llama3-8b, layers: 8}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 1, dp: 16}
training: {sequence: 4096, micro_batch: 1, global_batch: 32, precision: fp8, overlap: {dp: false}}
)",
                     40, 4, 0.9, 0.95);
}

TEST(SearchBounds, HoldWithLayersInBf16AndParametersGatheredInFp4) {
  expect_bounds_hold(R"(
model: {preset: llama3-8b, layers: 8}
cluster: {preset: dgx-b200, gpus: 16}
parallelism: {tp: 1, dp: 16}
training: {sequence: 4096, micro_batch: 1, global_batch: 32, precision: fp4, fp4_param_gather: true, first_last_layers_bf16: true,
           framework: megatron-core}
)",
                     40, 4, 0.8, 0.6);  // embedding and head count as if in fp4, too
}

TEST(SearchBounds, HoldWithTheHeadInFp8BesideLayersInBf16) {
  expect_bounds_hold(R"(
model: {preset: llama3-8b, layers: 8}
cluster: {preset: dgx-b200, gpus: 16}
parallelism: {tp: 1, dp: 16}
training: {sequence: 4096, micro_batch: 1, global_batch: 32, precision: fp8, recipe: mxfp8, fp8_output_proj: true,
           first_last_layers_bf16: true, framework: megatron-core}
)",
                     24, 4, 0.8, 0.75);
}

TEST(SearchBounds, HoldForOtherOrdersFrameworksAndUnevenStages) {
  expect_bounds_hold(R"(
model: {preset: llama3-8b, layers: 13}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 1, dp: 16}
training: {sequence: 4096, micro_batch: 1, global_batch: 32, precision: bf16, framework: megatron-core}
search:
  axes: {order: [[tp, cp, ep, dp, pp], [dp, tp, cp, ep, pp], [tp, cp, ep, pp, dp]], placement: [packed, round-robin], pp: [1, 2, 4]}
)",
                     40, 5, 0.7, 0.85);
}

// Where tp * cp is more than a node, other places of ranks may have the one group or the other in a node.
TEST(SearchBounds, HoldWhereOtherPlacesJoinWhatPackedRanksDoNot) {
  for (const std::string axes : {"placement: [packed, round-robin]", "order: [[tp, cp, ep, dp, pp], [cp, tp, ep, dp, pp]]"})
    expect_bounds_hold(R"(
model: {preset: llama3-8b, layers: 13}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 2, sp: false, cp: 8, dp: 1}
training: {sequence: 4096, micro_batch: 1, global_batch: 32, precision: bf16}
search:
  axes: {tp: [2], cp: [8], sp: [false], pp: [1], zero: [3], micro_batch: [1, 32], recompute: [none, full], )" +
                           axes + "}\n",
                       8, 1, 0.7, 0.9);
}

// The layout stays where as many chunks are; elsewhere the layers are split evenly.
TEST(SearchBounds, HoldForPipelineLayouts) {
  expect_bounds_hold(R"(
model: {preset: llama3-8b, layers: 12}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 1, pp: 4, dp: 4, pipeline_layout: "Ett|t*6||t*4,L"}
training: {sequence: 4096, micro_batch: 1, global_batch: 32, precision: bf16}
search:
  axes: {pp: [2, 4], vpp: [1, 2], cp: [1], micro_batch: [1, 2]}
)",
                     24, 8, 0.6);
}

TEST(SearchBounds, HoldForFurtherPredictionsOnAStageOfTheirOwn) {
  for (const std::string layout : {"E|t*4|ttt,m|L", "Et*4|ttt|m|L", "Et*7|m||L", "E|t*7||mL"}) {
    expect_bounds_hold(R"(
model: {preset: deepseek-v3, layers: 7}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 1, pp: 4, dp: 4, ep: 4, pipeline_layout: ")" +
                           layout + R"("}
training: {sequence: 4096, micro_batch: 1, global_batch: 32, precision: bf16}
search:
  axes: {pp: [4], vpp: [1], ep: [4], cp: [1], tp: [1, 2], micro_batch: [1], zero: [1, 3], recompute: [none, full]}
)",
                       5, 9, 0.5);
  }
}

}  // namespace
}  // namespace tandem::studies::search_bounds_test
