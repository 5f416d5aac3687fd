// Many steps in processes of their own: what comes back, whatever becomes of the processes, and what a cache keeps.
#include "studies/runner/step_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "runtime/base/memory_limit.h"
#include "runtime/base/parallel.h"
#include "scenarios/reading/document.h"
#include "sim/child_process.h"
#include "studies/runner/process_share.h"
#include "studies/runner/scenario_hash.h"
#include "studies/runner/step_process.h"
#include "studies/runner/step_server.h"
#include "studies/step/simulated_step.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::studies::step_runner_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const std::string tiny =
    "model: tiny-llama\n"
    "cluster: {preset: dgx-h100}\n"
    "parallelism: {tp: 1, dp: 4}\n"
    "training: {sequence: 128, global_batch: 16, precision: bf16}\n";

StepJob tiny_job(const std::vector<std::string>& overrides = {}) {
  return job_of(parse_document(tiny, "tiny.yaml", overrides), "tiny");
}

/// Takes seconds, so that it can be caught.
StepJob slow_job() {
  const std::string file = TANDEM_SOURCE_DIR "/scenarios/llama3-405b-16k.yaml";
  return job_of(load_document(file, {"cluster.gpus=~", "parallelism.dp=8", "training.global_batch=256"}), "slow");
}

/// Steps of 1, 2, 4 and 8 replicas.
std::vector<StepJob> four_jobs() {
  std::vector<StepJob> jobs;
  for (const char* dp : {"1", "2", "4", "8"}) jobs.push_back(tiny_job({std::string("parallelism.dp=") + dp}));
  return jobs;
}

/// The result without what it cost to get.
std::string text_of(const StepResult& result) {
  nlohmann::ordered_json json = to_json_object(result);
  json.erase("run");
  return json.dump(1);
}

std::vector<std::string> texts_of(const std::vector<StepOutcome>& outcomes) {
  std::vector<std::string> texts;
  for (const StepOutcome& outcome : outcomes)
    texts.push_back(outcome.result() == nullptr ? outcome.failure()->text() : text_of(*outcome.result()));
  return texts;
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    if (!std::getline(file, stat) || stat.find(')') == std::string::npos) continue;
    std::istringstream fields(stat.substr(stat.rfind(')') + 1));
    std::string state;
    pid_t parent = 0;
    fields >> state >> parent;
    if (parent == ::getpid()) found.push_back(static_cast<pid_t>(std::stol(entry.path().filename())));
  }
  return found;
}

PointStatus status_of(const ResultsDatabase& database, const StepJob& job) {
  return database.statuses().at(hash_of_scenario(job.text));
}

TEST(StepRunner, ResultsAreThoseOfASimulationInThisProcess) {
  std::vector<std::string> expected;
  for (const StepJob& job : four_jobs())
    expected.push_back(text_of(simulate_in_full(std::get<Scenario>(job.scenario), true, {.fold_time = true}).result));
  const std::vector<StepOutcome> outcomes = StepRunner(2).run(four_jobs());
  EXPECT_EQ(texts_of(outcomes), expected);
  EXPECT_EQ(outcomes[3].result()->gpus, 8);
  EXPECT_GT(outcomes[3].result()->run.peak_rss, 0);
  EXPECT_GT(outcomes[3].seconds, 0);
  EXPECT_FALSE(outcomes[3].from_cache);
}

TEST(StepRunner, ProcessesShareMemoryAndProcessors) {
  const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
  for (const std::size_t processes : std::initializer_list<std::size_t>{1, 2, 3, 1000}) {
    const ProcessShare share = share_of(processes, 6'000'000'000);
    EXPECT_EQ(share.memory, 6'000'000'000 / static_cast<Bytes>(processes));
    EXPECT_GE(share.threads, 1U);
    EXPECT_LE(share.threads * processes, std::max(processors, processes));
    EXPECT_LE(share.threads, most_threads());
  }
  EXPECT_EQ(share_of(1, 1).threads, most_threads());
}

// As Slurm cancels a job: whoever started the steps ends them.
TEST(StepRunner, SignalsToItsProcessesAreNoFailure) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    bool sent = false;
    const auto send = [&](const RunProgress& progress) {
      if (!sent && progress.running > 0) sent = ::kill(-children().front(), signal) == 0;
    };
    const std::vector<StepOutcome> outcomes = StepRunner(1).run({slow_job()}, send);
    EXPECT_TRUE(sent);
    EXPECT_NE(outcomes[0].result(), nullptr) << outcomes[0].failure()->text();
  }
}

