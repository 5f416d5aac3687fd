// Sequences packed of documents: the same step as the unsharded one, folded or not, and the work of its closed form.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/model_flops.h"
#include "scenarios/spec/packed_documents.h"
#include "studies/step/executed_step.h"
#include "studies/step/simulated_step.h"
#include "studies/step/verification.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::documents_test {
namespace {

const std::string drawn = "training.documents.mean=5 training.documents.sigma=0.8 ";

class PackedSequences : public testing::TestWithParam<const char*> {};

// As in equivalence_test: rounding alone differs.
TEST_P(PackedSequences, ShardedStepIsTheUnshardedStep) {
  EXPECT_LT(largest_difference(tiny_model(words(drawn + GetParam()))), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Dense, PackedSequences,
    testing::Values("", "training.micro_batch=2", "parallelism.tp=2 parallelism.sp=true", "parallelism.pp=2 parallelism.dp=2",
                    "parallelism.dp=4 training.documents.streams=3", "parallelism.dp=2 parallelism.zero=3",
                    "training.recompute=full", "training.recompute=selective parallelism.pp=4",
                    "training.attention=unfused training.micro_batch=2", "model.causal=false parallelism.dp=2",
                    "parallelism.dp=2 training.sync_every=3 parallelism.zero=0 training.documents.streams=2",
                    "training.documents.packing=whole parallelism.dp=2", "training.documents.packing=best-fit parallelism.dp=2",
                    "parallelism.dp=4 training.documents.streams=4 training.documents.balance=attention training.micro_batch=2",
                    "parallelism.dp=2 training.sync_every=3 parallelism.zero=0 training.documents.streams=2 "
                    "training.documents.packing=best-fit training.documents.balance=attention",
                    "model.rotary=false model.max_positions=16 parallelism.cp=2 parallelism.cp_layout=zigzag",
                    "model.layer_types=[sliding_attention,chunked_attention] model.window=3 model.attention_chunk=4"));

INSTANTIATE_TEST_SUITE_P(
    ChunksOfDocuments, PackedSequences,
    testing::Values("parallelism.cp=2", "parallelism.cp=4", "parallelism.cp=2 training.micro_batch=2 parallelism.dp=2",
                    "parallelism.cp=2 parallelism.tp=2 parallelism.sp=true parallelism.pp=2",
                    "parallelism.cp=2 parallelism.cp_method=all-gather training.micro_batch=2",
                    "parallelism.cp=4 parallelism.cp_method=all-gather parallelism.dp=2 training.documents.streams=2",
                    "parallelism.cp=2 training.recompute=full", "parallelism.cp=2 training.recompute=selective",
                    "parallelism.cp=2 training.documents.packing=whole",
                    "parallelism.cp=2 parallelism.dp=2 training.documents.packing=best-fit training.documents.streams=2 "
                    "training.documents.balance=attention",
                    "parallelism.cp=2 model.layer_types=[sliding_attention,full_attention] model.window=3",
                    "parallelism.cp=2 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 model.mla.v_dim=5 "
                    "model.kv_heads=8",
                    "parallelism.cp=2 model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.ep=2 "
                    "parallelism.dp=2"));

INSTANTIATE_TEST_SUITE_P(
    OtherLayouts, PackedSequences,
    testing::Values("parallelism.cp=2 parallelism.cp_layout=zigzag", "parallelism.cp=4 parallelism.cp_layout=contiguous",
                    "parallelism.cp=4 parallelism.cp_layout=zigzag parallelism.cp_method=all-gather training.micro_batch=2",
                    "parallelism.cp=2 parallelism.cp_method=ulysses", "parallelism.cp=4 parallelism.cp_method=ulysses",
                    "parallelism.cp=4 parallelism.cp_layout=contiguous model.mla.kv_rank=16 model.mla.rope_dim=4 "
                    "model.mla.nope_dim=6 model.mla.v_dim=5 model.kv_heads=8"));

// States are 0 before each document, wherever in a chunk it begins, and whichever rank has its first token.
class PackedStates : public testing::TestWithParam<const char*> {};

const std::string mamba_layers =
    "model.layer_types=[mamba] model.mamba.heads=8 model.mamba.head_dim=64 model.mamba.groups=4 model.mamba.state=6 "
    "model.mamba.chunk=4 ";
const std::string delta_layers =
    "model.layer_types=[linear_attention] model.linear_attention.key_heads=4 model.linear_attention.value_heads=8 "
    "model.linear_attention.key_dim=64 model.linear_attention.value_dim=64 model.linear_attention.chunk=5 ";
const std::string states = mamba_layers + delta_layers +
                           "model.layer_types=[mamba,full_attention,linear_attention,full_attention] training.global_batch=4 ";

// As in mamba_test and gated_delta_test.
TEST_P(PackedStates, ShardedStepIsTheUnshardedStep) {
  EXPECT_LT(largest_difference(tiny_model(words(states + drawn + GetParam()))), 3e-5);
}

INSTANTIATE_TEST_SUITE_P(Meshes, PackedStates,
                         testing::Values("", "training.micro_batch=2",
                                         "parallelism.tp=2 parallelism.sp=true training.recompute=full",
                                         "parallelism.pp=2 parallelism.dp=2 training.documents.streams=2", "parallelism.cp=2",
                                         "parallelism.cp=4",
                                         "parallelism.cp=2 parallelism.cp_layout=zigzag training.micro_batch=2",
                                         "parallelism.cp=4 parallelism.cp_layout=contiguous",
                                         "parallelism.cp=2 parallelism.cp_method=all-gather training.documents.packing=whole",
                                         "parallelism.cp=2 parallelism.cp_method=ulysses parallelism.tp=2 parallelism.sp=true"));

const std::string dynamic = drawn + "training.documents.packing=best-fit parallelism.dynamic_cp=true ";

INSTANTIATE_TEST_SUITE_P(
    DynamicGroups, PackedSequences,
    testing::Values("training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=2",
                    "training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=4",
                    "training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=8 training.sequence=32",
                    "training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=4 "
                    "parallelism.cp_method=all-gather parallelism.dp=2 training.documents.streams=2",
                    "training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=4 parallelism.tp=2 "
                    "parallelism.sp=true parallelism.pp=2 training.recompute=full",
                    "training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=2 parallelism.pp=2 "
                    "training.schedule=zb-h1 training.recompute=selective",
                    "training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=4 parallelism.dp=2 "
                    "parallelism.zero=3 training.hidden_dropout=0.125",
                    "training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=4 parallelism.dp=2 "
                    "training.documents.streams=2 training.documents.balance=attention",
                    "training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=4 parallelism.dp=2 "
                    "training.sync_every=2 parallelism.zero=0",
                    "training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=4 "
                    "parallelism.cp_method=all-gather model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 "
                    "model.mla.v_dim=5 model.kv_heads=8",
                    "training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=4 "
                    "model.layer_types=[sliding_attention,full_attention] model.window=3"));

INSTANTIATE_TEST_SUITE_P(DynamicGroups, PackedStates,
                         testing::Values("training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=4",
                                         "training.documents.packing=best-fit parallelism.dynamic_cp=true parallelism.cp=2 "
                                         "parallelism.cp_method=all-gather parallelism.tp=2 parallelism.sp=true"));

double loss_of(const std::string& overrides) {
  const Scenario scenario = tiny_model(words(overrides));
  ExecutedStep step(scenario, "tiny");
  step.execute();
  return compare_with_unsharded(step, scenario).reference_loss;
}

// The mask reaches the numbers: what is of other documents is not seen.
TEST(PackedSequences, DocumentsChangeWhatIsSeen) {
  EXPECT_GT(std::abs(loss_of("parallelism.dp=1") - loss_of(drawn)), 1e-4);
  for (const std::string& layers : {mamba_layers, delta_layers})
    EXPECT_GT(std::abs(loss_of(layers) - loss_of(layers + drawn)), 1e-5) << layers;
}

void expect_today(const std::string& documents, const std::string& overrides) {
  SCOPED_TRACE(documents + overrides);
  const Scenario with = tiny_cluster(words(documents + overrides)), without = tiny_cluster(words(overrides));
  const Dag packed = lower(with, make_world(with, true)), plain = lower(without, make_world(without, true));
  ASSERT_EQ(packed.tasks.size(), plain.tasks.size());
  EXPECT_TRUE(packed.attributes == plain.attributes);
  EXPECT_EQ(packed.info.model_flops_per_token, plain.info.model_flops_per_token);
  EXPECT_EQ(simulate_step(with, true).result.step_time, simulate_step(without, true).result.step_time);
}

TEST(PackedSequences, ADocumentAsLongAsTheSequenceIsTodaysStep) {
  expect_today("training.documents.length=16 ", "parallelism.pp=2 parallelism.tp=2 training.micro_batch=2");
  expect_today("training.documents.length=32 ", "parallelism.cp=4 parallelism.dp=2");
  expect_today("training.documents.length=20 training.documents.packing=whole ", "parallelism.cp=2 parallelism.tp=4");
}

std::size_t classes(const std::string& overrides) {
  SCOPED_TRACE(overrides);
  return expect_equal_when_folded(tiny_cluster(words(drawn + overrides)));
}

TEST(PackedSequences, ReplicasOfOneStreamAreOneClass) {
  EXPECT_EQ(classes("parallelism.dp=8"), 1U);
  EXPECT_EQ(classes("parallelism.dp=4 parallelism.pp=2 parallelism.tp=2"), 2U);
}

TEST(PackedSequences, EveryStreamIsAClass) {
  EXPECT_EQ(classes("parallelism.dp=8 training.documents.streams=2"), 2U);
  EXPECT_EQ(classes("parallelism.dp=4 parallelism.pp=2 training.documents.streams=4"), 8U);
}

TEST(PackedSequences, BalancedStreamsAreClasses) {
  EXPECT_EQ(classes("parallelism.dp=8 training.documents.streams=2 training.documents.balance=attention"), 2U);
  EXPECT_EQ(classes("parallelism.dp=8 training.documents.streams=4 training.documents.packing=best-fit"), 4U);
}

// Streams of one pool wait less for each other than streams that keep what they drew.
TEST(PackedSequences, BalanceShortensTheStep) {
  const std::string large =
      "model.head_dim=128 training.sequence=65536 training.precision=bf16 parallelism.dp=8 training.global_batch=32 "
      "training.documents.mean=16000 training.documents.sigma=1.2 training.documents.streams=8 "
      "training.documents.packing=best-fit ";
  const auto time = [&](const std::string& more) {
    return simulate_step(tiny_cluster(words(large + more)), true).result.step_time;
  };
  EXPECT_LT(time("training.documents.balance=attention"), time("training.documents.balance=none"));
}

// Half of each sequence pads; tokens there cost as many FLOPs as others, and the pairs of the last document are counted in full.
TEST(PackedSequences, PaddingCostsFlops) {
  const auto share = [](const std::string& overrides) {
    const Scenario scenario = tiny_cluster(words(overrides));
    return lower(scenario, make_world(scenario, true)).info.documents.padding_flops_share;
  };
  const Scenario scenario =
      tiny_cluster(words("training.documents.length=33 training.documents.packing=whole training.sequence=64"));
  const double whole = model_flops_per_token(scenario.model, 64) * 64, needed = model_flops_per_token(scenario.model, 33) * 33;
  EXPECT_NEAR(share("training.documents.length=33 training.documents.packing=whole training.sequence=64"), 1 - needed / whole,
              1e-12);
  EXPECT_EQ(share("training.documents.length=33 training.sequence=64"), 0);
}

TEST(PackedSequences, ChunksOfDocumentsAreEqualWork) {
  EXPECT_EQ(classes("parallelism.cp=4 parallelism.dp=2 training.sequence=64"), 1U);
  EXPECT_EQ(classes("parallelism.cp=4 parallelism.cp_method=all-gather parallelism.tp=2 training.sequence=64"), 1U);
  EXPECT_EQ(classes("parallelism.cp=4 parallelism.cp_method=ulysses training.sequence=64"), 1U);
}

TEST(PackedSequences, StatesAreEqualWork) {
  EXPECT_EQ(classes(states + "parallelism.cp=4 parallelism.dp=2 training.sequence=64"), 1U);
}

TEST(PackedSequences, RanksOfDynamicGroupsAreClasses) {
  const std::string groups = "training.documents.packing=best-fit parallelism.dynamic_cp=true training.sequence=64 ";
  EXPECT_EQ(classes(groups + "parallelism.cp=4 parallelism.dp=2"), 4U);
  EXPECT_EQ(classes(groups + "parallelism.cp=4 parallelism.dp=4 parallelism.pp=2 parallelism.cp_method=all-gather"), 8U);
  EXPECT_EQ(classes(groups + "parallelism.cp=2 parallelism.dp=4 training.documents.streams=2"), 4U);
}

// Documents that fit into a rank are nobody else's: no keys travel. Those that fill a sequence are everybody's, as without
// groups.
TEST(PackedSequences, DynamicGroupsAreAsLargeAsDocumentsNeed) {
  const std::string large =
      "model.head_dim=128 training.sequence=65536 training.precision=bf16 parallelism.cp=4 parallelism.dp=2 "
      "training.documents.packing=best-fit ";
  const auto result = [&](const std::string& more) { return simulate_step(tiny_cluster(words(large + more)), true).result; };
  const std::string is_dynamic = " parallelism.dynamic_cp=true", short_ones = "training.documents.length=16384";
  const std::string long_ones = "training.documents.length=65536";
  EXPECT_EQ(result(short_ones + is_dynamic).parts.exposed_on(Axis::cp), 0);
  EXPECT_LT(result(short_ones + is_dynamic).step_time, result(short_ones).step_time);
  EXPECT_EQ(result(short_ones + is_dynamic).documents->mean_ranks, 1);
  EXPECT_NEAR(result(long_ones + is_dynamic).step_time / result(long_ones).step_time, 1, 1e-9);
  EXPECT_EQ(result(long_ones + is_dynamic).documents->mean_ranks, 4);
}

// As many pairs as without groups, wherever they are computed: FLOPs of attention are the sum over documents.
TEST(PackedSequences, DynamicGroupsComputeEachPairOnce) {
  const Scenario scenario = tiny_cluster(words(dynamic + "parallelism.cp=8 training.sequence=64"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  double flops = 0, expected = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].op == OpKind::attention) flops += cost_of(dag, id).flops;
  for (const auto& [tokens, documents] : document_totals(scenario).of_length)
    expected += static_cast<double>(documents) * static_cast<double>(tokens) * static_cast<double>(tokens + 1) / 2;
  const ModelSpec& model = scenario.model;
  EXPECT_DOUBLE_EQ(flops, expected * static_cast<double>(2 * model.layers * model.heads * 2 * model.head_dim));
}

TEST(PackedSequences, ChunksOfSequencesAreNot) {
  EXPECT_EQ(classes("parallelism.cp=4 parallelism.dp=2 parallelism.cp_layout=zigzag training.sequence=64"), 4U);
}

// A document of l tokens has l (l + 1) / 2 pairs. FLOPs per pair: runtime/ops/attention.h.
TEST(PackedSequences, AttentionIsTheSumOverDocuments) {
  for (const std::string mesh : {"", "parallelism.cp=4 ", "parallelism.cp=4 parallelism.cp_layout=zigzag ",
                                 "parallelism.cp=2 parallelism.cp_method=all-gather parallelism.cp_layout=contiguous ",
                                 "parallelism.cp=4 parallelism.cp_method=ulysses ", "training.micro_batch=2 parallelism.dp=2 "}) {
    SCOPED_TRACE(mesh);
    const Scenario scenario = tiny_cluster(words(drawn + mesh + "training.sequence=64"));
    const Dag dag = lower(scenario, make_world(scenario, false));
    double flops = 0;
    for (TaskId id = 0; id < dag.tasks.size(); ++id)
      if (dag.tasks[id].op == OpKind::attention) flops += cost_of(dag, id).flops;
    double expected = 0;
    const DocumentTotals totals = document_totals(scenario);
    for (const auto& [tokens, documents] : totals.of_length) {
      const auto l = static_cast<double>(tokens);
      expected += static_cast<double>(documents) * l * (l + 1) / 2;
    }
    const ModelSpec& model = scenario.model;
    expected *= static_cast<double>(2 * model.layers * model.heads * 2 * model.head_dim);
    EXPECT_DOUBLE_EQ(flops, expected);

    // Model FLOPs count the diagonal at half, three times the forward.
    const double tokens = static_cast<double>(dag.info.tokens);
    const double pairs_of_whole = static_cast<double>(scenario.training.sequence) / 2;
    const double whole = 3 * static_cast<double>(4 * model.layers * model.heads * model.head_dim) * pairs_of_whole;
    EXPECT_NEAR(dag.info.model_flops_per_token - model_flops_per_token(model, scenario.training.sequence),
                -whole * (1 - dag.info.documents.attention_share), 1e-6 * whole);
    EXPECT_EQ(static_cast<double>(totals.tokens()), tokens);
  }
}

TEST(PackedSequences, TakeLessTimeThanWholeOnes) {
  const std::string large = "model.head_dim=128 training.sequence=65536 training.precision=bf16 parallelism.cp=2 ";
  const auto time = [&](const std::string& more) {
    return simulate_step(tiny_cluster(words(large + more)), true).result.step_time;
  };
  const Seconds whole = time(""), halves = time("training.documents.length=32768"),
                short_ones = time("training.documents.length=2048");
  EXPECT_LT(halves, whole);
  EXPECT_LT(short_ones, halves);
}

}  // namespace
}  // namespace tandem::studies::documents_test
