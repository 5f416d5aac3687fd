#include "studies/search/plan_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "scenarios/checks/checks.h"
#include "scenarios/reading/document.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::studies::plan_space_test {
namespace {

/// What a search may choose, drawn from a seed; of each axis some values that do not divide.
struct Axes {
  std::vector<std::int64_t> gpus, tp, pp, vpp, cp, ep, etp, micro_batch;
  bool experts = false, own_axis = false, ulysses = false, oversubscribed = false, overlaps_tp = false;
  std::int64_t sequence = 0, global_batch = 0;

  explicit Axes(std::uint32_t seed) {
    std::mt19937 random(seed);  // without the library's distributions, which differ between platforms
    const auto some = [&](std::vector<std::int64_t> values) {
      std::vector<std::int64_t> kept{values.front()};
      for (std::size_t i = 1; i < values.size(); ++i)
        if (random() % 2 == 0) kept.push_back(values[i]);
      return kept;
    };
    experts = random() % 2 == 0;
    own_axis = experts && random() % 2 == 0;
    ulysses = random() % 3 == 0;
    sequence = random() % 2 == 0 ? 768 : 1000;
    global_batch = random() % 2 == 0 ? 48 : 64;
    gpus = random() % 2 == 0 ? std::vector<std::int64_t>{16} : std::vector<std::int64_t>{16, 32};
    tp = some({1, 2, 3, 4, 8});
    pp = some({1, 2, 3, 4});
    vpp = some({1, 2, 3});
    cp = some({1, 2, 4});
    ep = some({1, 2, 3, 4});
    etp = some({1, 2});
    micro_batch = some({1, 2, 3});
    oversubscribed = random() % 2 == 0;
    overlaps_tp = random() % 2 == 0;
  }

