// Long names of the experts' fields, which stand beside the model's other fields where they come from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/reading/load.h"

namespace tandem::scenarios::aliases_test {
namespace {

using testing::HasSubstr;

MoeSpec moe_of(const std::string& fields, const std::vector<std::string>& overrides = {}) {
  return parse_scenario("model: {layers: 4, hidden: 64, heads: 8, ffn: 64, vocab: 96, " + fields +
                            "}\ncluster: {preset: dgx-h100}\ntraining: {sequence: 64, global_batch: 16}\n"
                            "parallelism: {dp: 2}\n",
                        "s.yaml", overrides)
      .model.moe;
}

std::string refusal(const std::string& fields) {
  try {
    moe_of(fields);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST(ExpertAliases, OfMegatron) {
  for (const char* experts : {"num_experts", "num_moe_experts"}) {
    const MoeSpec moe = moe_of(std::string(experts) +
                               ": 8, moe_router_topk: 2, moe_ffn_hidden_size: 32, moe_expert_capacity_factor: 1.5, "
                               "moe_layer_freq: 2, moe_aux_loss_coeff: 0.5");
    EXPECT_EQ(moe.experts, 8);
    EXPECT_EQ(moe.top_k, 2);
    EXPECT_EQ(moe.ffn, 32);
    EXPECT_EQ(moe.capacity_factor, 1.5);
    EXPECT_EQ(moe.every, 2);
    EXPECT_EQ(moe.balance_loss, 0.5);
  }
}

// Megatron-LM's moe_layer_freq N makes layers 0, N, 2 N, ... those of experts.
TEST(ExpertAliases, FrequencyCountsFromTheFirstLayer) {
  const MoeSpec moe = moe_of("num_experts: 8, moe_router_topk: 2, moe_layer_freq: 3");
  for (std::int64_t layer = 0; layer < 9; ++layer) EXPECT_EQ(moe.in_layer(layer), layer % 3 == 0);
}

TEST(ExpertAliases, OfHuggingFace) {
  const MoeSpec mixtral = moe_of("num_local_experts: 8, num_experts_per_tok: 2, router_aux_loss_coef: 0.02");
  EXPECT_EQ(mixtral.experts, 8);
  EXPECT_EQ(mixtral.top_k, 2);
  EXPECT_EQ(mixtral.ffn, 64);  // the model's
  EXPECT_EQ(mixtral.balance_loss, 0.02);
  const MoeSpec deepseek = moe_of(
      "n_routed_experts: 8, num_experts_per_tok: 2, moe_intermediate_size: 16, n_shared_experts: 1, first_k_dense_replace: 3");
  EXPECT_EQ(deepseek.experts, 8);
  EXPECT_EQ(deepseek.ffn, 16);
  EXPECT_EQ(deepseek.shared_experts, 1);
  EXPECT_EQ(deepseek.first_dense_layers, 3);
  const MoeSpec router = moe_of(
      "n_routed_experts: 8, num_experts_per_tok: 2, scoring_func: sigmoid, routed_scaling_factor: 2.5, n_group: 4, topk_group: "
      "2");
  EXPECT_EQ(router.score_function, ScoreFunction::sigmoid);
  EXPECT_EQ(router.scaling_factor, 2.5);
  EXPECT_EQ(router.groups, 4);
  EXPECT_EQ(router.node_limit, 2);
  const MoeSpec megatron = moe_of(
      "num_experts: 8, moe_router_topk: 2, moe_router_score_function: sigmoid, moe_router_topk_scaling_factor: 2.5, "
      "moe_router_enable_expert_bias: true, moe_router_bias_update_rate: 0.01, moe_router_num_groups: 4, moe_router_group_topk: "
      "2");
  EXPECT_EQ(megatron.score_function, ScoreFunction::sigmoid);
  EXPECT_EQ(megatron.scaling_factor, 2.5);
  EXPECT_TRUE(megatron.expert_bias);
  EXPECT_EQ(megatron.bias_update_rate, 0.01);
  EXPECT_EQ(megatron.groups, 4);
  EXPECT_EQ(megatron.node_limit, 2);
  EXPECT_TRUE(moe_of("num_experts: 8, moe_router_topk: 2, moe_router_pre_softmax: true").pre_softmax);
}

TEST(ExpertAliases, BesideOursInsideMoeAndAsOptions) {
  const MoeSpec moe = moe_of("num_experts: 8, moe: {top_k: 2, moe_ffn_hidden_size: 32}", {"model.num_moe_experts=4"});
  EXPECT_EQ(moe.experts, 4);
  EXPECT_EQ(moe.top_k, 2);
  EXPECT_EQ(moe.ffn, 32);
  EXPECT_EQ(moe_of("num_experts: 8, moe_router_topk: 2", {"model.num_experts="}).experts, 0);
  EXPECT_EQ(moe_of("num_experts: 8, moe_router_topk: 2", {"model.moe.moe_router_topk=4"}).top_k, 4);
}

TEST(ExpertAliases, AreNotHeardTwice) {
  EXPECT_THAT(refusal("num_experts: 8, moe: {experts: 8, top_k: 2}"),
              HasSubstr("`num_experts` and `experts` are the same field"));
  EXPECT_THAT(refusal("num_experts: 8, num_local_experts: 8, moe: {top_k: 2}"), HasSubstr("are the same field"));
  EXPECT_THAT(refusal("moe: many, num_experts: 8"), HasSubstr("model.moe is `many`, expected a mapping"));
  EXPECT_THAT(refusal("num_experts: 8, moe_router_topk: two"), HasSubstr("s.yaml:1:"));
  EXPECT_THAT(refusal("num_experts: 8, moe_router_topkk: 2"), HasSubstr("did you mean `moe_router_topk`?"));
}

// The width of all shared experts together is not their number.
TEST(ExpertAliases, OnlyWhereTheMeaningIsTheSame) {
  EXPECT_THAT(refusal("num_experts: 8, moe_router_topk: 2, moe_shared_expert_intermediate_size: 64"), HasSubstr("has no field"));
  EXPECT_THAT(refusal("num_experts: 8, moe_router_topk: 2, moe_layer_freq: [0, 1, 1, 1]"), HasSubstr("expected a whole number"));
}

}  // namespace
}  // namespace tandem::scenarios::aliases_test
