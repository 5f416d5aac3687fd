// What `tandem serve` answers, whom it answers, and what becomes of it when something fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/cli/json_result.h"
#include "tests/cli/run_command.h"
#include "tests/cli/served.h"
#include "tests/cli/study.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::serve_test {
namespace {

using nlohmann::json;
using std::chrono_literals::operator""ms;

const std::string scenarios = TANDEM_SOURCE_DIR "/scenarios";
constexpr int unauthorized = 401, forbidden = 403, not_found = 404, conflict = 409, too_large = 413, unprocessable = 422;

const std::string small = R"(
model: {layers: 8, hidden: 1024, heads: 16, kv_heads: 8, ffn: 4096, vocab: 32000}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 2, sp: true, pp: 2}
training: {sequence: 2048, micro_batch: 1, global_batch: 64}
)";
/// More than a million tasks, drawn one by one: some seconds of work.
const std::string large = R"(
model: gpt3-175b
cluster: {preset: dgx-a100, gpus: 1024}
parallelism: {tp: 8, pp: 8}
training: {sequence: 2048, micro_batch: 1, global_batch: 6144}
)";

const Served::Headers in_turn = {{"X-Tandem-Turn", "test"}};

/// Waits for what another process does, at most a minute.
template <typename Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

std::string without_costs_of_run(json result) {
  for (const char* cost : {"wall_s", "peak_rss_bytes"}) result["run"].erase(cost);
  return result.dump();
}

/// The sentence of an answer in lines, or of one that is none.
std::string failure_of(const Answer& answer) {
  constexpr std::size_t shown = 200;
  return answer.last_line().value("failure",
                                  "none, status " + std::to_string(answer.status) + ": " + answer.body.substr(0, shown));
}

// ---- what is answered
// ------------------------------------------------------------------------------------------------------------

TEST(Serve, GivesTheStepThatSimulateGives) {
  const TemporaryFolder folder;
  std::ofstream(folder / "asked.yaml") << small;
  const CommandResult simulated =
      run_tandem({"simulate", folder / "asked.yaml", "--set", "training.recompute=full", "--json", "-"});
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  const Served served({"--folder", folder.path()});
  const Answer answer = served.job("step", small, {"training.recompute=full"}, in_turn);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(without_costs_of_run(answer.json()), without_costs_of_run(json::parse(simulated.out)));
  // Without a turn it comes in lines.
  EXPECT_EQ(without_costs_of_run(served.job("step", small, {"training.recompute=full"}).last_line()["answer"]),
            without_costs_of_run(answer.json()));
}

TEST(Serve, SaysWhatAFieldMayBeAsSimulateTakesIt) {
  const TemporaryFolder folder;
  std::ofstream(folder / "asked.yaml") << small;
  const Served served({"--folder", folder.path()});
  const json form = served.job("form", small, {}, in_turn).json();
  ASSERT_TRUE(form.contains("fields")) << form;
  EXPECT_EQ(form["dp"], 4);  // 16 GPUs / (tp 2 * pp 2)
  int allowed = 0, refused = 0;
  for (const json& field : form["fields"]) {
    if (field["path"] != "parallelism.pp" && field["path"] != "parallelism.tp") continue;
    for (const json& choice : field["choices"]) {
      std::vector<std::string> command = {"simulate", folder / "asked.yaml", "--allow-oom", "--json", "-"};
      std::vector<std::string> changes = choice.value("also", std::vector<std::string>());
      changes.push_back(field["path"].get<std::string>() + "=" + choice["value"].get<std::string>());
      for (const std::string& change : changes) command.insert(command.end(), {"--set", change});
      const CommandResult run = run_tandem(command);
      EXPECT_EQ(run.exit_code, choice["allowed"] ? 0 : 2) << choice << run.err;
      EXPECT_THAT(run.err, testing::HasSubstr(choice.value("why_not", std::string())));
      ++(choice["allowed"] ? allowed : refused);
    }
  }
  EXPECT_GE(allowed, 6);
  EXPECT_GE(refused, 2);
}

TEST(Serve, TellsWhyAScenarioIsRefusedAndStillShowsItsFields) {
  const Served served({"--folder", scenarios});
  const Answer answer = served.job("step", small, {"parallelism.tp=3"}, in_turn);
  EXPECT_EQ(answer.status, unprocessable);
  EXPECT_THAT(answer.json()["failure"].get<std::string>(), testing::HasSubstr("tp 3"));
  const json form = served.job("form", small, {"parallelism.tp=3"}, in_turn).json();
  EXPECT_FALSE(form["refusals"].empty());
  EXPECT_FALSE(form["fields"].empty());
}

