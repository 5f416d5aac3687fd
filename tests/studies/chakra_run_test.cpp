// A simulated step, written as Chakra's traces and read again: nothing is lost on the way, and it takes as long.
#include "studies/chakra/chakra_run.h"

#include <gtest/gtest.h>

#include <map>

#include "scenarios/reading/load.h"
#include "studies/chakra/write_chakra.h"
#include "studies/recorded/recorded_dag.h"
#include "studies/step/simulated_step.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::studies::chakra_run_test {
namespace {

Scenario small_step(const std::string& more) {
  return parse_scenario(
      "name: small\n"
      "model: {layers: 4, hidden: 1024, heads: 8, kv_heads: 4, ffn: 2048, gated: true, vocab: 8192, norm: rms" +
          more,
      "small.yaml", {});
}

const std::string dense =
    "}\n"
    "cluster: {preset: dgx-h100, gpus: 16}\n"
    "parallelism: {tp: 2, sp: true, pp: 2, dp: 4, zero: 1}\n"
    "training: {sequence: 512, micro_batch: 1, global_batch: 8, precision: bf16, schedule: 1f1b}\n";
const std::string mixture =
    ", moe: {experts: 8, top_k: 2, ffn: 1024}}\n"
    "cluster: {preset: dgx-h100, gpus: 16}\n"
    "parallelism: {tp: 1, pp: 2, dp: 8, ep: 8, zero: 1}\n"
    "training: {sequence: 512, micro_batch: 1, global_batch: 16, precision: bf16, schedule: 1f1b}\n";
const std::string whole_gradients =
    "}\n"
    "cluster: {preset: dgx-h100, gpus: 32}\n"
    "parallelism: {tp: 2, sp: true, pp: 1, dp: 16, zero: 0}\n"
    "training: {sequence: 512, micro_batch: 1, global_batch: 16, precision: bf16, schedule: 1f1b}\n";

/// By operation: how many, and their bytes.
std::map<OpKind, std::pair<std::size_t, Bytes>> exchanged(const Dag& dag) {
  std::map<OpKind, std::pair<std::size_t, Bytes>> sums;
  for (const Task& task : dag.tasks) {
    if (task.group == no_id || dag.groups[task.group].bytes == 0) continue;
    auto& [count, bytes] = sums[task.op];
    ++count;
    bytes += dag.groups[task.group].bytes;
  }
  return sums;
}

ChakraRun written_and_read(const Scenario& scenario, const std::string& folder) {
  const ChakraWritten written = write_chakra(scenario, {}, folder);
  ChakraRun read = recorded_run_of(read_chakra_files({folder}), 0, scenario.cluster);
  EXPECT_EQ(read.nodes, written.nodes);
  EXPECT_EQ(read.run.tasks(), written.nodes);
  EXPECT_TRUE(read.assumed.empty() && read.warnings.empty());
  return read;
}

TEST(ChakraRun, NothingIsLost) {
  for (const std::string& rest : {dense, mixture, whole_gradients}) {
    const TemporaryFolder folder;
    const Scenario scenario = small_step(rest);
    const ChakraRun read = written_and_read(scenario, folder / "et");
    const Dag all = lay_recorded(read.run, scenario.cluster, false).dag, lowered = lower(scenario, make_world(scenario, false));
    EXPECT_EQ(all.tasks.size(), lowered.tasks.size());
    EXPECT_EQ(exchanged(all), exchanged(lowered));
  }
}

// On Chakra's groups these steps have the ways over links that they have on their own.
TEST(ChakraRun, AStepTakesAsLongFoldedAndUnfolded) {
  for (const std::string& rest : {dense, mixture, whole_gradients}) {
    const TemporaryFolder folder;
    const Scenario scenario = small_step(rest);
    const RecordedRun run = written_and_read(scenario, folder / "et").run;
    const Seconds expected = simulate_step(scenario, true).result.step_time;
    const RecordedDag folded = lay_recorded(run, scenario.cluster, true);
    EXPECT_LT(folded.dag.ranks.size(), run.ranks.size());
    EXPECT_NEAR(sim::simulate(folded.dag).timeline.makespan(), expected, 1e-9 * expected);
    EXPECT_NEAR(sim::simulate(lay_recorded(run, scenario.cluster, false).dag).timeline.makespan(), expected, 1e-9 * expected);
  }
}

// A file does not depend on which others are written with it.
TEST(ChakraRun, FilesOfSomeRanksAreThoseOfAll) {
  const TemporaryFolder folder;
  const Scenario scenario = small_step(dense);
  const std::vector<std::uint32_t> some{3, 14};
  write_chakra(scenario, {}, folder / "all");
  write_chakra(scenario, some, folder / "some");
  for (const std::uint32_t rank : some) {
    const std::string name = "/step." + std::to_string(rank) + ".et";
    EXPECT_EQ(read_all(folder / ("some" + name)), read_all(folder / ("all" + name)));
  }
}

}  // namespace
}  // namespace tandem::studies::chakra_run_test