TEST(StepRunner, JitterIsDrawnAsTandemSimulateDoes) {
  const std::vector<std::string> noisy = {"faults.jitter.kernel=0.1", "faults.jitter.draws=20"};
  const std::vector<StepOutcome> outcomes = StepRunner(1).run({tiny_job(noisy)});
  ASSERT_NE(outcomes[0].result(), nullptr) << outcomes[0].failure()->text();
  const StepResult expected = simulate_in_full(std::get<Scenario>(tiny_job(noisy).scenario), true, {.fold_time = true}).result;
  EXPECT_EQ(text_of(*outcomes[0].result()), text_of(expected));
  EXPECT_EQ(outcomes[0].result()->jitter->draws, 20U);
}

// A process simulates its last step itself, and what comes before in children.
TEST(StepRunner, StepsThatAreSimulatedSeveralTimesAreAsInThisProcess) {
  const std::vector<std::vector<std::string>> several = {
      {"model.moe={experts: 4, top_k: 2, ffn: 64, capacity_factor: 1, load: [4, 2, 1, 1]}"},
      {"training.sync=[{kind: backup, backups: 1}]", "parallelism.zero=0"},
      {"training.sync=[{kind: backup, backups: 1}, {kind: local, every: 8}]", "parallelism.zero=0"},
      {"training.sync_every=4", "parallelism.zero=0"}};
  for (const std::vector<std::string>& overrides : several) {
    const std::vector<StepOutcome> outcomes = StepRunner(1).run({tiny_job(overrides)});
    ASSERT_NE(outcomes[0].result(), nullptr) << outcomes[0].failure()->text();
    const StepResult expected =
        simulate_in_full(std::get<Scenario>(tiny_job(overrides).scenario), true, {.fold_time = true}).result;
    EXPECT_EQ(text_of(*outcomes[0].result()), text_of(expected)) << overrides.front();
  }
}

TEST(ResultFromChild, IsThatOfThisProcessWhichMaySimulateAfterwards) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{}, {"training.sync_every=4", "parallelism.zero=0"}, {"faults.jitter.kernel=0.1"}}) {
    const Scenario scenario = std::get<Scenario>(tiny_job(overrides).scenario);
    const StepResult from_child = result_from_child(scenario, true, {.fold_time = true}, {});
    EXPECT_EQ(text_of(from_child), text_of(simulate_in_full(scenario, true, {.fold_time = true}).result));
    EXPECT_GT(from_child.run.wall, 0);
    EXPECT_GT(from_child.run.peak_rss, 0);
  }
}

/// Counts in memory that is shared with children.
class CountedProgress final : public Progress {
 public:
  bool is_shown() const override { return true; }
  void begin(std::string /*part*/) override {}
  void show(std::optional<double> /*share*/) override {}
  std::unique_ptr<Watch> watch(std::string part, Share share) override {
    if (part == "simulating" && share() == 0) ++watched_.value();
    return std::make_unique<Watch>();
  }
  void take_away() override { ++taken_away_.value(); }

  std::size_t watched() { return watched_.value(); }
  std::size_t taken_away() { return taken_away_.value(); }

 private:
  sim::SharedCounter watched_, taken_away_;
};

TEST(ResultFromChild, ShowsHowFarItIsAndLeavesNothingOfThat) {
  CountedProgress progress;
  result_from_child(std::get<Scenario>(tiny_job().scenario), true, {.progress = &progress}, {});
  EXPECT_EQ(progress.watched(), 1U);
  EXPECT_EQ(progress.taken_away(), 1U);
  const SimulationOptions fails{.progress = &progress, .simulated = [](const FreshStep&) { throw std::runtime_error("fails"); }};
  EXPECT_THROW(result_from_child(std::get<Scenario>(tiny_job().scenario), true, fails, {}), std::runtime_error);
  EXPECT_EQ(progress.taken_away(), 2U);
}

TEST(ResultFromChild, ThrowsWhatTheChildDid) {
  const Scenario scenario = std::get<Scenario>(slow_job().scenario);
  run_in_child([&] {  // whose limit its own child inherits
    limit_memory(40'000'000);
    try {
      result_from_child(scenario, true, {}, {});
    } catch (const InputError& error) {
      if (error.place().file == scenario.name && error.sentence().starts_with("would be a graph of ")) return;
      throw;
    }
    throw std::logic_error("took no memory");
  });
  const SimulationOptions dies{.simulated = [](const FreshStep&) { ::raise(SIGKILL); }};
  EXPECT_THROW(result_from_child(scenario, true, dies, {}), std::runtime_error);
}

