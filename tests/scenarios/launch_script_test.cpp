// Scripts that start a run: torchrun on each node, and Slurm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/interop/formats.h"
#include "scenarios/reading/load.h"

namespace tandem::scenarios::launch_script_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string script_of(std::string_view exporter, const std::vector<std::string>& changes = {}) {
  const Scenario scenario = parse_scenario(
      "name: a run\nmodel: llama3-8b\ncluster: {preset: dgx-h100, gpus: 64}\n"
      "parallelism: {tp: 4, sp: true, pp: 4, pipeline_layout: 'Et*7|t*9|t*9|t*7L'}\n"
      "training: {sequence: 8192, global_batch: 64}\n",
      "s.yaml", changes);
  return find_exporter(exporter)->write({scenario, {}}).text;
}

TEST(LaunchScript, HasTheNodesOfTheMesh) {
  const std::string script = script_of("torchrun");
  EXPECT_THAT(script, HasSubstr("torchrun --nnodes 8 --nproc-per-node 8 --node-rank \"${NODE_RANK:-0}\""));
  EXPECT_THAT(script, HasSubstr("\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\n"));
  EXPECT_THAT(script, HasSubstr("\nexport NCCL_CROSS_NIC=0\n"));
  EXPECT_THAT(script, HasSubstr("\n  --pipeline-model-parallel-layout 'Et*7|(t*9|)*2t*7L'\n"));
  EXPECT_THAT(script, HasSubstr("pretrain_gpt.py \"${MEGATRON_ARGS[@]}\""));
  EXPECT_THAT(
      script_of("torchrun", {"cluster.gpus=4", "parallelism.pp=1", "parallelism.pipeline_layout=", "training.global_batch=4"}),
      HasSubstr("--nnodes 1 --nproc-per-node 4 "));
}

TEST(LaunchScript, AsksSlurmForThem) {
  const std::string script = script_of("slurm");
  EXPECT_THAT(script,
              testing::StartsWith("#!/bin/bash\n#SBATCH --job-name=a_run\n#SBATCH --nodes=8\n#SBATCH --ntasks-per-node=1\n"
                                  "#SBATCH --gpus-per-node=8\n"));
  EXPECT_THAT(script, HasSubstr("--node-rank \"$SLURM_NODEID\""));
  EXPECT_THAT(script, Not(HasSubstr("NODE_RANK:-0")));
}

}  // namespace
}  // namespace tandem::scenarios::launch_script_test