  std::string text() const {
    const auto list = [](const std::vector<std::int64_t>& values) {
      std::string text;
      for (const std::int64_t value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
      return "[" + text + "]";
    };
    return "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1536, vocab: 4608" +
           std::string(experts ? ", moe: {experts: 8, top_k: 2, ffn: 64}" : "") +
           "}\ncluster: {preset: dgx-h100, gpus: 16, fabric: {oversubscription: [1, 1, " +
           std::string(oversubscribed ? "2" : "1") + "]}}\nparallelism: {expert_axis: " + (own_axis ? "own" : "folded") +
           ", cp_method: " + (ulysses ? "ulysses" : "ring") + "}\ntraining: {sequence: " + std::to_string(sequence) +
           ", global_batch: " + std::to_string(global_batch) + (overlaps_tp ? ", overlap: {tp: true}" : "") +
           "}\nsearch:\n  gpus: [" + std::to_string(gpus.front()) + ", " + std::to_string(gpus.back()) +
           "]\n  axes: {tp: " + list(tp) + ", pp: " + list(pp) + ", vpp: " + list(vpp) + ", cp: " + list(cp) +
           ", ep: " + list(ep) + ", etp: " + list(etp) + ", micro_batch: " + list(micro_batch) +
           ", zero: [1, 3], recompute: [none]}\n";
  }
};

/// Plans that are the same step as another one are there once: schedules without a pipeline, sp without tp, ZeRO without ranks
/// to shard over, and pp inside dp where all that is inside them fills whole nodes of a fabric that never blocks.
bool is_named_otherwise(const Plan& plan, const PlanChoices& choices, const Axes& axes) {
  constexpr std::int64_t node = 8;
  const std::int64_t inside = plan.tp * plan.cp * (axes.own_axis ? plan.ep : 1);
  const bool order_matters = plan.pp > 1 && plan.dp > 1 && plan.gpus > node && (axes.oversubscribed || inside < node);
  if (plan.order != 0 && !order_matters) return true;
  const ScheduleKind schedule = choices.schedules[static_cast<std::size_t>(plan.schedule)];
  return (plan.pp == 1 && schedule != ScheduleKind::one_f_one_b) || (plan.tp == 1 && plan.sp != 0) ||
         (plan.dp * plan.cp == 1 && !axes.experts && plan.zero != 1);
}

/// Every combination of the values, with the layers spread evenly, that no rule objects to.
std::set<Plan> all_by_the_rules(const Axes& axes, const PlanSpace& space, const Scenario& base) {
  std::set<Plan> plans;
  const auto schedules = static_cast<std::int64_t>(space.choices().schedules.size());
  for (const std::int64_t gpus : axes.gpus)
    for (const std::int64_t tp : axes.tp)
      for (const std::int64_t pp : axes.pp)
        for (const std::int64_t vpp : axes.vpp)
          for (const std::int64_t cp : axes.cp)
            for (const std::int64_t ep : axes.ep)
              for (const std::int64_t etp : axes.etp)
                for (const std::int64_t micro_batch : axes.micro_batch)
                  for (const std::int32_t zero : {1, 3})
                    for (const std::int32_t sp : {0, 1})
                      for (std::int64_t schedule = 0; schedule < schedules; ++schedule)
                        for (const std::int64_t order : {0, 1}) {
                          Plan plan = space.own();
                          plan.gpus = gpus;
                          plan.tp = tp;
                          plan.pp = pp;
                          plan.vpp = vpp;
                          plan.cp = cp;
                          plan.ep = ep;
                          plan.etp = etp;
                          plan.dp = gpus / (tp * pp * cp * (axes.own_axis ? ep : 1));
                          plan.micro_batch = micro_batch;
                          plan.zero = zero;
                          plan.sp = sp;
                          plan.schedule = schedule;
                          plan.order = order;
                          if (plan.dp == 0 || is_named_otherwise(plan, space.choices(), axes)) continue;
                          if (!first_objection(scenario_of(plan, space.choices(), base))) plans.insert(plan);
                        }
  return plans;
}

class PlansOfRandomSearches : public testing::TestWithParam<std::uint32_t> {};

TEST_P(PlansOfRandomSearches, AreAllThatTheRulesAdmit) {
  const Axes axes(GetParam());
  const TemporaryFolder folder;
  const std::string path = folder / "searched.yaml";
  std::ofstream(path) << axes.text();
  const SearchSpec spec = load_search(path, {});
  const PlanSpace space(spec);
  std::vector<Plan> even;
  for (const Plan& plan : space.all()) {
    const Scenario scenario = scenario_of(plan, space.choices(), spec.scenario);
    EXPECT_FALSE(first_objection(scenario)) << to_text(plan, space.choices());
    Plan spread = plan;
    spread.first_stage_layers = spread.last_stage_layers = 0;
    if (spread == plan)
      even.push_back(plan);
    else  // other layers at the ends only where they do not spread evenly
      EXPECT_TRUE(first_objection(scenario_of(spread, space.choices(), spec.scenario))) << to_text(plan, space.choices());
  }
  EXPECT_FALSE(even.empty());
  const std::set<Plan> expected = all_by_the_rules(axes, space, spec.scenario);
  EXPECT_EQ(even, std::vector(expected.begin(), expected.end()));
}
INSTANTIATE_TEST_SUITE_P(Seeds, PlansOfRandomSearches, testing::Range(1U, 25U));

/// The layout of a scenario holds for plans of as many virtual stages, and for no others.
TEST(PlansOfALayout, KeepItWhereItFits) {
  const TemporaryFolder folder;
  const std::string path = folder / "searched.yaml";
  std::ofstream(path)
      << "model: {preset: llama3-8b, layers: 8}\ncluster: {preset: dgx-h100, gpus: 16}\n"
         "parallelism: {tp: 1, pp: 4, pipeline_layout: 'E|t*5|t*3|L'}\n"
         "training: {sequence: 2048, micro_batch: 1, global_batch: 32, precision: bf16}\n"
         "search: {axes: {pp: [1, 2, 4, 8], vpp: [1, 2], tp: [1], cp: [1], micro_batch: [1], recompute: [none]}}\n";
  const SearchSpec spec = load_search(path, {});
  const PlanSpace space(spec);
  std::set<std::pair<std::int64_t, std::int64_t>> keep, drop;
  for (const Plan& plan : space.all()) {
    (plan.has_layout != 0 ? keep : drop).emplace(plan.pp, plan.vpp);
    const Scenario scenario = read_document(document_of(plan, space.choices(), spec), "searched");
    EXPECT_EQ(layout_text(scenario.parallelism.pipeline_layout), plan.has_layout != 0 ? "E|t*5|t*3|L" : "");
    EXPECT_EQ(scenario.parallelism.pipeline_layout,
              scenario_of(plan, space.choices(), spec.scenario).parallelism.pipeline_layout);
  }
  using Sizes = std::set<std::pair<std::int64_t, std::int64_t>>;
  EXPECT_EQ(keep, (Sizes{{2, 2}, {4, 1}}));
  EXPECT_EQ(drop, (Sizes{{1, 1}, {2, 1}, {4, 2}, {8, 1}}));
}

TEST(ParsedPlans, HaveSequenceParallelismOnlyWhereItIsTrue) {
  const TemporaryFolder folder;
  const std::string path = folder / "searched.yaml";
  std::ofstream(path) << Axes(1).text();
  const SearchSpec spec = load_search(path, {});
  const PlanSpace space(spec);
  EXPECT_EQ(space.parse("tp=2,sp=true").sp, 1);
  EXPECT_EQ(space.parse("tp=2,sp=false").sp, 0);
  for (const char* no_boolean : {"yes", "1", "True", "\"true\"", "[true]"}) {
    try {
      space.parse(std::string("tp=2,sp=") + no_boolean);
      ADD_FAILURE() << no_boolean << " was accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("plan.sp is "), testing::HasSubstr("expected true or false")));
    }
  }
}

}  // namespace
}  // namespace tandem::studies::plan_space_test