// The slow one is the first to start and the last to end.
TEST(StepRunner, OutcomesComeAsTheyEndAndAreReturnedInTheJobsOrder) {
  std::vector<StepJob> all = four_jobs();
  all.insert(all.begin(), slow_job());
  std::vector<std::size_t> order;
  std::vector<StepOutcome> ended(all.size());
  StepRunner(2).run(
      all.size(), [&](std::size_t i) { return all[i]; },
      [&](std::size_t i, StepOutcome outcome) {
        order.push_back(i);
        ended[i] = std::move(outcome);
      });
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4, 0));
  EXPECT_EQ(texts_of(StepRunner(5).run(all)), texts_of(ended));
}

TEST(StepRunner, ARefusedScenarioIsAFailureWithItsPlace) {
  const TemporaryFolder folder;
  ResultsDatabase cache(folder / "cache.sqlite");
  const std::vector<StepJob> jobs = {tiny_job(),
                                     job_of(parse_document(tiny + "faults: {jitter: {kernel: -1}}\n", "bad.yaml", {}), "bad")};
  const std::vector<StepOutcome> outcomes = StepRunner(2, &cache).run(jobs);
  EXPECT_NE(outcomes[0].result(), nullptr);
  const StepFailure* failure = outcomes[1].failure();
  ASSERT_NE(failure, nullptr);
  EXPECT_TRUE(failure->refused);
  EXPECT_EQ(failure->code, ExitCode::wrong_input);
  EXPECT_EQ(failure->place.file, "bad.yaml");
  EXPECT_EQ(failure->place.line, 5);
  EXPECT_THAT(failure->text(), StartsWith("bad.yaml:5:" + std::to_string(failure->place.column) + ": " + failure->sentence));
  EXPECT_EQ(status_of(cache, jobs[1]), PointStatus::refused);

  const std::vector<StepOutcome> again = StepRunner(2, &cache).run(jobs);
  EXPECT_TRUE(again[1].from_cache);
  EXPECT_TRUE(again[1].failure()->refused);
  EXPECT_EQ(again[1].failure()->text(), failure->text());
}

TEST(StepRunner, AKilledChildIsAFailureThatIsTriedAgain) {
  const TemporaryFolder folder;
  ResultsDatabase cache(folder / "cache.sqlite");
  const std::vector<StepJob> jobs = {slow_job(), tiny_job()};
  bool killed = false;
  const auto kill_first = [&](const RunProgress& progress) {
    if (killed || progress.running == 0) return;
    ::kill(children().front(), SIGKILL);
    killed = true;
  };
  const std::vector<StepOutcome> outcomes = StepRunner(1, &cache).run(jobs, kill_first);
  ASSERT_NE(outcomes[0].failure(), nullptr);
  EXPECT_EQ(outcomes[0].failure()->text(),
            "its process was killed by signal 9 (Killed), most likely because the machine ran out of memory");
  EXPECT_EQ(outcomes[0].failure()->code, ExitCode::failed);
  EXPECT_FALSE(outcomes[0].failure()->refused);
  EXPECT_NE(outcomes[1].result(), nullptr);
  EXPECT_EQ(status_of(cache, jobs[0]), PointStatus::failed);

  const std::vector<StepOutcome> again = StepRunner(1, &cache).run(jobs);
  EXPECT_NE(again[0].result(), nullptr);
  EXPECT_FALSE(again[0].from_cache);
  EXPECT_TRUE(again[1].from_cache);
}

