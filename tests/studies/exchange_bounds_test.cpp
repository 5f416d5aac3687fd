#include <gtest/gtest.h>

#include "tests/studies/searched.h"

namespace tandem::studies::exchange_bounds_test {
namespace {

TEST(SearchBounds, HoldWhereExchangesOfExpertsHide) {
  expect_bounds_hold(R"(
model: {preset: deepseek-v3, layers: 8}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 1, dp: 16, ep: 8}
training: {sequence: 4096, micro_batch: 1, global_batch: 64, precision: bf16, overlap: {ep: true}}
search:
  axes: {pp: [1, 2, 4], schedule: [1f1b, interleaved-1f1b, dualpipe], ep: [4, 8]}
)",
                     8, 6, 0.87);  // of kernels alone, 0.84
}

// With what a real plan has: layers without experts, further predictions, what is recomputed, kernels in fp8, and chunks of
// different layers beside each other.
TEST(SearchBounds, HoldForPairsThatHideExchanges) {
  for (const std::string more : {"", ", pipeline_layout: \"Ettt|ttttt||mL\"", ", first_stage_layers: 3, last_stage_layers: 1"}) {
    expect_bounds_hold(R"(
model: {preset: deepseek-v3, layers: 8}
cluster: {preset: dgx-h800, gpus: 32}
parallelism: {tp: 1, pp: 4, dp: 8, ep: 8, dispatcher: deepep)" +
                           more + R"(}
training: {sequence: 4096, micro_batch: 1, global_batch: 128, precision: fp8, overlap: {dp: false, ep: true}, framework: deepseek,
           schedule: dualpipe, recompute: [norm, mla-up, activation], fp8_activation_input: true, gates_at_experts: true}
search:
  axes: {tp: [1, 2], sp: [true], pp: [2, 4], vpp: [1, 2], cp: [1], ep: [8, 16], etp: [1], zero: [1, 2], micro_batch: [1, 2],
         schedule: [interleaved-1f1b, dualpipe], recompute: [none, [norm, mla-up, activation], full]}
)",
                       6, 71, 0.94, 0.9);  // without what products leave to communication, 0.89
  }
}

// Experts' ranks lie further apart where stages are between them, and bounds know nothing of it.
TEST(SearchBounds, HoldForPairsWhoseExchangesCrossMoreNodes) {
  expect_bounds_hold(R"(
model: {preset: deepseek-v3, layers: 8}
cluster: {preset: dgx-h800, gpus: 64}
parallelism: {tp: 1, pp: 4, dp: 16, ep: 8, dispatcher: deepep}
training: {sequence: 4096, micro_batch: 1, global_batch: 256, precision: fp8, overlap: {dp: false, ep: true}, framework: deepseek,
           schedule: dualpipe, fp8_activation_input: true, gates_at_experts: true}
search:
  axes: {order: [[tp, cp, ep, pp, dp]], tp: [1, 2], sp: [true], pp: [2, 4], vpp: [1], cp: [1], ep: [8, 16], etp: [1], zero: [1],
         micro_batch: [1, 2], schedule: [interleaved-1f1b, dualpipe], recompute: [none, full]}
)",
                     8, 72, 0.87, 0.88);
}

// Where all is recomputed, far more is there from a backward's first half to its second than from its forward to it.
TEST(SearchBounds, KnowWhatIsThereForTheGradientsOfWeights) {
  for (const std::string overlap : {"true", "false"}) {
    expect_bounds_hold(R"(
model: {preset: deepseek-v3, layers: 16}
cluster: {preset: dgx-h800, gpus: 32}
parallelism: {tp: 1, pp: 8, dp: 4, ep: 4}
training: {sequence: 4096, micro_batch: 1, global_batch: 64, precision: bf16, overlap: {dp: false, ep: )" +
                           overlap + R"(}, schedule: dualpipe}
search:
  axes: {tp: [1], pp: [4, 8], vpp: [1], cp: [1], ep: [4], etp: [1], zero: [1], micro_batch: [1, 2], schedule: [dualpipe, zb-h1, zb-v],
         recompute: [full, [norm, mla-up, activation]]}
)",
                       6, 73, 0.6, 0.9);
  }
}