TEST(Serve, SearchesWithProgressAndTheBestSoFar) {
  const Served served({"--folder", scenarios});
  const std::string scenario = small + "search: {axes: {tp: [1, 2], pp: [1, 2], recompute: [none]}}\n";
  const Answer answer = served.job("search", scenario);
  const json found = answer.last_line()["answer"];
  ASSERT_TRUE(found.contains("best")) << answer.body;
  EXPECT_TRUE(found["best_is_proven"]);
  EXPECT_THAT(answer.body, testing::HasSubstr("\"progress\""));
  EXPECT_THAT(answer.body, testing::HasSubstr("\"best\":{\"plan\""));
}

TEST(Serve, PinnedPointsAreAStudyThatSweepTakes) {
  const TemporaryFolder folder;
  const Served served({"--folder", folder.path()});
  const json points = {{{"name", "a.yaml"}, {"text", small}, {"changes", json::array()}},
                       {{"name", "a.yaml"}, {"text", small}, {"changes", {"parallelism.pp=", "training.recompute=full"}}}};
  const json made = served.post("/api/job/study", json{{"points", points}}.dump()).last_line()["answer"];
  ASSERT_TRUE(made.contains("text")) << made;
  std::ofstream(folder / "study.yaml") << made["text"].get<std::string>();
  const CommandResult swept =
      run_tandem({"sweep", folder / "study.yaml", "--out", folder / "s.sqlite", "--csv", folder / "s.csv"});
  EXPECT_EQ(swept.exit_code, 0) << swept.err;
  for (const auto& [changes, row] : {std::pair{json::array(), 1}, {json{"parallelism.pp=", "training.recompute=full"}, 2}}) {
    const json step = served.job("step", small, changes, in_turn).json();
    std::ifstream csv(folder / "s.csv");
    std::string line;
    for (int i = 0; i <= row; ++i) std::getline(csv, line);
    EXPECT_THAT(line, testing::HasSubstr(step["step_time_s"].dump())) << line;
  }
}

// Links that faster NICs would make bind tell ranks apart in what the page says of NICs (Report.BlamesAFoldLikeAllRanks), and
// nowhere else.
TEST(Serve, GivesThePageOfAStepWhoseLinksMayBecomeFaster) {
  const std::string leaves =
      "model: {layers: 4, hidden: 1024, heads: 8, kv_heads: 8, ffn: 4096, vocab: 64}\n"
      "cluster: {preset: dgx-h100, gpus: 64, fabric: {leaf_ports: 4}}\nparallelism: {tp: 4, pp: 2, dp: 8}\n"
      "training: {sequence: 512, micro_batch: 1, global_batch: 16}\nfaults: {slow_gpu: {rank: 13, factor: 0.5}}\n";
  const Served served({"--folder", scenarios});
  EXPECT_EQ(served.job("step", leaves, {}, in_turn).json()["run"]["rank_classes"], 8);
  const std::string page = served.job("report", leaves).last_line()["answer"]["page"];
  EXPECT_THAT(page, testing::HasSubstr("\"rank_classes\":8"));
  EXPECT_THAT(page, testing::HasSubstr("{\"group\":\"tier\",\"name\":\"nic\""));
}

TEST(Serve, SavesAScenarioThatReadsAsTheSame) {
  const Served served({"--folder", scenarios});
  const std::vector<std::string> changes = {"parallelism.pp=4", "training.overlap.tp=true"};
  const std::string text = served.job("scenario", small, changes).last_line()["answer"]["text"];
  EXPECT_EQ(without_costs_of_run(served.job("step", text, {}, in_turn).json()),
            without_costs_of_run(served.job("step", small, changes, in_turn).json()));
}

TEST(Serve, ComparesTwoResults) {
  const Served served({"--folder", scenarios});
  const json a = served.job("step", small, {}, in_turn).json();
  const json b = served.job("step", small, {"training.recompute=full"}, in_turn).json();
  const json difference = served.post("/api/job/diff", json{{"a", a}, {"b", b}}.dump()).last_line()["answer"];
  double sum = 0;
  for (const json& part : difference["parts"])
    sum += (part["b_s"].is_null() ? 0.0 : part["b_s"].get<double>()) - (part["a_s"].is_null() ? 0.0 : part["a_s"].get<double>());
  EXPECT_NEAR(sum, b["step_time_s"].get<double>() - a["step_time_s"].get<double>(), 1e-9);
}

// ---- whom it answers
// -------------------------------------------------------------------------------------------------------------

