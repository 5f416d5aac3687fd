#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/reading/culprit.h"
#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::warnings_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::vector<std::string> warnings(const std::vector<std::string>& overrides) {
  return parse_scenario(base_text(), "s.yaml", overrides).warnings;
}

TEST(Warnings, AreNotForOrdinaryScenarios) {
  EXPECT_THAT(warnings({}), IsEmpty());
  EXPECT_THAT(warnings({"parallelism.tp=1", "parallelism.sp=false", "parallelism.dp=16"}), IsEmpty());
}

// A DGX H100: 400 Gb/s * 0.96 / 8 = 48 GB/s per NIC and GPU, and 450 * 0.81 = 364.5 GB/s of NVLink, here printed as the even 364.
TEST(Warnings, TensorParallelismBeyondTheNode) {
  EXPECT_THAT(warnings({"parallelism={tp: 4, pp: 2, dp: 4}", "cluster.gpus_per_node=2", "cluster.nics_per_node=2"}),
              ElementsAre(AllOf(StartsWith("--set"), HasSubstr("tp 4 reaches beyond the node of 2 GPUs"),
                                HasSubstr("48 GB/s per GPU instead of NVLink's 364"))));
}

TEST(Warnings, TensorParallelismThatTheOrderSpreads) {
  EXPECT_THAT(warnings({"parallelism.order=[dp, tp, cp, ep, pp]"}), ElementsAre(HasSubstr("tp 4 reaches beyond the node of 8")));
}

TEST(Warnings, TensorParallelismThatThePlacementSpreads) {
  EXPECT_THAT(warnings({"parallelism.placement=round-robin"}), ElementsAre(HasSubstr("tp 4 reaches beyond the node of 8")));
}

TEST(Warnings, OneNodeIsNeverLeft) {
  EXPECT_THAT(warnings({"parallelism={dp: 1, order: [dp, tp, cp, ep, pp]}", "cluster={preset: dgx-h100, gpus: 8}"}), IsEmpty());
}

Scenario changed(void (*change)(Scenario&)) {
  Scenario scenario = parse_scenario(base_text(), "s.yaml", {});
  change(scenario);
  return scenario;
}

TEST(Warnings, PointAtTheField) {
  const YamlNode document = parse_yaml(base_text(), "s.yaml");
  const Scenario scenario = changed([](Scenario& s) { s.parallelism.zero = 3, s.parallelism.dp = 4; });
  EXPECT_THAT(find_warnings(scenario, document), ElementsAre(AllOf(StartsWith("s.yaml:4:43: zero 3 over 4 data-parallel ranks"),
                                                                   HasSubstr("expected dp 8 or more"))));
}

// 4 ranks: of fp32 gradients 4 * (4 + 4) / ratio bytes are gathered, 2 * 4 all-reduced; of bf16 4 * (2 + 4) / ratio, and 2 * 2.
TEST(Warnings, SelectionsOfManyRanks) {
  const auto of_ratio = [](const std::string& ratio, const std::string& type = "fp32") {
    return warnings({"training.compressor={method: top-k, ratio: " + ratio + "}", "training.grad_dtype=" + type});
  };
  EXPECT_THAT(of_ratio("2"),
              ElementsAre(HasSubstr("compressor.ratio 2 among 4 data-parallel ranks: each gathers the selections of "
                                    "all, 2.0 times what an all-reduce")));
  EXPECT_THAT(of_ratio("4.5"), IsEmpty());
  EXPECT_THAT(of_ratio("4.5", "bf16"), ElementsAre(HasSubstr("1.3 times what an all-reduce")));
  EXPECT_THAT(of_ratio("6.5", "bf16"), IsEmpty());
}

TEST(Warnings, ManyExpertRanksWithoutNodeLimit) {
  const std::vector<std::string> experts{"model.moe={experts: 64, top_k: 8}", "cluster.gpus=128",
                                         "parallelism={tp: 1, sp: false, pp: 1, ep: 64, dp: 128}", "training.global_batch=128"};
  EXPECT_THAT(warnings(experts), ElementsAre(HasSubstr("ep 64 without a node limit")));
  std::vector<std::string> limited = experts;
  limited.emplace_back("model.moe.node_limit=4");
  EXPECT_THAT(warnings(limited), IsEmpty());
}

TEST(Warnings, ContextParallelismBeyondTheNode) {
  const YamlNode document = parse_yaml(base_text(), "s.yaml");
  const Scenario scenario = changed([](Scenario& s) { s.parallelism.cp = 4, s.parallelism.dp = 1; });
  EXPECT_THAT(find_warnings(scenario, document), ElementsAre(HasSubstr("cp 4 * tp 4 reaches beyond the node of 8 GPUs")));
}

TEST(Warnings, HierarchyOfOneLevel) {
  const std::string hierarchical = "training.hierarchical_all_reduce=true";
  EXPECT_THAT(warnings({hierarchical, "parallelism={tp: 4, pp: 2, dp: 4, order: [tp, pp, cp, ep, dp]}"}),
              ElementsAre(HasSubstr("one member of a data-parallel group on a node")));
  EXPECT_THAT(warnings({hierarchical, "parallelism={tp: 1, pp: 8, dp: 4}"}),
              ElementsAre(HasSubstr("all 4 members of a data-parallel group on one node")));
  EXPECT_THAT(warnings({hierarchical, "parallelism={tp: 4, pp: 2, dp: 4, order: [tp, cp, ep, dp, pp]}"}), IsEmpty());
}

}  // namespace
}  // namespace tandem::scenarios::warnings_test
