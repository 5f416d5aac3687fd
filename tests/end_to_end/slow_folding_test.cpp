// Folded = unfolded on clusters too large to simulate unfolded at every turn. Not among the tests that run by default: ./dev test
// slow.

#include <gtest/gtest.h>

#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::slow_folding_test {
namespace {

std::vector<std::string> with(const std::string& mesh, const std::vector<std::string>& more) {
  std::vector<std::string> overrides = words(mesh +
                                             " model.layers=4 model.hidden=256 cluster.fabric.leaf_ports=16 "
                                             "cluster.fabric.pod_leaves=16");
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

TEST(SlowFolding, ARegularClusterOf1024Gpus) {
  const std::size_t classes = expect_equal_when_folded(tiny_cluster(
      with("parallelism.tp=8 parallelism.sp=true parallelism.pp=4 parallelism.dp=32 model.kv_heads=8 training.global_batch=512",
           {"cluster.fabric.oversubscription=[1,2,4]"})));
  EXPECT_EQ(classes, 4U);
}

TEST(SlowFolding, ASlowGpuAndADeadCableAmong512) {
  const std::size_t classes = expect_equal_when_folded(
      tiny_cluster(with("parallelism.tp=8 parallelism.sp=true parallelism.pp=2 parallelism.dp=32 model.kv_heads=8 "
                        "training.global_batch=64",
                        {"faults.slow_gpu={rank: 77, factor: 0.7}", "faults.dead_link={leaf: 3, cable: 2}"})));
  EXPECT_GT(classes, 2U);
  EXPECT_LT(classes, 512U);
}

TEST(SlowFolding, HashedRoutesAmong1024) {
  expect_equal_when_folded(
      tiny_cluster(with("parallelism.tp=4 parallelism.pp=2 parallelism.dp=128 training.global_batch=128 model.layers=2",
                        {"cluster.fabric.routing=ecmp", "cluster.fabric.flows=4"})));
}

}  // namespace
}  // namespace tandem::studies::slow_folding_test