TEST(ServeGuard, AsksForTheToken) {
  const Served served({"--folder", scenarios});
  EXPECT_EQ(served.token().size(), 32U);
  EXPECT_EQ(served.get("/api/start").status, 200);
  for (const std::string& wrong : {std::string(), std::string("x"), std::string(32, '0'), served.token() + "0"})
    for (const char* path : {"/api/start", "/api/file?name=tiny-host.yaml", "/nothing"})
      EXPECT_EQ(served.get(path, {{"X-Tandem-Token", wrong}}).status, unauthorized) << path;
  EXPECT_EQ(served.job("step", small, {}, {{"X-Tandem-Token", "x"}}).status, unauthorized);
  EXPECT_TRUE(served.workers().empty());
  // The page holds nothing that is secret.
  const Answer page = served.get("/", {{"X-Tandem-Token", ""}});
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, testing::Not(testing::HasSubstr(served.token())));
}

TEST(ServeGuard, TurnsOtherSitesAway) {
  for (const bool with_token : {true, false}) {
    const Served served(with_token ? std::vector<std::string>{"--folder", scenarios}
                                   : std::vector<std::string>{"--folder", scenarios, "--no-token"});
    const std::string own = "127.0.0.1:" + std::to_string(served.port());
    for (const std::string host : {"evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil", "10.0.0.1"}) {
      EXPECT_EQ(served.get("/", {{"Host", host}}).status, forbidden) << host;
      EXPECT_EQ(served.get("/api/start", {{"Host", host}}).status, forbidden) << host;
    }
    for (const std::string& origin :
         std::vector<std::string>{"http://evil.example", "https://" + own, "null", "http://127.0.0.1:1", "http://localhost"})
      EXPECT_EQ(served.job("form", small, {}, {{"Origin", origin}}).status, forbidden) << origin;
    for (const char* site : {"cross-site", "same-site"})
      EXPECT_EQ(served.get("/api/start", {{"Sec-Fetch-Site", site}}).status, forbidden) << site;
    EXPECT_EQ(served.get("/api/start", {{"Host", own}, {"Origin", "http://" + own}, {"Sec-Fetch-Site", "same-origin"}}).status,
              200);
    EXPECT_EQ(served.get("/api/start", {{"Host", "localhost:9"}, {"Origin", "http://localhost:9"}}).status, 200);  // ssh -L
  }
}

TEST(ServeGuard, NothingOfARefusedRequestIsTakenForAnother) {
  const Served served({"--folder", scenarios, "--no-token"});
  const std::string inner = "GET /api/start HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  const std::string outer =
      "POST /api/job/step HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\nContent-Type: text/plain\r\n"
      "Content-Length: " +
      std::to_string(inner.size()) + "\r\n\r\n" + inner;
  const std::string answer = served.raw(outer);
  EXPECT_THAT(answer, testing::Not(testing::HasSubstr("200 OK"))) << answer;
}

TEST(ServeGuard, ThePageRunsItsOwnScriptAndAsksThisServerAlone) {
  const Served served({"--folder", scenarios});
  const Answer page = served.get("/");
  EXPECT_THAT(page.body,
              testing::HasSubstr("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; connect-src 'self'"));
  EXPECT_THAT(page.body, testing::HasSubstr("script-src 'sha256-"));
  EXPECT_THAT(page.headers,
              testing::Contains(testing::Pair("Content-Security-Policy", testing::HasSubstr("frame-ancestors 'none'"))));
  EXPECT_THAT(page.headers, testing::Contains(testing::Pair("X-Content-Type-Options", "nosniff")));
}

TEST(ServeGuard, ListensOnLoopbackAlone) {
  const Served served({"--folder", scenarios});
  // /proc/net/tcp names addresses in hexadecimal, the bytes of 127.0.0.1 from the last.
  std::ifstream table("/proc/net/tcp");
  std::ostringstream port;
  port << std::uppercase << std::hex << served.port();
  std::vector<std::string> listening;
  for (std::string line; std::getline(table, line);)
    if (line.find(":" + port.str() + " 00000000:0000 0A") != std::string::npos) listening.push_back(line);
  ASSERT_EQ(listening.size(), 1U);
  EXPECT_THAT(listening.front(), testing::HasSubstr(" 0100007F:"));
}

TEST(ServeGuard, APortThatIsTakenIsRefused) {
  const Served served({"--folder", scenarios});
  expect_refusal(run_tandem({"serve", "--folder", scenarios, "--port", std::to_string(served.port())}), 2, {"--port", "taken"});
  expect_refusal(run_tandem({"serve", "--folder", "/nowhere"}), 2, {"--folder", "/nowhere"});
}

