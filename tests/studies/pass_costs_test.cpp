#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "studies/search/stage_costs.h"
#include "tests/studies/searched.h"

namespace tandem::studies::pass_costs_test {
namespace {

/// The scenario of a search whose axes say nothing.
Scenario plain_scenario() {
  return Searched(R"(
name: small
model: llama3-8b
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 1, pp: 2, dp: 8}
training: {sequence: 2048, micro_batch: 1, global_batch: 32, precision: bf16}
search: {axes: {tp: [1]}}
)")
      .spec.scenario;
}

TEST(PassCosts, TellApartWhatKernelsDependOn) {
  const Scenario bf16 = plain_scenario();
  Scenario fp8 = bf16, longer = bf16;
  fp8.training.precision = DType::f8;
  longer.training.sequence *= 2;
  PassCosts costs;
  const LayerClass kind = layer_class(bf16, 0);
  const Seconds usual = costs.of(bf16, kind).forward.layer_kernels;
  EXPECT_LT(costs.of(fp8, layer_class(fp8, 0)).forward.layer_kernels, usual);
  EXPECT_GT(costs.of(longer, kind).forward.layer_kernels, usual);
  EXPECT_EQ(costs.of(bf16, kind).forward.layer_kernels, usual);
  EXPECT_EQ(costs.found(), 3U);
}

TEST(MeshNetwork, TellsListsOfGpusApart) {
  Scenario apart = plain_scenario();  // a stage on each node
  apart.parallelism.placement.kind = RankPlacement::Kind::listed;
  Scenario beside = apart;  // both stages of a replica on neighbouring GPUs
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    apart.parallelism.placement.gpus.push_back(rank);
    beside.parallelism.placement.gpus.push_back(rank % 8 * 2 + rank / 8);
  }
  MeshNetwork network;
  constexpr Bytes bytes = 1 << 20;
  EXPECT_GT(network.between_stages(apart, bytes).front(), network.between_stages(beside, bytes).front());
}

// A ring of context parallelism over several nodes, whose ranks differ: those of the stages alone never take longer than all.
TEST(PassCosts, OfRanksAloneTakeNoMoreTimeAndTheSameMemory) {
  const Searched searched(R"(
name: small
model: llama3-8b
cluster: {preset: dgx-h100, gpus: 32}
training: {sequence: 8192, micro_batch: 1, global_batch: 32, precision: bf16}
search: {axes: {tp: [1, 2, 8], pp: [1, 2], cp: [1, 4, 16], vpp: [1], zero: [0], micro_batch: [1, 2], schedule: [1f1b, zb-h1]}}
)");
  const PlanSpace space(searched.spec);
  PassCosts costs;
  std::size_t left_out = 0;
  for (const Plan& plan : space.all()) {
    SCOPED_TRACE(to_text(plan, space.choices()));
    const Scenario scenario = scenario_of(plan, space.choices(), searched.spec.scenario);
    const LayerClass kind = layer_class(scenario, 0);
    const PassCost alone = costs.of(scenario, kind, PassRanks::of_stages), all = costs.of(scenario, kind);
    EXPECT_TRUE(all.has_all_ranks);
    left_out += alone.has_all_ranks ? 0 : 1;
    for (const auto pass : {&PassCost::forward, &PassCost::backward}) {
      const PassTimes &a = alone.*pass, &b = all.*pass;
      EXPECT_LE(a.next, b.next);
      EXPECT_EQ(a.layer_kernels, b.layer_kernels);
      EXPECT_EQ(a.other_kernels, b.other_kernels);
      for (std::size_t place = 0; place < chunk_places; ++place) {
        EXPECT_LE(a.begin[place].from_stream, b.begin[place].from_stream);
        EXPECT_LE(a.begin[place].from_input, b.begin[place].from_input);
        EXPECT_LE(a.end[place].to_send, b.end[place].to_send);
        EXPECT_LE(a.end[place].to_last, b.end[place].to_last);
      }
    }
    EXPECT_EQ(alone.weight_kernels, all.weight_kernels);
    EXPECT_EQ(alone.kept_by_layer, all.kept_by_layer);
    EXPECT_EQ(alone.kept_beside, all.kept_beside);
    EXPECT_EQ(alone.passing, all.passing);
    EXPECT_EQ(alone.layer_parameters, all.layer_parameters);
    EXPECT_EQ(alone.other_parameters, all.other_parameters);
    EXPECT_EQ(alone.optimizer_per_parameter, all.optimizer_per_parameter);
  }
  EXPECT_GT(left_out, 0U);
}

