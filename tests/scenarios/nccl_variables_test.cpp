// NCCL's environment variables, for clusters where they matter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/interop/formats.h"
#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::nccl_variables_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(NcclVariables, OnlyWhereTheyMatter) {
  const auto variables = [](const std::vector<std::string>& options) {
    return find_exporter("nccl")->write({parse_scenario(base_text(), "s.yaml", options), {}}).text;
  };
  EXPECT_THAT(variables({}), HasSubstr("\nNCCL_CROSS_NIC=0\n"));
  EXPECT_THAT(variables({"cluster.fabric.rail_optimized=false"}), HasSubstr("\nNCCL_CROSS_NIC=1\n"));
  EXPECT_THAT(variables({"cluster.nvls=false"}), HasSubstr("\nNCCL_NVLS_ENABLE=0\n"));
  EXPECT_THAT(variables({"cluster.nvls=true"}), Not(HasSubstr("NVLS")));
  EXPECT_THAT(variables({"cluster.fabric.routing=ecmp", "cluster.fabric.flows=4"}),
              HasSubstr("\nNCCL_IB_QPS_PER_CONNECTION=4\n"));
  EXPECT_THAT(variables({"cluster.gpus=8", "parallelism.dp=1", "cluster.nvls=true"}), Not(HasSubstr("NCCL_")));
}

}  // namespace
}  // namespace tandem::scenarios::nccl_variables_test
