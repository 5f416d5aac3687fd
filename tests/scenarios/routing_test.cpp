// Slots of experts, the expert mesh, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <sstream>

#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/mesh/token_routing.h"
#include "scenarios/reading/load.h"

namespace tandem::scenarios::routing_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// `options` as for --set, separated by spaces.
Scenario scenario_with(const std::string& options) {
  std::vector<std::string> list;
  std::istringstream stream(options);
  for (std::string option; stream >> option;) list.push_back(option);
  return parse_scenario(
      "model: {layers: 4, hidden: 64, heads: 8, ffn: 64, vocab: 96, moe: {experts: 8, top_k: 2}}\n"
      "cluster: {preset: dgx-h100}\n"
      "training: {sequence: 64, global_batch: 16}\n",
      "s.yaml", list);
}

MoeSpec moe(std::int64_t experts, std::int64_t top_k) {
  MoeSpec spec;
  spec.experts = experts;
  spec.top_k = top_k;
  return spec;
}

/// The sentence that refuses `options`, or nothing.
std::string refusal(const std::string& options) {
  try {
    scenario_with(options);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

// Shares 30, 5, 25, ... % of 1,000 tokens on 8 experts. Capacity 1.25 * 125 = 156.25, whole slots: 156. The busiest expert has
// 300, which is 2.4 * 125.
TEST(Capacity, IsTheWholeSlotsOfFactorTimesFairShare) {
  MoeSpec spec = moe(8, 1);
  spec.capacity_factor = 1.25;
  EXPECT_EQ(slots_by_expert(spec, 1000), std::vector<std::int32_t>(8, 156));
  spec.capacity_factor = 2.4;
  EXPECT_EQ(slots_by_expert(spec, 1000).front(), 300);
  spec.capacity_factor = 2.399;
  EXPECT_LT(slots_by_expert(spec, 1000).front(), 300);
}

TEST(Capacity, WithoutPaddingIsNoMoreThanTheChoices) {
  MoeSpec spec = moe(8, 1);
  spec.load.shares = {30, 5, 25, 10, 5, 10, 10, 5};
  spec.capacity_factor = 1.25;
  EXPECT_EQ(slots_by_expert(spec, 1000), std::vector<std::int32_t>(8, 156));
  EXPECT_EQ(choices_by_expert(spec, 1000), (std::vector<std::int32_t>{300, 50, 250, 100, 50, 100, 100, 50}));
  spec.pad_to_capacity = false;
  EXPECT_EQ(slots_by_expert(spec, 1000), (std::vector<std::int32_t>{156, 50, 156, 100, 50, 100, 100, 50}));
}

// 100 tokens, 2 of 8 experts each on average: 25 tokens for each expert, with a factor of 1.5 37.5, in whole ones 37; never more
// than all.
TEST(Capacity, UnderExpertChoiceIsWhatEachExpertTakes) {
  MoeSpec spec = moe(8, 2);
  spec.routing = Routing::expert_choice;
  EXPECT_EQ(slots_by_expert(spec, 100), std::vector<std::int32_t>(8, 25));
  EXPECT_EQ(spec.experts_per_token(), 2);
  spec.capacity_factor = 1.5;
  EXPECT_EQ(slots_by_expert(spec, 100), std::vector<std::int32_t>(8, 37));
  EXPECT_EQ(spec.experts_per_token(), 3);
  spec.capacity_factor = 10;
  EXPECT_EQ(slots_by_expert(spec, 100), std::vector<std::int32_t>(8, 100));
  EXPECT_EQ(spec.experts_per_token(), 8);
}

TEST(Choices, AreForcedUnlessOnlyACapacityIsGiven) {
  const auto routing = [](const std::string& options) { return routing_of(scenario_with("parallelism.dp=8 " + options)); };
  EXPECT_TRUE(routing("").forced);
  EXPECT_TRUE(routing("model.moe.load.zipf=1").load.empty());  // as the slots
  EXPECT_FALSE(routing("model.moe.capacity_factor=1").forced);
  EXPECT_TRUE(routing("model.moe.capacity_factor=1 model.moe.pad_to_capacity=false").forced);
  // 64 tokens' 128 choices by 4, 1, 1, 3, 1, 2, 0, 1 of 13: 39.4, ...; capacity 16.
  const RoutingAttributes both = routing("model.moe.capacity_factor=1 model.moe.load=[4,1,1,3,1,2,0,1]");
  EXPECT_TRUE(both.forced);
  EXPECT_EQ(both.slots, std::vector<std::int32_t>(8, 16));
  EXPECT_EQ(both.load, (std::vector<std::int32_t>{39, 10, 10, 29, 10, 20, 0, 10}));
}

TEST(ExpertChoice, RefusesWhatTokensWouldChoose) {
  const std::string choice = "parallelism.dp=8 model.moe.routing=expert-choice ";
  EXPECT_THAT(refusal(choice), IsEmpty());
  EXPECT_THAT(
      refusal(choice + "model.moe.load.zipf=1"),
      HasSubstr("a load with routing expert-choice, under which every expert takes as many tokens as the others; expected "
                "no load, or routing top-k"));
  EXPECT_THAT(
      refusal(choice + "model.moe.node_limit=1"),
      HasSubstr("node_limit 1 with routing expert-choice, under which no token chooses its nodes; expected no node_limit, "
                "or routing top-k"));
}

// A quarter of the experts take a token, each by itself: the two of a rank both pass it by with 9/16, the four of a node with
// 81/256.
TEST(CopiesOfToken, UnderExpertChoiceAreThoseOfIndependentExperts) {
  const TokenCopies copies = copies_of_token(
      scenario_with("parallelism.dp=4 parallelism.ep=4 cluster.gpus_per_node=2 cluster.nics_per_node=2 model.moe.top_k=2 "
                    "model.moe.routing=expert-choice"));
  EXPECT_DOUBLE_EQ(copies.choices, 2);
  EXPECT_DOUBLE_EQ(copies.ranks, 4 * (1 - 9 / 16.0));
  EXPECT_DOUBLE_EQ(copies.nodes, 2 * (1 - 81 / 256.0));
}

TEST(Load, SplitsAllChoices) {
  EXPECT_EQ(slots_by_expert(moe(8, 2), 16), std::vector<std::int32_t>(8, 4));
  MoeSpec listed = moe(4, 1);
  listed.load.shares = {30, 5, 25, 40};
  EXPECT_EQ(slots_by_expert(listed, 1000), (std::vector<std::int32_t>{300, 50, 250, 400}));
  EXPECT_EQ(slots_by_expert(moe(3, 1), 4), (std::vector<std::int32_t>{2, 1, 1}));
}

// Kimi K2: 32,768 choices of 384 experts, 85 1/3 each.
TEST(Load, WhatIsLeftIsSpreadEvenly) {
  EXPECT_EQ(choices_by_expert(moe(6, 1), 8), (std::vector<std::int32_t>{2, 1, 1, 2, 1, 1}));
  std::mt19937 random(5);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int i = 0; i < 100; ++i) {
    const std::int64_t parts = between(1, 16), of_part = between(1, 12),
                       top_k = between(1, std::min<std::int64_t>(4, parts * of_part));
    const std::vector<std::int32_t> choices = choices_by_expert(moe(parts * of_part, top_k), between(1, 200));
    std::vector<std::int32_t> sums;
    for (auto part = choices.begin(); part != choices.end(); part += of_part)
      sums.push_back(std::accumulate(part, part + of_part, 0));
    EXPECT_LE(std::ranges::max(sums) - std::ranges::min(sums), 1) << parts << " parts of " << of_part << ", top " << top_k;
  }
  const Scenario kimi =
      scenario_with("parallelism.dp=4 parallelism.ep=4 model.moe.experts=24 model.moe.top_k=1 training.sequence=32");
  EXPECT_EQ(alike_parts(kimi), std::vector<std::uint32_t>(4, 0));
}

// Zipf 1 on 4 experts: 1, 1/2, 1/3, 1/4 of 12/25. Of 2 * 100 choices expert 0 would get 96.
TEST(Load, ZipfFallsWithTheRank) {
  MoeSpec spec = moe(4, 2);
  spec.load.zipf = 1;
  EXPECT_EQ(slots_by_expert(spec, 100), (std::vector<std::int32_t>{96, 48, 32, 24}));
}

TEST(Load, NoExpertGetsATokenTwice) {
  MoeSpec spec = moe(4, 2);
  spec.load.shares = {8, 1, 1, 0};  // expert 0 would get 160 of 200 choices, and has 100 tokens to get
  EXPECT_EQ(slots_by_expert(spec, 100), (std::vector<std::int32_t>{100, 50, 50, 0}));
}

// 100 tokens take 2 of 4 choices in each of 2 of 3 nodes: 200 visits, 12/15, 2/15 and 1/15 of them by the load, but a token
// visits a node once. So 100, and of the other 100 two thirds and one. In node 0 expert 0 would get 3/4 of 200 choices, of 100
// tokens.
TEST(Load, UnderANodeLimitSplitsVisitsAndThenChoices) {
  MoeSpec spec = moe(9, 4);
  spec.load.shares = {9, 2, 1, 1, 1, 0, 0.5, 0.25, 0.25};
  // Rounded: 67 and 33 visits; 134 choices of 67 tokens for two experts; 66 of 33 tokens: 33, then equal parts.
  EXPECT_EQ(slots_by_expert(spec, 100, {.nodes = 3, .visited = 2}),
            (std::vector<std::int32_t>{100, 67, 33, 67, 67, 0, 33, 17, 16}));
}

TEST(Load, EvenUnderANodeLimitAsWell) {
  EXPECT_EQ(slots_by_expert(moe(16, 4), 32, {.nodes = 4, .visited = 2}), std::vector<std::int32_t>(16, 8));
}

TEST(NodeLimit, BindsBelowChoicesAndNodesAlone) {
  const auto visited = [](const std::string& options) {
    const NodeLimit limit = node_limit_of(scenario_with(
        "parallelism.dp=8 parallelism.ep=8 cluster.gpus_per_node=2 cluster.nics_per_node=2 model.moe.top_k=4 " + options));
    EXPECT_EQ(limit.nodes, 4);
    return limit.visited;
  };
  EXPECT_EQ(visited("model.moe.node_limit=2"), 2);
  EXPECT_EQ(visited("model.moe.node_limit=4"), 0);
  EXPECT_EQ(visited("model.moe.node_limit=3 model.moe.capacity_factor=1"), 3);
  EXPECT_EQ(visited("model.moe.node_limit=2 model.moe.top_k=2"), 0);
}

// 8 experts on 4 ranks of 2 nodes: of all 28 pairs, 4 meet one rank, 12 one node.
TEST(CopiesOfToken, AreThoseOfAllSetsOfExperts) {
  const std::string nodes =
      "parallelism.dp=4 parallelism.ep=4 cluster.gpus_per_node=2 cluster.nics_per_node=2 model.moe.experts=8 ";
  const TokenCopies free = copies_of_token(scenario_with(nodes + "model.moe.top_k=2"));
  EXPECT_DOUBLE_EQ(free.choices, 2);
  EXPECT_DOUBLE_EQ(free.nodes, (12 * 1 + 16 * 2) / 28.0);
  EXPECT_DOUBLE_EQ(free.ranks, (4 * 1 + 24 * 2) / 28.0);
  // Both in one node: of 6 pairs of its experts 2 meet one rank.
  const TokenCopies limited = copies_of_token(scenario_with(nodes + "model.moe.top_k=2 model.moe.node_limit=1"));
  EXPECT_DOUBLE_EQ(limited.nodes, 1);
  EXPECT_DOUBLE_EQ(limited.ranks, (2 * 1 + 4 * 2) / 6.0);
  const TokenCopies all = copies_of_token(scenario_with(nodes + "model.moe.top_k=8"));
  EXPECT_DOUBLE_EQ(all.nodes, 2);
  EXPECT_DOUBLE_EQ(all.ranks, 4);
}

TEST(Dispatcher, IsNcclUnlessSaidOtherwise) {
  const std::string ranks = "parallelism.dp=4 parallelism.ep=4 ";
  EXPECT_EQ(scenario_with(ranks).parallelism.dispatcher, Dispatcher::nccl);
  EXPECT_EQ(scenario_with(ranks + "parallelism.dispatcher=deepep").parallelism.dispatcher, Dispatcher::deepep);
  EXPECT_EQ(scenario_with(ranks + "parallelism.moe_token_dispatcher_type=flex").parallelism.dispatcher, Dispatcher::deepep);
  EXPECT_EQ(scenario_with(ranks + "parallelism.moe_token_dispatcher_type=alltoall").parallelism.dispatcher, Dispatcher::nccl);
  EXPECT_THAT(refusal("parallelism.dp=4 parallelism.dispatcher=deepep"),
              HasSubstr("dispatcher deepep with ep 1, where no token leaves its rank; expected ep above 1, or dispatcher nccl"));
}

TEST(NodeLimit, RefusesWhatCannotBeRouted) {
  const std::string nodes = "parallelism.dp=8 parallelism.ep=8 cluster.gpus_per_node=2 cluster.nics_per_node=2 ";
  EXPECT_THAT(
      refusal(nodes + "model.moe.top_k=4 model.moe.node_limit=3"),
      HasSubstr("node_limit 3 does not divide top_k 4, so that nodes would get unequal parts of a token's choices; expected "
                "a divisor of top_k, or a capacity factor without a load"));
  EXPECT_THAT(refusal(nodes + "model.moe.top_k=4 model.moe.node_limit=1"),
              HasSubstr("top_k 4 experts do not fit into node_limit 1: each of the 4 nodes holds 2 experts"));
  EXPECT_THAT(refusal(nodes + "model.moe.top_k=4 model.moe.node_limit=2 model.moe.load=[1,1,1,0,1,1,1,1]"),
              HasSubstr("the load gives 1 of the experts 2 to 3, which lie in one node, a share, but a token takes 2 there; "
                        "expected none or at least that"));
  EXPECT_THAT(refusal(nodes + "model.moe.top_k=2 model.moe.experts=16 model.moe.node_limit=1 "
                              "model.moe.load=[1,1,1,1,0,0,0,0,0,0,0,0,0,0,0,0]"),
              IsEmpty());
  EXPECT_THAT(refusal(nodes + "model.moe.top_k=4 model.moe.experts=16 model.moe.node_limit=2 "
                              "model.moe.load=[1,1,1,1,0,0,0,0,0,0,0,0,0,0,0,0]"),
              HasSubstr("the load gives shares in 1 of 4 nodes, expected at least node_limit 2"));
  EXPECT_THAT(refusal("parallelism.dp=8 parallelism.ep=4 model.moe.node_limit=1 cluster.gpus_per_node=3 cluster.nics_per_node=3 "
                      "parallelism.dp=12 training.global_batch=12"),
              HasSubstr("node_limit 1 with ep 4 on nodes of 3 GPUs, which do not all hold as many of a layer's experts; expected "
                        "ep a multiple of the ranks in a node"));
}

// Four groups of two experts on 2 nodes of 2 ranks: two groups in a node, one on a rank. Of the 6 pairs of groups 2 lie in one
// node.
TEST(Groups, LieWhereTheirExpertsDo) {
  const std::string nodes =
      "parallelism.dp=4 parallelism.ep=4 cluster.gpus_per_node=2 cluster.nics_per_node=2 model.moe.experts=8 model.moe.top_k=4 "
      "model.moe.node_limit=2 ";
  const Scenario four = scenario_with(nodes + "model.moe.groups=4");
  EXPECT_EQ(node_limit_of(four).nodes, 4);
  EXPECT_EQ(node_limit_of(four).visited, 2);
  EXPECT_DOUBLE_EQ(copies_of_token(four).nodes, (2 * 1 + 4 * 2) / 6.0);
  EXPECT_DOUBLE_EQ(copies_of_token(four).ranks, 2);
  EXPECT_EQ(most_nodes_of_token(four), 2);
  // As many groups as nodes are the nodes; one group is no limit.
  const std::string one_node = nodes + "model.moe.top_k=2 model.moe.node_limit=1 ";
  const TokenCopies by_groups = copies_of_token(scenario_with(one_node + "model.moe.groups=2"));
  const TokenCopies by_nodes = copies_of_token(scenario_with(one_node));
  EXPECT_EQ(by_groups.nodes, by_nodes.nodes);
  EXPECT_EQ(by_groups.ranks, by_nodes.ranks);
  EXPECT_EQ(node_limit_of(scenario_with(one_node + "model.moe.groups=1")).visited, 0);
}

TEST(Router, RefusesWhatMegatronCoreHasNot) {
  EXPECT_THAT(refusal("parallelism.dp=2 model.moe.groups=3"),
              HasSubstr("groups 3 does not divide the 8 experts; nearest that do: 2, 4"));
  EXPECT_THAT(refusal("parallelism.dp=2 model.moe.expert_bias=true"),
              HasSubstr("expert_bias with score_function softmax, where Megatron-Core takes no bias either; expected "
                        "score_function sigmoid, or expert_bias false"));
  EXPECT_THAT(refusal("parallelism.dp=2 model.moe.pre_softmax=true model.moe.score_function=sigmoid"),
              HasSubstr("pre_softmax with score_function sigmoid, which has no softmax; expected pre_softmax false, or "
                        "score_function softmax"));
  EXPECT_THAT(refusal("parallelism.dp=2 model.moe.scaling_factor=2 model.moe.routing=expert-choice"),
              HasSubstr("routing expert-choice, whose gates are the softmax over all experts; expected score_function softmax, "
                        "pre_softmax false and scaling_factor 1, or routing top-k"));
  EXPECT_THAT(refusal("model.moe.expert_bias=true model.moe.score_function=sigmoid parallelism.dp=2 parallelism.zero=0 "
                      "training.sync_every=4"),
              HasSubstr("expert_bias with sync_every 4, where no replica knows the load of the others; expected sync_every 1, "
                        "or expert_bias false"));
}

TEST(Tokens, OfATensorParallelRankAreWholeWithAndWithoutSp) {
  for (const char* sp : {"true", "false"}) {
    const std::string tp = "parallelism.tp=4 parallelism.dp=2 parallelism.sp=" + std::string(sp);
    EXPECT_EQ(tokens_of_group(scenario_with(tp)), 16);
    EXPECT_THAT(refusal(tp + " training.sequence=66"), HasSubstr("sequence 66 is not a multiple of tp 4, wh"));
  }
  EXPECT_THAT(refusal("parallelism.tp=4 parallelism.dp=2 training.sequence=66"),
              HasSubstr("whose ranks each route a run of the tokens to the experts; nearest that are: 64, 68"));
}

TEST(Load, RanksOfUnevenLoadDiffer) {
  const Scenario uneven = scenario_with("model.moe.load=[1,2,1,2,4,3,1,2] parallelism.dp=4 parallelism.ep=4");
  EXPECT_EQ(alike_parts(uneven), (std::vector<std::uint32_t>{0, 0, 2, 0}));
}

TEST(ExpertMesh, FoldsIntoRunsOfTheStagesRanks) {
  const Scenario scenario = scenario_with(
      "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 "
      "parallelism.dp=4 parallelism.ep=2 "
      "parallelism.etp=2 parallelism.order=[tp,pp,dp,cp,ep]");
  const Mesh mesh(scenario.parallelism);
  const ExpertMesh experts(scenario.parallelism, mesh);
  // Ranks of stage 0: 0 1 4 5 8 9 12 13.
  EXPECT_EQ(experts.members(8, ExpertAxis::tensor), (std::vector<std::uint32_t>{8, 9}));
  EXPECT_EQ(experts.members(8, ExpertAxis::expert), (std::vector<std::uint32_t>{8, 12}));
  EXPECT_EQ(experts.members(9, ExpertAxis::replica), (std::vector<std::uint32_t>{1, 9}));
  EXPECT_EQ(experts.members(2, ExpertAxis::expert), (std::vector<std::uint32_t>{2, 6}));
}

// Every rank is in one group of each kind, and the three coordinates with the stage tell ranks apart.
TEST(ExpertMesh, PlacesAreDistinct) {
  for (const char* mesh_text :
       {"parallelism.tp=2 parallelism.dp=4 parallelism.ep=4", "parallelism.dp=8 parallelism.ep=2 parallelism.etp=2",
        "parallelism.tp=4 parallelism.dp=2 parallelism.ep=4 parallelism.expert_axis=own parallelism.etp=2",
        "parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 parallelism.expert_axis=own "
        "parallelism.order=[dp,ep,tp,cp,pp]"}) {
    const Scenario scenario = scenario_with(std::string("parallelism.sp=true ") + mesh_text);
    const Mesh mesh(scenario.parallelism);
    const ExpertMesh experts(scenario.parallelism, mesh);
    std::set<std::vector<std::int32_t>> places;
    for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) {
      const ExpertPlace place = experts.place(rank);
      places.insert({place.etp, place.ep, place.replica});
      for (const auto axis : {ExpertAxis::tensor, ExpertAxis::expert, ExpertAxis::replica}) {
        for (const std::uint32_t member : experts.members(rank, axis))
          EXPECT_EQ(experts.members(member, axis), experts.members(rank, axis));
      }
    }
    EXPECT_EQ(places.size(), static_cast<std::size_t>(mesh.size())) << mesh_text;
  }
}

}  // namespace
}  // namespace tandem::scenarios::routing_test
