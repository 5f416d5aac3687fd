// A folded simulation has the times of the unfolded one, task by task.

#include <gtest/gtest.h>

#include <random>

#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem {
namespace {

TEST(Folding, OneClassPerPipelineStage) {
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words("parallelism.tp=2 parallelism.pp=2 parallelism.dp=4"))), 2U);
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words("parallelism.tp=8 parallelism.pp=2 parallelism.dp=4 model.kv_heads=8 "
                                                        "training.global_batch=16 parallelism.sp=true"))),
            2U);
}

TEST(Folding, OneSlowGpuSplitsTheClasses) {
  const std::size_t classes = expect_equal_when_folded(
      tiny_cluster({"parallelism.tp=2", "parallelism.pp=2", "parallelism.dp=4", "faults={slow_gpu: {rank: 5, factor: 0.5}}"}));
  EXPECT_GT(classes, 2U);
  EXPECT_LT(classes, 16U);
}

/// Any mesh up to 64 ranks, any order of its axes, fabrics with few ports so that leaves, spines and the core are crossed and
/// shared, and sometimes a slow GPU. The whole model is a few kernels, so that transfers overlap with each other.
std::vector<std::string> random_scenario(std::mt19937& random) {
  const auto pick = [&](auto... values) {
    const std::array<std::string, sizeof...(values)> list{std::string(values)...};
    return list[random() % list.size()];
  };
  const auto number = [&](std::initializer_list<int> values) { return *(values.begin() + random() % values.size()); };
  const int tp = number({1, 2, 4});
  const int pp = number({1, 2, 4});
  const int dp = number({1, 2, 4});
  const bool interleaved = pp > 1 && random() % 3 == 0;
  std::vector<std::string> overrides{"parallelism.tp=" + std::to_string(tp),
                                     "parallelism.pp=" + std::to_string(pp),
                                     "parallelism.dp=" + std::to_string(dp),
                                     "parallelism.sp=" + pick("true", "false"),
                                     "parallelism.zero=" + pick("0", "1", "2"),
                                     "parallelism.order=" + pick("[tp,cp,ep,dp,pp]", "[dp,tp,pp,cp,ep]", "[pp,dp,tp,cp,ep]",
                                                                 "[tp,pp,dp,cp,ep]", "[dp,pp,tp,cp,ep]"),
                                     "training.overlap.dp=" + pick("true", "false"),
                                     "training.overlap.pp=" + pick("true", "false"),
                                     "training.global_batch=16",
                                     "training.bucket_MB=" + pick("0.002", "0.02", "1"),
                                     "model.hidden=" + pick("32", "256"),
                                     "model.layers=8",
                                     "cluster.gpus_per_node=" + pick("2", "4", "8"),
                                     "cluster.fabric.leaf_ports=" + pick("2", "4"),
                                     "cluster.fabric.pod_leaves=" + pick("2", "4", "8"),
                                     "cluster.fabric.rail_optimized=" + pick("true", "false"),
                                     "cluster.fabric.oversubscription=" + pick("[1,1,1]", "[1,2,4]", "[1,1,7]", "[2,3,1]")};
  overrides.push_back("cluster.nics_per_node=" + overrides[12].substr(overrides[12].find('=') + 1));
  overrides.push_back("model.kv_heads=" + pick("4", "2", "1"));  // with tp above it, several ranks hold each
  if (interleaved) {
    overrides.push_back("parallelism.vpp=2");
    overrides.push_back("training.schedule=interleaved-1f1b");
  } else {
    overrides.push_back("training.schedule=" + pick("1f1b", "gpipe"));
  }
  if (random() % 3 == 0) {
    const int ranks = tp * pp * dp;
    overrides.push_back("faults={slow_gpu: {rank: " + std::to_string(random() % ranks) + ", factor: 0.8}}");
  }
  return overrides;
}

TEST(Folding, RandomScenarios) {
  std::mt19937 random(20240917);
  std::size_t simulated = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<std::string> overrides = random_scenario(random);
    std::string text;
    for (const std::string& o : overrides) text += o + " ";
    SCOPED_TRACE(text);
    expect_equal_when_folded(tiny_cluster(overrides));
    if (HasFailure()) return;
    ++simulated;
  }
  EXPECT_EQ(simulated, 200U);
}

}  // namespace
}  // namespace tandem
