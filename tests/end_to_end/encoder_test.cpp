// A vision encoder before the model: the sharded step is the unsharded one, folded times are the unfolded ones; its FLOPs,
// parameters and memory are closed forms, and a frozen one goes forward alone.

#include <gtest/gtest.h>

#include "scenarios/lowering/lower.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::encoder_test {
namespace {

const std::string encoder =
    "model.encoder.layers=2 model.encoder.hidden=24 model.encoder.heads=4 model.encoder.ffn=40 model.encoder.patches=16 "
    "model.encoder.merge=2 model.encoder.patch_width=12 training.micro_batch=1 ";

std::vector<std::string> with_encoder(const std::string& fields) { return words(encoder + fields); }

class Encoder : public testing::TestWithParam<const char*> {};

TEST_P(Encoder, ShardedStepIsTheUnshardedOne) { EXPECT_LT(largest_difference(tiny_model(with_encoder(GetParam()))), 1e-5); }

TEST_P(Encoder, FrozenToo) {
  EXPECT_LT(largest_difference(tiny_model(with_encoder("model.encoder.frozen=true " + std::string(GetParam())))), 1e-5);
}

TEST_P(Encoder, FoldedTimesAreTheUnfoldedOnes) {
  EXPECT_GE(expect_equal_when_folded(tiny_cluster(with_encoder(GetParam()))), 1U);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, Encoder,
    testing::Values(
        "parallelism.dp=2", "parallelism.tp=2", "parallelism.tp=4 parallelism.sp=true", "parallelism.pp=2 parallelism.dp=2",
        "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=2",
        "parallelism.dp=4 parallelism.zero=3", "parallelism.tp=2 parallelism.dp=2 parallelism.zero=3 parallelism.pp=2",
        "parallelism.dp=2 training.recompute=full", "parallelism.tp=2 parallelism.sp=true training.recompute=selective",
        "model.encoder.images=3 model.encoder.patches=8 parallelism.tp=2 parallelism.sp=true parallelism.dp=2",
        "parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b",
        "parallelism.pp=2 training.schedule=zb-h1 parallelism.tp=2", "parallelism.pp=2 parallelism.vpp=2 training.schedule=zb-v",
        "parallelism.pp=2 training.schedule=dualpipe",
        "model.encoder.gated=true model.encoder.norm=rms model.encoder.linear_bias=false model.encoder.rotary=false "
        "model.tied_embeddings=true parallelism.pp=2 parallelism.dp=2",
        "model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=24 parallelism.dp=2 parallelism.ep=2",
        "training.optimizer=muon parallelism.dp=2 parallelism.tp=2",
        "training.optimizer=adafactor parallelism.dp=2 parallelism.zero=3", "model.mtp_depth=1 parallelism.tp=2",
        "training.overlap.tp=true parallelism.tp=2 parallelism.sp=true",
        "parallelism.dp=2 parallelism.zero=0 training.sync_every=2",
        // Gemma 3's: learned positions, pooling, one product behind a norm; alone, and shared out with and without sp.
        "model.encoder.patch_bias=true model.encoder.learned_positions=18 model.encoder.rotary=false model.encoder.pool=true "
        "model.encoder.projector_norm=true model.encoder.projector_bias=false model.embedding_factor=3 parallelism.dp=2",
        "model.encoder.patch_bias=true model.encoder.learned_positions=16 model.encoder.rotary=false model.encoder.pool=true "
        "model.encoder.projector_norm=true model.norm=rms model.embedding_factor=3 parallelism.tp=2",
        "model.encoder.patch_bias=true model.encoder.learned_positions=16 model.encoder.pool=true parallelism.tp=2 "
        "model.encoder.projector_norm=true model.embedding_factor=3 parallelism.sp=true parallelism.pp=2 parallelism.zero=1 "
        "parallelism.dp=2",
        "model.encoder.images=2 model.encoder.patches=8 model.encoder.learned_positions=8 model.encoder.pool=true "
        "parallelism.tp=4 parallelism.sp=true",
        // Llama 4's: a class token, a norm before the layers, an adapter of two products and another one.
        "model.encoder.learned_positions=17 model.encoder.class_token=true model.encoder.first_norm=true "
        "model.encoder.projector=[20,28] model.encoder.projector_bias=false parallelism.dp=2",
        "model.encoder.learned_positions=17 model.encoder.class_token=true model.encoder.first_norm=true "
        "model.encoder.projector=[20,28] parallelism.tp=4 parallelism.zero=3",
        "model.encoder.images=2 model.encoder.patches=8 model.encoder.learned_positions=9 model.encoder.class_token=true "
        "model.encoder.projector=[20,28] parallelism.tp=2 parallelism.sp=true training.recompute=full",
        "model.encoder.class_token=true model.encoder.projector=[20,28,12] parallelism.tp=2 parallelism.pp=2 "
        "training.schedule=zb-h1"));

Dag lowered(const std::string& fields) {
  const Scenario scenario = tiny_model(with_encoder(fields));
  return lower(scenario, make_world(scenario, false));
}

double flops_of_kernels(const Dag& dag) {
  double flops = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (!is_communication(dag.tasks[id].op)) flops += static_cast<double>(cost_of(dag, id).flops);
  return flops;
}

// All products of a step are those that the model's FLOPs count, but for attention: kernels count the scores once more in the
// backward, and the first product has no gradient of the pixels. With attention to all patches, of 16 queries and keys of width
// 24 each, the forward has 4 * 16 * 16 * 24 FLOPs for a layer.
TEST(EncoderFlops, AreThoseOfItsProducts) {
  const Dag with = lowered("parallelism.dp=1"), frozen = lowered("model.encoder.frozen=true parallelism.dp=1");
  const Scenario plain_model = tiny_model(words("training.micro_batch=1"));
  const Dag plain = lower(plain_model, make_world(plain_model, false));
  const double sequences = static_cast<double>(with.info.tokens) / 16;
  const double attention = 2 * 4.0 * 16 * 16 * 24, patches = 2.0 * 16 * 12 * 24;
  const double layers = 2 * 2.0 * 16 * (4 * 24 * 24 + 2 * 24 * 40), projector = 2.0 * 8 * 48 * (48 + 32);
  const double forward = attention + patches + layers + projector;
  EXPECT_DOUBLE_EQ(frozen.info.model_flops_per_token - plain.info.model_flops_per_token, forward / 16);
  EXPECT_DOUBLE_EQ(with.info.model_flops_per_token - plain.info.model_flops_per_token, 3 * forward / 16);
  EXPECT_DOUBLE_EQ(flops_of_kernels(frozen) - flops_of_kernels(plain), forward * sequences);
  EXPECT_DOUBLE_EQ(flops_of_kernels(with) - flops_of_kernels(plain), (3 * forward - patches + attention / 2) * sequences);
}

std::int64_t elements(const Dag& dag, BufferKind kind) {
  std::int64_t sum = 0;
  for (BufferId id = 0; id < dag.buffers.size(); ++id)
    if (dag.buffers[id].kind == kind && dag.buffers[id].base == id) sum += dag.buffers[id].shape.elements();
  return sum;
}

// With a class token the layers have a row more, and attention a key; means of two patches are as wide as one.
TEST(EncoderFlops, OfPooledPatchesAndClassTokens) {
  const auto forward = [](const char* fields) {
    const Scenario plain = tiny_model(words("training.micro_batch=1"));
    const Scenario with = tiny_model(with_encoder("model.encoder.frozen=true " + std::string(fields)));
    return 16 * (lower(with, make_world(with, false)).info.model_flops_per_token -
                 lower(plain, make_world(plain, false)).info.model_flops_per_token);
  };
  const auto of = [](double rows, double projector) {
    return 2 * 4.0 * rows * rows * 24 + 2.0 * 16 * 12 * 24 + 2 * 2.0 * rows * (4 * 24 * 24 + 2 * 24 * 40) + 2 * 8 * projector;
  };
  EXPECT_DOUBLE_EQ(forward("model.encoder.pool=true"), of(16, 24 * 32));
  EXPECT_DOUBLE_EQ(forward("model.encoder.class_token=true model.encoder.projector=[20,28]"),
                   of(17, 48 * 20 + 20 * 28 + 28 * 32));
}

// Patches 12 * 24; a layer 4 * 24 * 24 + 2 * 24 * 40 of products, 4 * 24 + 40 + 24 of biases, 4 * 24 of norms; a norm; the
// projector.
TEST(EncoderParameters, AreCounted) {
  const std::int64_t layer = 4 * 24 * 24 + 2 * 24 * 40 + (4 * 24 + 40 + 24) + 4 * 24;
  const std::int64_t expected = 12 * 24 + 2 * layer + 2 * 24 + 48 * 48 + 48 + 48 * 32 + 32;
  const Dag with = lowered("parallelism.dp=1"), frozen = lowered("model.encoder.frozen=true parallelism.dp=1");
  const Scenario plain_model = tiny_model(words("training.micro_batch=1"));
  const Dag plain = lower(plain_model, make_world(plain_model, false));
  EXPECT_EQ(with.info.parameters - plain.info.parameters, expected);
  for (const Dag* dag : {&with, &frozen})
    EXPECT_EQ(elements(*dag, BufferKind::parameter) - elements(plain, BufferKind::parameter), expected);
  EXPECT_EQ(elements(with, BufferKind::gradient) - elements(plain, BufferKind::gradient), expected);
  EXPECT_EQ(elements(with, BufferKind::optimizer) - elements(plain, BufferKind::optimizer), 3 * expected);
  EXPECT_EQ(elements(frozen, BufferKind::gradient), elements(plain, BufferKind::gradient));
  EXPECT_EQ(elements(frozen, BufferKind::optimizer), elements(plain, BufferKind::optimizer));
}

// Bias, positions and a class token have a row each; a norm of two rows before the layers, and one of the model's kind before a
// projector of one product.
TEST(EncoderParameters, OfEveryPartAreCounted) {
  const std::string parts =
      "model.encoder.patch_bias=true model.encoder.learned_positions=20 model.encoder.class_token=true "
      "model.encoder.first_norm=true model.encoder.pool=true model.encoder.projector_norm=true model.norm=rms ";
  const Dag with = lowered(parts + "parallelism.dp=1");
  const Scenario plain = tiny_model(words("training.micro_batch=1 model.norm=rms"));
  const std::int64_t layer = 4 * 24 * 24 + 2 * 24 * 40 + (4 * 24 + 40 + 24) + 4 * 24;
  const std::int64_t expected = (12 + 1 + 20 + 1) * 24 + 2 * layer + 2 * 2 * 24 + 24 + 24 * 32 + 32;
  EXPECT_EQ(with.info.parameters - lower(plain, make_world(plain, false)).info.parameters, expected);
  EXPECT_EQ(elements(with, BufferKind::parameter), with.info.parameters);
}

// Their gradients differ, so it is the pixels of the own sequence that each rank embeds, and the frozen encoder's tokens that the
// model sees.
TEST(EncoderStep, SeesItsImages) {
  const Dag dag = lowered("parallelism.dp=2 training.global_batch=4");
  std::vector<std::int64_t> sequences;
  for (const InputShard& input : dag.inputs)
    if (input.content == InputShard::Content::noise) sequences.push_back(input.first_sequence);
  std::ranges::sort(sequences);
  EXPECT_EQ(sequences, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace tandem::studies::encoder_test