// SIGTERM arrives once two have ended.
TEST(StepRunner, ASignalInterruptsItAndTheNextCallDoesTheRest) {
  const TemporaryFolder folder;
  ResultsDatabase cache(folder / "cache.sqlite");
  const std::vector<StepJob> jobs = four_jobs();
  std::size_t ended = 0;
  const auto make = [&](std::size_t i) { return jobs[i]; };
  const auto interrupt = [&](std::size_t, const StepOutcome&) {
    if (++ended == 2) ::raise(SIGTERM);
  };
  sigset_t before{}, after{};
  ::sigprocmask(SIG_BLOCK, nullptr, &before);
  try {
    StepRunner(1, &cache).run(jobs.size(), make, interrupt);
    ADD_FAILURE() << "not interrupted";
  } catch (const Interrupted& interrupted) {
    EXPECT_STREQ(interrupted.what(), "interrupted (Terminated)");
  }
  ::sigprocmask(SIG_BLOCK, nullptr, &after);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD})
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal));
  EXPECT_TRUE(children().empty());
  EXPECT_EQ(cache.statuses().size(), 2U);

  const std::vector<StepOutcome> rest = StepRunner(2, &cache).run(jobs);
  std::vector<bool> from_cache;
  for (const StepOutcome& outcome : rest) from_cache.push_back(outcome.from_cache);
  EXPECT_THAT(from_cache, ElementsAre(true, true, false, false));
  EXPECT_EQ(texts_of(rest), texts_of(StepRunner(2).run(four_jobs())));
}

TEST(StepRunner, ChildrenEndWithARunThatIsGivenUp) {
  const auto give_up = [](const RunProgress&) { throw std::runtime_error("enough"); };
  EXPECT_THROW(StepRunner(1).run({slow_job()}, give_up), std::runtime_error);
  EXPECT_TRUE(children().empty());
}

TEST(StepRunner, TheCacheHasEachOutcomeBeforeItIsTold) {
  const TemporaryFolder folder;
  ResultsDatabase cache(folder / "cache.sqlite");
  const ResultsDatabase other(folder / "cache.sqlite");
  const std::vector<StepJob> jobs = four_jobs();
  const auto stored = [&](std::size_t i, const StepOutcome&) { EXPECT_EQ(status_of(other, jobs[i]), PointStatus::done); };
  StepRunner(2, &cache).run(
      jobs.size(), [&](std::size_t i) { return jobs[i]; }, stored);

  const auto row = cache.row(hash_of_scenario(jobs[2].text));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->scenario, jobs[2].text);
  const std::vector<StepOutcome> again = StepRunner(2, &cache).run(jobs);
  EXPECT_TRUE(std::ranges::all_of(again, &StepOutcome::from_cache));
  EXPECT_EQ(again[2].started, row->started);
  EXPECT_EQ(again[2].seconds, row->seconds);
  EXPECT_EQ(again[2].result()->step_time, nlohmann::json::parse(row->json).at("step_time_s").get<double>());
}

// What versions before this one stored had no stages_s, kinds and interval_s.
// The second begins before the first is stored.
TEST(StepRunner, OneAfterTheOtherEqualJobsAreSimulatedOnce) {
  const TemporaryFolder folder;
  ResultsDatabase database(folder / "results.sqlite");
  const std::vector<StepOutcome> outcomes = StepRunner(1, &database).run({tiny_job(), tiny_job(), tiny_job()});
  EXPECT_FALSE(outcomes[0].from_cache);
  EXPECT_TRUE(outcomes[1].from_cache && outcomes[2].from_cache);
  EXPECT_EQ(text_of(*outcomes[1].result()), text_of(*outcomes[0].result()));
}

TEST(StepRunner, TakesUpWhatAnOlderVersionStored) {
  const TemporaryFolder folder;
  ResultsDatabase cache(folder / "cache.sqlite");
  const StepJob job = tiny_job();
  nlohmann::ordered_json json =
      to_json_object(simulate_in_full(std::get<Scenario>(job.scenario), true, {.fold_time = true}).result);
  for (const char* key : {"stages_s", "kinds", "interval_s"}) json.erase(key);
  json["tokens"] = 4242;
  PointRow row;
  row.hash = hash_of_scenario(job.text);
  row.status = PointStatus::done;
  row.scenario = job.text;
  row.json = json.dump(1);
  cache.store(row);
  const std::vector<StepOutcome> outcomes = StepRunner(1, &cache).run({job});
  EXPECT_TRUE(outcomes[0].from_cache);
  EXPECT_EQ(outcomes[0].result()->tokens, 4242);
  EXPECT_TRUE(outcomes[0].result()->kinds.empty());
}

TEST(StepRunner, AResultLargerThanAPipeComesBack) {
  constexpr std::size_t pipe = 65'536;
  const StepJob job = tiny_job({"model.layers=1000"});
  const std::string expected = text_of(simulate_in_full(std::get<Scenario>(job.scenario), true, {.fold_time = true}).result);
  EXPECT_GT(expected.size(), pipe);
  EXPECT_EQ(texts_of(StepRunner(1).run({job})), std::vector{expected});
}