// Costs that child processes find ahead are those that are found when they are first needed.
TEST(PassCosts, FoundAtOnceAreThoseFoundOneByOne) {
  const Searched searched(R"(
name: small
model: llama3-8b
cluster: {preset: dgx-h100, gpus: 16}
training: {sequence: 2048, micro_batch: 1, global_batch: 32, precision: bf16}
search: {axes: {tp: [1, 2], pp: [1, 2, 4], cp: [1, 2], vpp: [1], zero: [0], micro_batch: [1], schedule: [1f1b, zb-h1], sp: [true]}}
)");
  const PlanSpace space(searched.spec);
  std::vector<Scenario> scenarios;
  for (const Plan& plan : space.all()) scenarios.push_back(scenario_of(plan, space.choices(), searched.spec.scenario));
  PassCosts one_by_one, at_once;
  for (const Scenario& scenario : scenarios) at_once.ask_for(scenario);
  at_once.find(3, [](std::size_t done, std::size_t of) { EXPECT_LE(done, of); });
  const std::size_t found = at_once.found();
  EXPECT_GT(found, 10U);
  for (const Scenario& scenario : scenarios) {
    const LayerClass kind = layer_class(scenario, 0);
    EXPECT_EQ(one_by_one.of(scenario, kind), at_once.of(scenario, kind));
  }
  EXPECT_EQ(one_by_one.found(), found);
  EXPECT_EQ(at_once.found(), found);
}

TEST(PairCosts, TakeNoLessThanTheirKernelsAndAreFoundAtOnceAsOneByOne) {
  const Searched searched(R"(
model: {preset: deepseek-v3, layers: 8}
cluster: {preset: dgx-h100, gpus: 32}
parallelism: {tp: 1, dp: 32, ep: 8}
training: {sequence: 4096, micro_batch: 1, global_batch: 128, precision: bf16, overlap: {ep: true}}
search:
  axes: {tp: [1, 2], sp: [true], pp: [2, 4], vpp: [1, 2], cp: [1], ep: [8, 16], etp: [1], zero: [1], micro_batch: [1],
         schedule: [interleaved-1f1b, dualpipe], recompute: [none]}
)");
  const PlanSpace space(searched.spec);
  StageCostModel one_by_one;
  PairCosts at_once;
  std::vector<Scenario> scenarios;
  for (const Plan& plan : space.all()) scenarios.push_back(scenario_of(plan, space.choices(), searched.spec.scenario));
  for (const Scenario& scenario : scenarios) at_once.ask_for(scenario);
  at_once.find(3, [](std::size_t done, std::size_t of) { EXPECT_LE(done, of); });
  const std::size_t found = at_once.found();
  EXPECT_GT(found, 10U);
  double most = 0;
  for (const Scenario& scenario : scenarios) {
    const StageCosts costs = one_by_one.of(scenario);
    const ChunkPlacement placement(scenario);
    auto pair = costs.pairs.begin();
    for (std::int32_t stage = 0; stage < scenario.parallelism.pp; ++stage) {
      for (std::int32_t forward = 0; forward < placement.chunks(); ++forward) {
        for (std::int32_t backward = 0; backward < placement.chunks(); ++backward, ++pair) {
          ASSERT_NE(pair, costs.pairs.end());
          EXPECT_EQ(*pair, at_once.of(scenario, stage, forward, backward));
          const PartCosts& forth = costs.parts[static_cast<std::size_t>(placement.part(stage, forward))];
          const PartCosts& back = costs.parts[static_cast<std::size_t>(placement.part(stage, backward))];
          const Seconds kernels = forth.forward.kernels + back.backward.kernels + back.weights;
          EXPECT_GE(pair->from_stream.both, kernels * (1 - 1e-9));
          most = std::max(most, pair->from_stream.both / kernels);
        }
      }
    }
    EXPECT_EQ(pair, costs.pairs.end());
  }
  EXPECT_EQ(at_once.found(), found);
  EXPECT_GT(most, 1.1);  // not all is hidden
}