// ---- files
// -----------------------------------------------------------------------------------------------------------------------

class ServedFolder : public testing::Test {
 protected:
  ServedFolder() {
    std::filesystem::create_directory(outer_ / "served");
    std::ofstream(outer_ / "secret.yaml") << "layers: 2\nhidden: 64\nheads: 2\nffn: 128\nvocab: 100\nname: secret\n";
    std::ofstream(inner("inside.yaml")) << "layers: 2\nhidden: 64\nheads: 2\nffn: 128\nvocab: 100\n";
    std::ofstream(inner("leads-out.yaml")) << "as: ../secret.yaml\n";
    std::ofstream(inner("scenario.yaml")) << small;
    std::filesystem::create_symlink(outer_ / "secret.yaml", inner("link.yaml"));
    std::filesystem::create_symlink(outer_.path(), inner("folder"));
  }
  std::string inner(const std::string& name) const { return outer_.path() / "served" / name; }
  static std::string with_model(const std::string& model) {
    return "model: " + model +
           "\ncluster: {preset: single-node, gpus: 1}\ntraining: {sequence: 128, micro_batch: 1, global_batch: 1}\n";
  }
  TemporaryFolder outer_;
};

TEST_F(ServedFolder, IsAllThatScenariosRead) {
  const Served served({"--folder", outer_.path() / "served"});
  EXPECT_EQ(served.job("step", with_model("./inside.yaml"), {}, in_turn).status, 200);
  for (const std::string& model :
       {std::string("../secret.yaml"), outer_ / "secret.yaml", std::string("./link.yaml"), std::string("./folder/secret.yaml"),
        std::string("./leads-out.yaml"), std::string("/etc/passwd"), std::string("./x/../../secret.yaml")}) {
    for (const char* kind : {"step", "form", "lint", "scenario", "search", "report", "schedule"}) {
      const Answer answer = served.job(kind, with_model("\"" + model + "\""));
      const std::string sentence = failure_of(answer);
      EXPECT_THAT(sentence, testing::HasSubstr("outside")) << kind << " " << model;
    }
    EXPECT_EQ(served.job("step", with_model("llama3-8b"), {"model=\"" + model + "\""}, in_turn).status, unprocessable);
  }
  EXPECT_EQ(served.job("step", with_model("llama3-8b"), {"cluster.profile=../secret.yaml"}, in_turn).status, unprocessable);
  EXPECT_EQ(served.job("step", with_model("llama3-8b"), {"parallelism.placement.file=/etc/passwd"}, in_turn).status,
            unprocessable);
}

TEST_F(ServedFolder, IsAllThatIsGivenOut) {
  const Served served({"--folder", outer_.path() / "served"});
  const json listed = served.get("/api/start").json()["scenarios"];
  EXPECT_THAT(listed, testing::UnorderedElementsAre("inside.yaml", "leads-out.yaml", "scenario.yaml"));
  EXPECT_EQ(served.get("/api/file?name=scenario.yaml").json()["text"], small);
  for (const char* name :
       {"../secret.yaml", "%2e%2e%2fsecret.yaml", "link.yaml", "folder/secret.yaml", "/etc/passwd", "", "..", "scenario.yaml%00"})
    EXPECT_EQ(served.get(std::string("/api/file?name=") + name).status, not_found) << name;
  for (const char* path : {"/../secret.yaml", "/etc/passwd", "/scenario.yaml", "//", "/api", "/%2e%2e/secret.yaml"})
    EXPECT_NE(served.get(path).status, 200) << path;
}

// ---- limits and faults
// -----------------------------------------------------------------------------------------------------------

TEST(ServeLimits, InputIsLimited) {
  const Served served({"--folder", scenarios});
  EXPECT_EQ(served.post("/api/job/step", std::string(5'000'000, ' ')).status, too_large);
  EXPECT_EQ(served.post("/api/job/step", "{", in_turn).status, unprocessable);
  EXPECT_EQ(served.post("/api/job/step", "[]", in_turn).status, unprocessable);
  EXPECT_EQ(served.post("/api/job/step", R"({"name":"a","text":1})", in_turn).status, unprocessable);
  EXPECT_EQ(served.post("/api/job/step", R"({"name":"a","text":"model: 1","changes":[1]})", in_turn).status, unprocessable);
  EXPECT_EQ(served.job("step", small, std::vector<std::string>(1000, "parallelism.tp=2"), in_turn).status, unprocessable);
  EXPECT_EQ(served.post("/api/job/" + std::string(20, 'x'), "{}").status, not_found);
  EXPECT_EQ(served.job("step", small, {}, in_turn).status, 200);
}