TEST(StepRunner, AStepIsCalledWhatItsDocumentWouldBe) {
  const StepJob job = job_of(parse_document(tiny, "tiny.yaml", {}), "by default");
  EXPECT_EQ(StepRunner(1).run({job})[0].result()->scenario, "by default");
  EXPECT_EQ(job.text, job_of(parse_document(tiny, "tiny.yaml", {"name=by default"}), "else").text);
}

TEST(StepRunner, AStepIsSimulatedAtItsSite) {
  StepJob job = tiny_job();
  Scenario there = std::get<Scenario>(job.scenario);
  there.cluster.gpu.site =
      job.site = {.runs = 3, .gpu = "h100-sxm-80gb", .framework = "generic", .kernels = 1.25, .overhead = 0.5};
  const StepResult expected = simulate_in_full(there, true, {.fold_time = true}).result;
  EXPECT_GT(expected.step_time, 0.5);
  EXPECT_EQ(texts_of(StepRunner(1).run({job})), std::vector{text_of(expected)});
}

// One process after the other simulates what a server is given, whatever became of the one before.
TEST(StepServer, TakesAStepAfterOneThatFailed) {
  const ChildSignals signals;
  StepServer server(share_of(1, memory_limit()), signals);
  const StepJob fine = tiny_job();
  for (const bool fails : {false, true, false}) {
    server.start(fails ? StepJob{.scenario = {}, .text = "model: {"} : fine);
    while (!server.has_ended()) signals.wait_for_child(1);
    const StepServer::End end = server.end();
    EXPECT_EQ(end.outcome.failure() != nullptr, fails);
    EXPECT_EQ(end.json.empty(), fails);
    EXPECT_TRUE(server.goes_on());
  }
  for (const pid_t process : children()) ::kill(process, SIGKILL);
  server.start(fine);
  while (!server.has_ended()) signals.wait_for_child(1);
  EXPECT_THAT(server.end().outcome.failure()->text(), StartsWith("its process was killed by signal 9"));
  EXPECT_FALSE(server.goes_on());
}

TEST(StepRunner, WarningsNameThePlaceInTheStoredText) {
  const StepJob job = tiny_job({"parallelism.tp=16", "parallelism.dp=1", "model.heads=16", "model.kv_heads=16"});
  ASSERT_TRUE(std::holds_alternative<Scenario>(job.scenario)) << std::get<StepFailure>(job.scenario).text();
  const std::vector<StepOutcome> outcomes = StepRunner(1).run({job});
  const std::string place = "/proc/self/fd/0:1:" + std::to_string(job.text.find("16", job.text.find("tp: 16")) + 1);
  EXPECT_THAT(outcomes[0].result()->warnings, testing::Contains(StartsWith(place)));
}

TEST(StepRunner, TellsHowFarItIs) {
  const TemporaryFolder folder;
  ResultsDatabase cache(folder / "cache.sqlite");
  StepRunner(1, &cache).run({tiny_job({"parallelism.dp=1"})});
  std::vector<RunProgress> told;
  StepRunner(2, &cache).run(four_jobs(), [&](const RunProgress& progress) { told.push_back(progress); });
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front().running, 2U);
  EXPECT_EQ(told.front().done, 1U);
  for (const RunProgress& progress : told) {
    EXPECT_EQ(progress.total, 4U);
    EXPECT_EQ(progress.done_before, 1U);
    EXPECT_LE(progress.done + progress.running, 4U);
  }
}

TEST(StepFailure, OfARefusalSaysWhatTheErrorSays) {
  const auto text = [](const Place& place) {
    const InputError error(place, "is 3: expected 4");
    const StepFailure failure = refusal(error);
    EXPECT_TRUE(failure.refused);
    EXPECT_EQ(failure.code, ExitCode::wrong_input);
    EXPECT_EQ(failure.text(), error.what());
    return failure.text();
  };
  EXPECT_EQ(text({}), "is 3: expected 4");
  EXPECT_EQ(text({"--set a.b=1: 2", 0, 0}), "--set a.b=1: 2: is 3: expected 4");
  EXPECT_EQ(text({"runs.csv", 7, 0}), "runs.csv:7: is 3: expected 4");
  EXPECT_EQ(text({"s.yaml", 2, 3}), "s.yaml:2:3: is 3: expected 4");
}

}  // namespace
}  // namespace tandem::studies::step_runner_test
