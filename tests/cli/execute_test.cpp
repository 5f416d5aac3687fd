// The tiny scenario, executed for real on this machine's CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/json_result.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"
#include "traces/dag_file.h"
#include "traces/perfetto.pb.h"
#include "traces/timeline_file.h"

namespace tandem::cli::execute_test {
namespace {

const std::string tiny = scenario_file("tiny-host");

TEST(Execute, EqualsTheUnshardedModel) {
  const TemporaryFolder folder;
  const CommandResult run = run_tandem({"execute", tiny, "--backend", "host", "--verify", "--json", folder / "r.json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, testing::ContainsRegex("\nthe same step: largest"));
  EXPECT_THAT(run.out, testing::HasSubstr("kinds of collectives exact on crafted data"));
  const nlohmann::json result = checked_result(read_all(folder / "r.json"));
  EXPECT_EQ(result["run"]["backend"], "host");
  EXPECT_EQ(result["run"]["folded"], false);
  EXPECT_EQ(result["run"]["rank_classes"], result["run"]["ranks"]);
}

const std::vector<std::string> local_steps{"--set", "parallelism.zero=0", "--set", "training.sync_every=2"};

std::vector<std::string> with_local_steps(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), local_steps.begin(), local_steps.end());
  return arguments;
}

TEST(Execute, RunsAWholePeriodOfLocalSteps) {
  const CommandResult run = run_tandem(with_local_steps({"execute", tiny, "--backend", "host", "--verify", "--json", "-"}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(checked_result(run.out)["sync_every"], 2);
  EXPECT_THAT(run.err, testing::HasSubstr("the same step"));
}

TEST(Execute, RefusesGraphsWithoutAGpu) {
  for (const char* command : {"execute", "crosscheck"}) {
    expect_refusal(run_tandem({command, tiny, "--backend", "host", "--graph"}), 1, {"--graph", "--backend cuda"});
    expect_refusal(run_tandem({command, tiny, "--backend", "host", "--graph=layer"}), 1, {"--graph", "--backend cuda"});
  }
  EXPECT_EQ(run_tandem({"execute", tiny, "--backend", "host", "--graph=some"}).exit_code, 2);
}

TEST(Crosscheck, FailsBeyondTheLargestError) {
  const CommandResult near = run_tandem({"crosscheck", tiny, "--backend", "host", "--max-error", "1e6"});
  EXPECT_EQ(near.exit_code, 0) << near.err;
  EXPECT_THAT(near.out, testing::ContainsRegex("\nloss [0-9.]+\n"));
  const CommandResult far = run_tandem({"crosscheck", tiny, "--backend", "host", "--max-error", "1e-9"});
  EXPECT_EQ(far.exit_code, 1);
  EXPECT_THAT(far.err, testing::StartsWith("tandem: the simulated step time is off by"));
}

TEST(Execute, RefusesAPeriodOfHundredsOfSteps) {
  expect_refusal(
      run_tandem({"execute", tiny, "--backend", "host", "--set", "parallelism.zero=0", "--set", "training.sync_every=500"}), 2,
      {"sync_every 500", "at most 64"});
}

TEST(Simulate, ReportsTheMeanOverAPeriodOfLocalSteps) {
  const CommandResult text = run_tandem(with_local_steps({"simulate", tiny}));
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, testing::ContainsRegex("local step .* 1 of 2; "));
  const nlohmann::json result = checked_result(run_tandem(with_local_steps({"simulate", tiny, "--json", "-"})).out);
  EXPECT_EQ(result["sync_every"], 2);
  const double local = result["step_time_local_s"], sync = result["step_time_sync_s"];
  EXPECT_LT(local, sync);
  EXPECT_NEAR(result["step_time_s"].get<double>(), (local + sync) / 2, 1e-12);
}

TEST(Execute, KeepsStandardOutputForTheJson) {
  const CommandResult run = run_tandem({"execute", tiny, "--backend", "host", "--verify", "--json", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  checked_result(run.out);
  EXPECT_THAT(run.err, testing::HasSubstr("the same step"));
}

TEST(Execute, VerifiesCompressedGradientsWithTheirResiduals) {
  for (const std::string method : {"top-k", "one-bit", "powersgd"}) {
    const CommandResult run =
        run_tandem({"execute", tiny, "--backend", "host", "--verify", "--set", "training.compressor.method=" + method});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, testing::HasSubstr("the same step"));
    EXPECT_THAT(run.out, testing::HasSubstr("what all ranks held back"));
  }
}

TEST(Crosscheck, KeepsEveryRanksOrder) {
  const TemporaryFolder folder;
  const CommandResult run =
      run_tandem({"crosscheck", tiny, "--backend", "host", "--json", folder / "r.json", "--trace", folder / "t.pftrace"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, testing::HasSubstr("the same order"));
  EXPECT_THAT(run.out, testing::Not(testing::HasSubstr("DIFFERENT")));
  const nlohmann::json result = checked_result(read_all(folder / "r.json"));

  perfetto::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(read_all(folder / "t.pftrace")));
  std::size_t slices = 0;
  for (const perfetto::TracePacket& packet : trace.packet())
    slices += packet.has_track_event() && packet.track_event().type() == perfetto::TrackEvent::TYPE_SLICE_BEGIN ? 1 : 0;
  EXPECT_GE(slices, 2 * result["run"]["tasks"].get<std::size_t>());  // simulated and measured
}

TEST(Crosscheck, TakesWhatWasMeasuredElsewhere) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tandem({"lower", tiny, "--out", folder / "step.dag"}).exit_code, 0);
  const CommandResult measured = run_dag({folder / "step.dag", "--backend", "host", "--out", folder / "t"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const CommandResult run = run_tandem({"crosscheck", tiny, "--measured", folder / "t", "--json", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json result = checked_result(run.out);
  EXPECT_EQ(result["run"]["backend"], "host");
  const Timeline timeline = read_timeline(folder / "t", read_dag(folder / "step.dag")).timeline;
  EXPECT_NEAR(result["crosscheck"]["step"]["measured_s"].get<double>(), timeline.makespan(), 1e-9);
  const CommandResult simulated = run_tandem({"simulate", tiny, "--no-fold", "--json", "-"});
  EXPECT_NEAR(result["crosscheck"]["step"]["simulated_s"].get<double>(),
              checked_result(simulated.out)["step_time_s"].get<double>(), 1e-9);
}

TEST(Crosscheck, TakesNoTimelineOfAnotherStep) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tandem({"lower", tiny, "--out", folder / "step.dag"}).exit_code, 0);
  ASSERT_EQ(run_dag({folder / "step.dag", "--backend", "host", "--out", folder / "t"}).exit_code, 0);
  expect_refusal(run_tandem({"crosscheck", tiny, "--measured", folder / "t", "--set", "training.recompute=full"}), 2,
                 {"is the timeline of 2792 tasks, expected that of 3752"});
  expect_refusal(run_tandem({"crosscheck", tiny, "--measured", folder / "t", "--set", "model.ffn=1024"}), 2,
                 {"is the timeline of another step with as many tasks"});
  expect_refusal(run_tandem({"crosscheck", tiny, "--measured", folder / "step.dag"}), 2, {"is no tandem-timeline file"});
  expect_refusal(run_tandem({"crosscheck", tiny}), 2, {"is held against nothing", "--backend", "--measured"});
}

}  // namespace
}  // namespace tandem::cli::execute_test