TEST(ServeLimits, TimeIsLimited) {
  const Served served({"--folder", scenarios, "--time-limit", "0.3"});
  const Answer answer = served.job("report", large);
  EXPECT_THAT(failure_of(answer), testing::HasSubstr("longer than the 0.3 s"));
  EXPECT_TRUE(comes_true([&] { return served.workers().empty(); }));
}

TEST(ServeLimits, MemoryIsLimited) {
  const Served served({"--folder", scenarios, "--max-memory", "600MB", "--jobs", "1"});
  const Answer answer = served.job("report", large);
  EXPECT_THAT(failure_of(answer), testing::HasSubstr("memory"));
  EXPECT_EQ(served.job("step", small, {}, in_turn).status, 200);
}

TEST(ServeFaults, AKilledChildIsASentenceAndTheNextStepIsAnswered) {
  for (const char* const options : {"ASAN_OPTIONS", "TSAN_OPTIONS"}) ::setenv(options, "handle_segv=0", 1);  // or they end it
  const Served served({"--folder", scenarios});
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT}) {
    Answer answer;
    std::atomic<bool> is_answered = false;
    std::thread asking([&] {
      answer = served.job("report", large);
      is_answered = true;
    });
    while (!is_answered) {
      for (const pid_t worker : served.workers()) ::kill(worker, signal);
      std::this_thread::sleep_for(5ms);
    }
    asking.join();
    EXPECT_THAT(failure_of(answer), testing::HasSubstr("killed by signal " + std::to_string(signal)));
    EXPECT_EQ(served.job("step", small, {}, in_turn).status, 200);
  }
}

TEST(ServeFaults, WhoGoesAwayEndsTheWork) {
  const Served served({"--folder", scenarios});
  const std::string body = json{{"name", "a.yaml"}, {"text", large}, {"changes", json::array()}}.dump();
  const std::string request = "POST /api/job/report HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Tandem-Token: " + served.token() +
                              "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                              "\r\n\r\n" + body;
  const pid_t asking = ::fork();
  if (asking == 0) {
    served.raw(request);
    ::_exit(0);
  }
  EXPECT_TRUE(comes_true([&] { return !served.workers().empty(); }));
  ::kill(asking, SIGKILL);
  ::waitpid(asking, nullptr, 0);
  EXPECT_TRUE(comes_true([&] { return served.workers().empty(); }));
}

TEST(ServeFaults, NoProcessIsLeftWhenItEnds) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    Served served({"--folder", scenarios});
    std::thread asking([&] { served.job("report", large); });
    std::vector<pid_t> workers;
    EXPECT_TRUE(comes_true([&] { return !(workers = served.workers()).empty(); }));
    std::vector<pid_t> all = children_of(served.foreman());
    EXPECT_EQ(served.end(signal), signal == SIGKILL ? -1 : 0);
    asking.join();
    EXPECT_TRUE(comes_true([&] { return std::ranges::all_of(all, [](pid_t process) { return ::kill(process, 0) != 0; }); }));
  }
}

TEST(ServeFaults, OfAThousandQuickChangesTheNewestIsSimulated) {
  const Served served({"--folder", scenarios});
  constexpr int changes = 1000, at_once = 16;
  std::atomic<int> next = 0, simulated = 0, replaced = 0, others = 0;
  std::atomic<bool> newest_came = false;
  const auto ask = [&] {
    for (int number = 0; (number = next++) < changes;) {
      // The last is asked when all others have been answered, so none can come after it.
      const int batch = number == changes - 1 ? 128 : 64;
      if (number == changes - 1)
        while (simulated + replaced + others < changes - 1) std::this_thread::sleep_for(1ms);
      const Answer answer = served.job("step", small, {"training.global_batch=" + std::to_string(batch)}, in_turn);
      if (answer.status == 200 && answer.json()["tokens"] == 128 * 2048) newest_came = true;
      ++(answer.status == 200 ? simulated : answer.status == conflict ? replaced : others);
      if (answer.status != 200 && answer.status != conflict) ADD_FAILURE() << answer.status << " " << answer.body;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < at_once; ++i) threads.emplace_back(ask);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(others, 0);
  EXPECT_EQ(simulated + replaced, changes);
  EXPECT_GT(replaced, simulated);  // of sixteen that come at once, all but one or two
  EXPECT_TRUE(newest_came);
}

}  // namespace
}  // namespace tandem::cli::serve_test
