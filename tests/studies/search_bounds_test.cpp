#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "scenarios/reading/document.h"
#include "studies/search/memory_bound.h"
#include "studies/search/plan_score.h"
#include "studies/search/plan_space.h"
#include "studies/search/step_bound.h"
#include "studies/step/simulated_step.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::studies::search_bounds_test {
namespace {

struct Searched {
  TemporaryFolder folder;
  SearchSpec spec;

  explicit Searched(const std::string& text) {
    const std::string path = folder / "searched.yaml";
    std::ofstream(path) << text;
    spec = load_search(path, {});
  }
};

/// Of plans drawn at random from a space: no simulation takes less time or memory than the bounds say. Prints how much more.
void expect_bounds_hold(const std::string& text, std::size_t draws, unsigned seed, double least_median = 0.9,
                        double least_memory = 0.9) {
  const Searched searched(text);
  const PlanSpace space(searched.spec);
  std::vector<Plan> plans = space.all();
  ASSERT_FALSE(plans.empty());
  std::mt19937 random(seed);
  std::ranges::shuffle(plans, random);
  StageCostModel model;
  Schedules schedules;
  std::vector<double> time_ratios, memory_ratios;
  for (std::size_t i = 0; i < plans.size() && time_ratios.size() < draws; ++i) {
    const std::string name = to_text(plans[i], space.choices());
    SCOPED_TRACE(name);
    Scenario scenario;
    try {
      scenario = read_document(document_of(plans[i], space.choices(), searched.spec), "searched");
    } catch (const InputError&) {
      continue;  // what the arithmetic of the space leaves to the validator
    }
    const Scenario planned = scenario_of(plans[i], space.choices(), searched.spec.scenario);
    const StageCosts costs = model.of(planned);
    const Seconds coarse = coarse_step_bound(planned, costs), fine = step_bound(planned, costs, schedules);
    const MemoryBound memory = memory_bound(planned, costs, schedules);
    const StepResult result = simulate_step(scenario, true).result;
    constexpr double rounding = 1e-9;
    EXPECT_LE(coarse, result.step_time * (1 + rounding));
    EXPECT_LE(fine, result.step_time * (1 + rounding));
    EXPECT_LE(memory.peak, result.peak_memory());
    time_ratios.push_back(std::max(coarse, fine) / result.step_time);
    memory_ratios.push_back(static_cast<double>(memory.peak) / static_cast<double>(result.peak_memory()));
    if (std::getenv("TANDEM_ROWS") != nullptr)
      std::cout << time_ratios.back() << ' ' << coarse / result.step_time << ' ' << memory_ratios.back() << ' ' << name << '\n';
  }
  ASSERT_EQ(time_ratios.size(), draws) << "of " << plans.size() << " plans, too few can be simulated";
  const auto median = [](std::vector<double>& values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  };
  std::cout << time_ratios.size() << " plans; bound / simulated, median and least: time " << median(time_ratios) << ' '
            << time_ratios.front() << ", memory " << median(memory_ratios) << ' ' << memory_ratios.front() << '\n';
  EXPECT_GT(median(time_ratios), least_median);  // a bound of nothing would hold, too
  EXPECT_GT(median(memory_ratios), least_memory);
}

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
                       6, 71, 0.86, 0.82);
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
                     8, 72, 0.7, 0.8);
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
        EXPECT_LE(a.end[place], b.end[place]);
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
}  // namespace tandem::studies::search_bounds_test
