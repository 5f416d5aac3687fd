// DeepEP's dispatch and combine on nodes of H800, and HybridEP's on GB200 and H100, against their own measurements.

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "scenarios/mesh/token_routing.h"
#include "scenarios/reading/load.h"
#include "scenarios/spec/scenario.h"
#include "sim/collective_cost.h"
#include "tests/scenarios/base_scenario.h"
#include "topology/layouts.h"

namespace tandem::studies::deepep_accuracy_test {
namespace {

constexpr Bytes tokens = 4096, hidden = 7168, choices = 8;

struct Measured {
  std::uint32_t ranks;
  double dispatch_GBps, combine_GBps;  ///< fp8 and bf16; bytes of a token once for each place that it goes to
};
void PrintTo(const Measured& row, std::ostream* out) { *out << row.ranks << " ranks"; }

/// The preset of the experts' part of DeepSeek-V3 over so many ranks.
Scenario over(std::uint32_t ranks) {
  const std::string n = std::to_string(ranks);
  return parse_scenario(base_text(), "deepep",
                        {"cluster.preset=dgx-h800", "cluster.gpus=" + n, "parallelism.dp=" + n, "parallelism.ep=" + n,
                         "parallelism.tp=1", "parallelism.pp=1", "parallelism.dispatcher=deepep", "training.global_batch=" + n,
                         "model.moe.experts=256", "model.moe.top_k=8", "model.moe.ffn=2048", "model.moe.node_limit=4"});
}

class DeepEp : public testing::TestWithParam<Measured> {};

TEST_P(DeepEp, IsAsFastAsMeasured) {
  const Measured& row = GetParam();
  const Scenario scenario = over(row.ranks);
  const Cluster cluster(scenario.cluster);
  std::vector<std::uint32_t> gpus(row.ranks);
  std::iota(gpus.begin(), gpus.end(), 0U);
  const TokenCopies copies = copies_of_token(scenario);
  const Layout layout = lay_token_dispatch(cluster, gpus, copies);
  const double places = layout.nodes == 1 ? copies.ranks : copies.nodes;
  const auto rate = [&](Bytes bytes_of_element) {
    const Bytes bytes = tokens * hidden * bytes_of_element;
    const CollectiveCost cost =
        collective_cost(OpKind::all_to_all, choices * bytes, row.ranks, layout, scenario.cluster.gpu.architecture);
    return static_cast<double>(bytes) * places / uncontended_time(cost, layout, cluster.links()) * 1e-9;
  };
  std::cout << row.ranks << " ranks: dispatch " << rate(1) << " GB/s, measured " << row.dispatch_GBps << "; combine " << rate(2)
            << " GB/s, measured " << row.combine_GBps << '\n';
  EXPECT_NEAR(rate(1), row.dispatch_GBps, 0.05 * row.dispatch_GBps);
  EXPECT_NEAR(rate(2), row.combine_GBps, 0.05 * row.combine_GBps);
}

// deepseek-ai/DeepEP, docs/legacy.md, normal kernels.
INSTANTIATE_TEST_SUITE_P(Table, DeepEp,
                         testing::Values(Measured{8, 153, 158}, Measured{16, 43, 43}, Measured{32, 58, 57},
                                         Measured{64, 51, 50}));

/// HybridEP's kernels alone in bf16, eight of eight experts for each rank; bytes as above, without gates.
struct MeasuredHybrid {
  const char* cluster;
  std::uint32_t ranks;
  double dispatch_GBps, combine_GBps;
};
void PrintTo(const MeasuredHybrid& row, std::ostream* out) { *out << row.ranks << " ranks of " << row.cluster; }

class HybridEp : public testing::TestWithParam<MeasuredHybrid> {};

TEST_P(HybridEp, TakesADispatchAndACombineAsLongAsMeasured) {
  const MeasuredHybrid& row = GetParam();
  const std::string n = std::to_string(row.ranks), experts = std::to_string(8 * row.ranks);
  const Scenario scenario =
      parse_scenario(base_text(), "hybridep",
                     {std::string("cluster.preset=") + row.cluster, "cluster.gpus=" + n, "parallelism.dp=" + n,
                      "parallelism.ep=" + n, "parallelism.tp=1", "parallelism.pp=1", "parallelism.dispatcher=hybridep",
                      "training.global_batch=" + n, "model.moe.experts=" + experts, "model.moe.top_k=8", "model.moe.ffn=2048"});
  const Cluster cluster(scenario.cluster);
  std::vector<std::uint32_t> gpus(row.ranks);
  std::iota(gpus.begin(), gpus.end(), 0U);
  const TokenCopies copies = copies_of_token(scenario);
  const Layout layout = lay_token_dispatch(cluster, gpus, copies, Algorithm::hybridep);
  const double places = layout.nodes == 1 ? copies.ranks : copies.nodes;
  const auto time = [&](Bytes of_row) {
    const CollectiveCost cost =
        collective_cost(OpKind::all_to_all, choices * tokens * of_row, row.ranks, layout, scenario.cluster.gpu.architecture);
    return uncontended_time(cost, layout, cluster.links());
  };
  const Bytes bytes = 2 * hidden, gates = 4 * 8 * row.ranks / layout.nodes;
  const double counted = static_cast<double>(tokens * bytes) * places * 1e-9;
  const Seconds measured = counted / row.dispatch_GBps + counted / row.combine_GBps;
  const Seconds predicted = time(bytes + gates) + time(bytes);
  std::cout << row.ranks << " ranks of " << row.cluster << ": " << predicted << " s, measured " << measured << '\n';
  EXPECT_NEAR(predicted, measured, 0.06 * measured);
}

// deepseek-ai/DeepEP @07eea0c, Hybrid-EP_Implementation.md: 32 multiprocessors on GB200, 16 on H100.
INSTANTIATE_TEST_SUITE_P(
    Table, HybridEp,
    testing::Values(MeasuredHybrid{"gb200-nvl72", 8, 764.03, 737.13}, MeasuredHybrid{"gb200-nvl72", 16, 706.95, 666.26},
                    MeasuredHybrid{"gb200-nvl72", 24, 665.97, 639.80}, MeasuredHybrid{"gb200-nvl72", 32, 642.23, 605.15},
                    MeasuredHybrid{"gb200-nvl72", 36, 632.31, 596.99}, MeasuredHybrid{"dgx-h100", 16, 71.71, 62.95},
                    MeasuredHybrid{"dgx-h100", 32, 57.69, 57.46}, MeasuredHybrid{"dgx-h100", 64, 49.97, 49.77}));

}  // namespace
}  // namespace tandem::studies::deepep_accuracy_test