// Experts of further predictions belong to their ranks, as those of layers do: their gradients are not reduced over all replicas.
TEST(SearchBounds, HoldForExpertsThatPredictFurtherTokens) {
  for (const std::string margin : {"0", "20"}) {
    expect_bounds_hold(R"(
model: {preset: deepseek-v3, layers: 8}
cluster: {preset: dgx-h800, gpus: 32}
parallelism: {tp: 2, pp: 4, vpp: 2, dp: 4, ep: 8, dispatcher: deepep}
training: {sequence: 4096, micro_batch: 1, global_batch: 32, precision: fp8, overlap: {dp: false, ep: true}, schedule: interleaved-1f1b,
           framework: {name: deepseek, gemm_sm_margin: )" +
                           margin + R"(}, fp8_activation_input: true, gates_at_experts: true}
search:
  axes: {order: [[tp, cp, ep, pp, dp], [tp, cp, ep, dp, pp]], tp: [2], sp: [true], pp: [4], vpp: [2], cp: [1], ep: [8], etp: [1], zero: [1],
         micro_batch: [1], schedule: [interleaved-1f1b], recompute: [none, [norm, mla-up, activation], full]}
)",
                       6, 74, 0.9, 0.94);
  }
}

// A backward that no forward runs beside puts the gradients of weights off until an exchange, or until it has sent what it gives.
// A chunk of one layer has no exchange after the layer's.
TEST(SearchBounds, HoldForBackwardsOfOneLayer) {
  expect_bounds_hold(R"(
model: {preset: deepseek-v3, layers: 16, moe: {first_dense_layers: 0}, mtp_depth: 0}
cluster: {preset: dgx-h800, gpus: 64}
parallelism: {tp: 1, pp: 8, vpp: 2, dp: 8, ep: 8, dispatcher: deepep}
training: {sequence: 4096, micro_batch: 1, global_batch: 64, precision: fp8, overlap: {dp: false, ep: true},
           framework: {name: deepseek, gemm_sm_margin: 0}, schedule: interleaved-1f1b, fp8_activation_input: true, gates_at_experts: true}
search:
  axes: {order: [[tp, cp, ep, dp, pp]], tp: [1], sp: [true], pp: [4, 8], vpp: [2, 4], cp: [1], ep: [8], etp: [1], zero: [1],
         micro_batch: [1], schedule: [interleaved-1f1b], recompute: [none, full]}
)",
                     6, 75, 0.94, 0.9);
}

// The gradient of the head's weights comes after what the stage of the loss sends.
TEST(SearchBounds, HoldForALossOnAStageOfItsOwn) {
  expect_bounds_hold(R"(
model: {preset: deepseek-v3, layers: 8, mtp_depth: 0}
cluster: {preset: dgx-h800, gpus: 32}
parallelism: {tp: 1, pp: 4, vpp: 2, dp: 8, ep: 8, dispatcher: deepep, pipeline_layout: "Et|t|t|t|t|t|tt|L"}
training: {sequence: 4096, micro_batch: 1, global_batch: 32, precision: bf16, overlap: {dp: false, ep: true},
           framework: {name: deepseek, gemm_sm_margin: 0}, schedule: interleaved-1f1b, gates_at_experts: true}
search:
  axes: {order: [[tp, cp, ep, dp, pp]], tp: [1, 2], sp: [true], pp: [4], vpp: [2], cp: [1], ep: [8], etp: [1], zero: [0, 1],
         micro_batch: [1], schedule: [interleaved-1f1b], recompute: [none, full]}
)",
                     6, 76, 0.8, 0.8);
}

}  // namespace
}  // namespace tandem::studies::exchange_bounds_test
