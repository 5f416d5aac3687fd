// A step lowered into a file and executed from there, by a program that knows no scenario.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_command.h"
#include "tests/runtime/edges.h"
#include "tests/runtime/temporary_folder.h"
#include "traces/dag_file.h"
#include "traces/perfetto.pb.h"
#include "traces/timeline_file.h"

namespace tandem::cli::lower_test {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string tiny = scenario_file("tiny-host");

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string loss_line(const CommandResult& run) {
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::size_t begin = run.out.find("loss ");
  return begin == std::string::npos ? "no loss" : run.out.substr(begin, run.out.find('\n', begin) - begin);
}

class Lower : public testing::TestWithParam<Words> {};

TEST_P(Lower, LeavesTheLossAsItIs) {
  const TemporaryFolder folder;
  const CommandResult lowered = run_tandem(Words{"lower", tiny, "--out", folder / "step.dag"} + GetParam());
  ASSERT_EQ(lowered.exit_code, 0) << lowered.err;
  EXPECT_EQ(lowered.err, "");
  const std::string bytes = std::to_string(std::filesystem::file_size(folder / "step.dag"));
  EXPECT_THAT(lowered.out, testing::ContainsRegex("[0-9]+ tasks on 8 of 8 ranks, " + bytes + " bytes\n"));
  const CommandResult run = run_dag({folder / "step.dag", "--backend", "host"});
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr(" kinds of collectives exact on crafted data\n"));
  EXPECT_EQ(loss_line(run), loss_line(run_tandem(Words{"execute", tiny, "--backend", "host"} + GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Lower,
                         testing::Values(Words{},
                                         Words{"--set", "model.moe={experts: 8, top_k: 2, ffn: 64}", "--set",
                                               "parallelism={tp: 1, sp: false, pp: 2, dp: 4, ep: 4}"},
                                         Words{"--set", "parallelism.zero=0", "--set", "training.sync_every=2"}));

TEST(Lower, TheMeasuredTimesAreThoseOfTheDag) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tandem({"lower", tiny, "--out", folder / "step.dag"}).exit_code, 0);
  const CommandResult run =
      run_dag({folder / "step.dag", "--backend", "host", "--out", folder / "t", "--trace", folder / "t.pftrace"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Dag dag = read_dag(folder / "step.dag");
  const Timeline timeline = read_timeline(folder / "t", dag).timeline;
  for (const auto& [before, after] : edges_of(dag)) EXPECT_GE(timeline.start[after], timeline.end[before]);
  EXPECT_GT(timeline.makespan(), 0);
  perfetto::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(read_all(folder / "t.pftrace")));
  EXPECT_GE(trace.packet_size(), static_cast<int>(dag.tasks.size()));
}

TEST(Lower, FoldedIsOfAnySizeAndNotToExecute) {
  const TemporaryFolder folder;
  const std::string large = scenario_file("llama3-70b-512");
  expect_refusal(run_tandem({"lower", scenario_file("llama3-405b-16k"), "--out", folder / "step.dag"}), 2,
                 {"16384 ranks are too many", "at most 4096", "--folded"});
  EXPECT_TRUE(folder.empty());
  const CommandResult lowered = run_tandem({"lower", large, "--out", folder / "step.dag", "--folded"});
  ASSERT_EQ(lowered.exit_code, 0) << lowered.err;
  EXPECT_THAT(lowered.out, HasSubstr("on 4 of 512 ranks"));
  expect_refusal(run_dag({folder / "step.dag", "--backend", "host"}), 2, {"4 of 512 ranks", "without --folded"});
}

TEST(Lower, RefusesWhatItCannotWriteOrRead) {
  expect_refusal(run_tandem({"lower", tiny, "--out", "/no/such/folder/out"}), 1, {"cannot write '/no/such/folder/out'"});
  expect_refusal(run_tandem({"lower", tiny, "--out", "/dev/full"}), 1, {"cannot write '/dev/full'"});
  expect_refusal(run_tandem({"lower", tiny}), 2, {"--out is required"});
  expect_refusal(run_dag({tiny, "--backend", "host"}), 2, {"is no tandem-dag file", "tandem lower --out"});
  expect_refusal(run_dag({"/no/such/file", "--backend", "host"}), 2, {"cannot be read: No such file"});
  expect_refusal(run_dag({"/no/such/file"}), 2, {"--backend is required", "see tandem-run --help"});
  expect_refusal(run_dag({"/no/such/file", "--bakend", "host"}), 2, {"no option `--bakend`; did you mean `--backend`?"});
  expect_refusal(run_dag({"/no/such/file", "more", "--backend", "host"}), 2, {"one argument too many: `more`"});
}

TEST(Run, RefusesWhatItCannotDo) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tandem({"lower", tiny, "--out", folder / "step.dag"}).exit_code, 0);
  for (const char* option : {"--out", "--trace"})
    expect_refusal(run_dag({folder / "step.dag", "--backend", "host", option, "/no/such/folder/out"}), 1, {"cannot write"});
  expect_refusal(run_program(TANDEM_RUN_BINARY, {folder / "step.dag", "--backend", "host"},
                             {.standard_output = StandardOutput::full_device}),
                 1, {"standard output cannot be written"});
}

TEST(Run, NeedsNeitherSimGridNorScenarios) {
  const CommandResult libraries = run_program("/usr/bin/ldd", {TANDEM_RUN_BINARY});
  ASSERT_EQ(libraries.exit_code, 0) << libraries.err;
  EXPECT_THAT(libraries.out, HasSubstr("libprotobuf"));
  for (const char* name : {"libsimgrid", "libyaml", "libpugixml", "libsqlite"})
    EXPECT_THAT(libraries.out, testing::Not(HasSubstr(name)));
}

}  // namespace
}  // namespace tandem::cli::lower_test