// Of a chunk without layers that predicts further tokens, these are what is recomputed or not.
TEST(PairCosts, TellWhatIsRecomputedOfFurtherPredictionsApart) {
  const Searched searched(R"(
model: {preset: deepseek-v3, layers: 8}
cluster: {preset: dgx-h800, gpus: 32}
parallelism: {tp: 1, pp: 4, dp: 8, ep: 8, dispatcher: deepep, pipeline_layout: "Ettt|ttttt||mL"}
training: {sequence: 4096, micro_batch: 1, global_batch: 128, precision: bf16, schedule: dualpipe, overlap: {dp: false, ep: true}}
search:
  axes: {tp: [1], pp: [4], vpp: [1], cp: [1], ep: [8], etp: [1], zero: [1], micro_batch: [1], schedule: [dualpipe], recompute: [none, full]}
)");
  const PlanSpace space(searched.spec);
  PairCosts costs;
  std::vector<Seconds> of_predictions;
  for (const Plan& plan : space.all())
    of_predictions.push_back(costs.of(scenario_of(plan, space.choices(), searched.spec.scenario), 3, 0, 0).from_stream.both);
  ASSERT_GE(of_predictions.size(), 2U);
  EXPECT_GT(std::ranges::max(of_predictions), 1.1 * std::ranges::min(of_predictions));
}

/// Of plans drawn at random: what is found after others, on ranks that were laid out for them, is what is found first.
void expect_costs_do_not_depend_on_others(const std::string& text, std::size_t draws, unsigned seed) {
  const Searched searched(text);
  const PlanSpace space(searched.spec);
  std::vector<Plan> plans = space.all();
  std::mt19937 random(seed);
  std::ranges::shuffle(plans, random);
  ASSERT_GT(plans.size(), draws);
  plans.resize(draws);
  PassCosts after_others;
  for (const Plan& plan : plans) {
    SCOPED_TRACE(to_text(plan, space.choices()));
    const Scenario scenario = scenario_of(plan, space.choices(), searched.spec.scenario);
    for (const std::int64_t layer : {std::int64_t{0}, scenario.model.layers - 1}) {
      const LayerClass kind = layer_class(scenario, layer);
      for (const PassRanks ranks : {PassRanks::of_stages, PassRanks::all}) {
        PassCosts first;
        EXPECT_EQ(first.of(scenario, kind, ranks), after_others.of(scenario, kind, ranks));
      }
    }
  }
}

TEST(PassCosts, DoNotDependOnThoseFoundBefore) {
  expect_costs_do_not_depend_on_others(R"(
model: {preset: llama3-8b, layers: 8}
cluster: {preset: dgx-h100, gpus: 64}
training: {sequence: 8192, micro_batch: 1, global_batch: 64, precision: bf16, overlap: {tp: true}}
search: {axes: {tp: [1, 2, 8], sp: [true], cp: [1, 2, 8]}}
)",
                                       60, 61);
}

// Of few tokens every expert has as many as another, of more the first has more.
TEST(PassCosts, DoNotDependOnThoseFoundBeforeWithExperts) {
  expect_costs_do_not_depend_on_others(R"(
model: {preset: mixtral-8x7b, layers: 8, moe: {load: {zipf: 0.01}}}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 1, dp: 16, ep: 8}
training: {sequence: 128, micro_batch: 1, global_batch: 256, precision: bf16}
search: {axes: {tp: [1, 2], cp: [1, 2], pp: [1, 2], ep: [2, 4, 8]}}
)",
                                       40, 62);
}

TEST(PassCosts, DoNotDependOnThoseFoundBeforeWithDocuments) {
  expect_costs_do_not_depend_on_others(R"(
model: {preset: llama3-8b, layers: 8}
cluster: {preset: dgx-h100, gpus: 16}
training: {sequence: 8192, micro_batch: 1, global_batch: 32, precision: bf16, documents: {mean: 1500, sigma: 1.2, streams: 2}}
search: {axes: {tp: [1, 2], cp: [1, 2, 4]}}
)",
                                       30, 63);
}

}  // namespace
}  // namespace tandem::studies::pass_costs_test
