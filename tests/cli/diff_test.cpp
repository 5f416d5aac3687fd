// What changed between two results: parts that add up, what one of them lacks, and inputs that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "cli/text/diff_text.h"
#include "runtime/base/input_error.h"
#include "studies/diff/difference.h"
#include "tests/cli/run_command.h"
#include "tests/cli/terminal.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::diff_test {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int wrong_input = 2;

Json exposed(Seconds tp, Seconds dp) { return {{"tp", tp}, {"cp", 0.0}, {"ep", 0.0}, {"pp", 0.0}, {"dp", dp}}; }

/// A step of 4 s on two stages.
Json a_result() {
  const auto stage = [](int index, Seconds forward, Seconds bubble) -> Json {
    return {{"stage", index},
            {"ranks", 4},
            {"forward", forward},
            {"backward_input", 1.0},
            {"backward_weight", 0.5},
            {"recompute", 0.0},
            {"exposed", exposed(0.5, 0.25)},
            {"bubble", bubble},
            {"optimizer", 0.25}};
  };
  return {
      {"scenario", "my-run"},
      {"gpus", 8},
      {"tokens", 4096},
      {"step_time_s", 4.0},
      {"tokens_per_s_per_gpu", 128.0},
      {"mfu", 0.4},
      {"time_s", {{"compute", 2.5}, {"exposed", exposed(0.5, 0.25)}, {"bubble", 0.5}, {"optimizer", 0.25}}},
      {"stages_s", {stage(0, 1.0, 0.5), stage(1, 1.0, 0.5)}},
      {"kinds",
       {{{"name", "gemm"}, {"phase", "forward"}, {"count", 4}, {"time_s", 1.0}},
        {{"name", "all_reduce (tp)"}, {"phase", "forward"}, {"count", 8}, {"time_s", 0.75}},
        {{"name", "optimizer_step"}, {"phase", "optimizer"}, {"count", 1}, {"time_s", 0.25}}}},
      {"memory", {{"stages", {{{"stage", 0}, {"peak_bytes", 40'000'000'000}}, {{"stage", 1}, {"peak_bytes", 30'000'000'000}}}}}},
      {"run", {{"backend", "simgrid"}}}};
}

/// The same with 0.5 s of exposed communication less, 0.25 s of bubble more, a kind less and one more, and a third stage.
Json another_result() {
  Json json = a_result();
  json["gpus"] = 12;
  json["step_time_s"] = 3.75;
  json["tokens_per_s_per_gpu"] = 91.0;
  json["mfu"] = 0.28;
  json["time_s"]["exposed"]["tp"] = 0.0;
  json["time_s"]["bubble"] = 0.75;
  for (Json& stage : json["stages_s"]) {
    stage["exposed"]["tp"] = 0.0;
    stage["bubble"] = 0.75;
  }
  json["stages_s"].push_back(json["stages_s"].back());
  json["kinds"][1] = {{"name", "gemm"}, {"phase", "recompute"}, {"count", 1}, {"time_s", 0.125}};
  json["kinds"][0]["time_s"] = 1.0625;
  json["memory"]["stages"][0]["peak_bytes"] = 35'000'000'000;
  json["memory"]["stages"].push_back({{"stage", 2}, {"peak_bytes", 10'000'000'000}});
  return json;
}

ResultDifference compared(const Json& a, const Json& b) {
  return difference_of({"a.json", step_result_from_json(a, "a.json")}, {"b.json", step_result_from_json(b, "b.json")});
}

Seconds sum_of_changes(const std::vector<Difference>& differences) {
  Seconds sum = 0;
  for (const Difference& difference : differences) sum += difference.change();
  return sum;
}

TEST(Diff, NamesWhatChangedMostFirst) {
  const ResultDifference d = compared(a_result(), another_result());
  EXPECT_EQ(sum_of_changes(d.parts), -0.25);
  std::vector<std::string> kinds;
  for (const Difference& kind : d.kinds) kinds.push_back(kind.name);
  EXPECT_THAT(kinds, ElementsAre("all_reduce (tp) forward", "gemm recompute", "gemm forward", "optimizer_step optimizer"));
  EXPECT_EQ(d.kinds[0].b, std::nullopt);
  EXPECT_EQ(d.kinds[1].a, std::nullopt);
  ASSERT_EQ(d.axes.size(), 5U);
  EXPECT_EQ(d.axes[0].name, "tp");
  EXPECT_EQ(d.axes[0].change(), -0.5);
  ASSERT_EQ(d.stages.size(), 3U);
  EXPECT_EQ(sum_of_changes(d.stages[1].parts), -0.25);
  EXPECT_EQ(d.stages[2].parts[0].a, std::nullopt);
  EXPECT_EQ(d.stages[2].parts[0].b, 1.0);
  EXPECT_EQ(d.memory[2].a, std::nullopt);
}

TEST(Diff, JsonHasTheReportsFields) {
  const Json json = to_json_object(compared(a_result(), another_result()));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("kind", "a", "b", "parts", "kinds", "axes", "stages", "memory"));
  EXPECT_EQ(json["kind"], "diff");
  EXPECT_EQ(json["a"], (Json{{"name", "a.json"}, {"step_time_s", 4.0}}));
  EXPECT_EQ(json["parts"][1], (Json{{"name", "exposed tp"}, {"a_s", 0.5}, {"b_s", 0.0}}));
  EXPECT_EQ(json["kinds"][0], (Json{{"name", "all_reduce (tp) forward"}, {"a_s", 0.75}, {"b_s", nullptr}}));
  EXPECT_EQ(json["stages"][2]["stage"], 2);
  EXPECT_EQ(json["stages"][2]["parts"][0], (Json{{"name", "forward"}, {"a_s", nullptr}, {"b_s", 1.0}}));
  EXPECT_EQ(json["memory"][2], (Json{{"stage", 2}, {"a_bytes", nullptr}, {"b_bytes", 10'000'000'000}}));
}

TEST(Diff, PartsAddUpWhateverTheResults) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int round = 0; round < 100; ++round) {
    const auto draw = [&] {
      Json json = a_result();
      Json& time = json["time_s"];
      double sum = 0;
      for (const char* part : {"compute", "bubble", "optimizer"}) sum += (time[part] = uniform(random)).get<double>();
      for (auto& [axis, value] : time["exposed"].items()) sum += (value = uniform(random)).get<double>();
      if (round % 3 == 0) {
        sum -= time["exposed"]["ep"].get<double>();
        time["exposed"].erase("ep");
      }
      json["step_time_s"] = sum;
      return json;
    };
    const ResultDifference d = compared(draw(), draw());
    EXPECT_NEAR(sum_of_changes(d.parts), d.b.step.step_time - d.a.step.step_time, 1e-12);
    Seconds a = 0, b = 0;
    for (const Difference& part : d.parts) {
      a += part.a.value_or(0);
      b += part.b.value_or(0);
    }
    EXPECT_NEAR(a, d.a.step.step_time, 1e-12);
    EXPECT_NEAR(b, d.b.step.step_time, 1e-12);
  }
}

TEST(Diff, OfAResultWithItselfIsNone) {
  const ResultDifference d = compared(a_result(), a_result());
  EXPECT_TRUE(d.is_none());
  EXPECT_THAT(to_text(d), testing::StartsWith("step time 4.000 s: no difference\n"));
  EXPECT_FALSE(compared(a_result(), another_result()).is_none());
  Json other_memory = a_result();
  other_memory["memory"]["stages"][1]["peak_bytes"] = 1;
  EXPECT_FALSE(compared(a_result(), other_memory).is_none());
}

// clang-format off
TEST(Diff, TextAt60Columns) {
  EXPECT_EQ(to_text(compared(a_result(), another_result()), {.width = 60}),
R"(step time 4.000 s -> 3.750 s (-6.2 %)
  exposed tp -500.00 ms, bubble +250.00 ms

  a  a.json  my-run, 8 GPUs, simulated
  b  b.json  my-run, 12 GPUs, simulated

                     a       b   change
  GPUs               8      12  +50.0 %
  tokens/s/GPU   128.0    91.0  -28.9 %
  MFU           40.0 %  28.0 %  -30.0 %

By part of the step (mean over ranks)
                      a          b      change
  compute       2.500 s    2.500 s
  exposed tp  500.00 ms     0.0 us  -500.00 ms  -100.0 %
  exposed dp  250.00 ms  250.00 ms
  bubble      500.00 ms  750.00 ms  +250.00 ms   +50.0 %
  optimizer   250.00 ms  250.00 ms

By kind of task, most changed first (of a rank, overlapped
  or not)
  kind of task                     b      change
  all_reduce (tp) forward          -  -750.00 ms    gone
  gemm recompute           125.00 ms  +125.00 ms     new
  gemm forward               1.062 s   +62.50 ms  +6.2 %
  no room for: a

By pipeline stage, ms more or less (mean over its ranks)
  stage  exposed tp   bubble
    0-1     -500.00  +250.00
      2           -        -  only in b

Memory by pipeline stage, GB at the peak
  stage      a      b  change
      0  40.00  35.00   -5.00  -12.5 %
      1  30.00  30.00   +0.00
      2      -  10.00              new
)");
}

TEST(Diff, TextInAPipe) {
  EXPECT_EQ(to_text(compared(a_result(), another_result())),
R"(step time 4.000 s -> 3.750 s (-6.2 %)
  exposed tp -500.00 ms, bubble +250.00 ms

  a  a.json  my-run, 8 GPUs, simulated
  b  b.json  my-run, 12 GPUs, simulated

                     a       b   change
  GPUs               8      12  +50.0 %
  tokens/s/GPU   128.0    91.0  -28.9 %
  MFU           40.0 %  28.0 %  -30.0 %

By part of the step (mean over ranks)
                      a          b      change
  compute       2.500 s    2.500 s
  exposed tp  500.00 ms     0.0 us  -500.00 ms  -100.0 %  --------------------
  exposed dp  250.00 ms  250.00 ms
  bubble      500.00 ms  750.00 ms  +250.00 ms   +50.0 %  ++++++++++
  optimizer   250.00 ms  250.00 ms

By kind of task, most changed first (of a rank, overlapped or not)
  kind of task                     a          b      change
  all_reduce (tp) forward  750.00 ms          -  -750.00 ms    gone  --------------------
  gemm recompute                   -  125.00 ms  +125.00 ms     new  +++
  gemm forward               1.000 s    1.062 s   +62.50 ms  +6.2 %  ++

By pipeline stage, ms more or less (mean over its ranks)
  stage  exposed tp   bubble
    0-1     -500.00  +250.00
      2           -        -  only in b

Memory by pipeline stage, GB at the peak
  stage      a      b  change
      0  40.00  35.00   -5.00  -12.5 %
      1  30.00  30.00   +0.00
      2      -  10.00              new
)");
}
// clang-format on

// clang-format off
TEST(Diff, Markdown) {
  EXPECT_EQ(to_text(compared(a_result(), another_result()), {.markdown = true}),
R"(**step time 4.000 s -&gt; 3.750 s (-6.2 %)**

exposed tp -500.00 ms, bubble +250.00 ms

|  |  |  |
| --- | --- | --- |
| a | a.json | my-run, 8 GPUs, simulated |
| b | b.json | my-run, 12 GPUs, simulated |

|  | a | b | change |
| --- | ---: | ---: | ---: |
| GPUs | 8 | 12 | +50.0 % |
| tokens/s/GPU | 128.0 | 91.0 | -28.9 % |
| MFU | 40.0 % | 28.0 % | -30.0 % |

#### By part of the step (mean over ranks)

|  | a | b | change |  |
| --- | ---: | ---: | ---: | ---: |
| compute | 2.500 s | 2.500 s |  |  |
| exposed tp | 500.00 ms | 0.0 us | -500.00 ms | -100.0 % |
| exposed dp | 250.00 ms | 250.00 ms |  |  |
| bubble | 500.00 ms | 750.00 ms | +250.00 ms | +50.0 % |
| optimizer | 250.00 ms | 250.00 ms |  |  |

#### By kind of task, most changed first (of a rank, overlapped or not)

| kind of task | a | b | change |  |
| --- | ---: | ---: | ---: | ---: |
| all\_reduce (tp) forward | 750.00 ms | - | -750.00 ms | gone |
| gemm recompute | - | 125.00 ms | +125.00 ms | new |
| gemm forward | 1.000 s | 1.062 s | +62.50 ms | +6.2 % |

#### By pipeline stage, ms more or less (mean over its ranks)

| stage | exposed tp | bubble |  |
| ---: | ---: | ---: | --- |
| 0-1 | -500.00 | +250.00 |  |
| 2 | - | - | only in b |

#### Memory by pipeline stage, GB at the peak

| stage | a | b | change |  |
| ---: | ---: | ---: | ---: | ---: |
| 0 | 40.00 | 35.00 | -5.00 | -12.5 % |
| 1 | 30.00 | 30.00 | +0.00 |  |
| 2 | - | 10.00 |  | new |
)");
}
// clang-format on

TEST(Diff, TextFitsAndColoursAreAllThatAColouredScreenAdds) {
  const ResultDifference d = compared(a_result(), another_result());
  for (const std::size_t width : {60, 80, 120}) {
    const std::string coloured = to_text(d, {.width = width, .coloured = true});
    EXPECT_EQ(as_plain_text(coloured), to_text(d, {.width = width}));
    EXPECT_LE(widest_line(as_plain_text(coloured)), width);
  }
}

TEST(Diff, WhatAnOldResultLacksIsLeftOutAndSaid) {
  Json old = another_result();
  for (const char* key : {"gpus", "tokens", "stages_s", "kinds", "mfu"}) old.erase(key);
  const ResultDifference d = compared(a_result(), old);
  EXPECT_TRUE(d.kinds.empty());
  EXPECT_TRUE(d.stages.empty());
  EXPECT_EQ(sum_of_changes(d.parts), -0.25);
  const std::string text = to_text(d);
  EXPECT_THAT(text, HasSubstr("Not compared: by kind of task, as b has no `kinds`; by stage, as b has no `stages_s`"));
  EXPECT_THAT(text, Not(HasSubstr("By kind of task")));
  EXPECT_THAT(to_text(compared(old, old)), HasSubstr("as they have no `kinds`"));
}

std::string refusal(const std::string& text) {
  try {
    step_result_from_json(text, "r.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Diff, SaysWhatIsWrongWithAResult) {
  EXPECT_EQ(refusal("{\"a\": 1,\n  oops}"),
            "r.json:2:3: is no JSON, expected a result, which `tandem simulate SCENARIO --json F` writes");
  EXPECT_THAT(refusal("{\"a\": 1"), HasSubstr("r.json:1:8: is no JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("r.json: is not an object, expected a result, which `tandem simulate"));
  EXPECT_THAT(refusal("{\"a\": 1e999}"), HasSubstr("r.json: cannot be read as JSON"));
  EXPECT_EQ(refusal(a_result().dump()), "accepted");
  const std::vector<std::pair<std::string, std::vector<std::string>>> missing = {
      {"step_time_s", {"/step_time_s"}}, {"time_s.bubble", {"/time_s/bubble"}}, {"memory.stages", {"/memory/stages"}}};
  for (const auto& [name, pointers] : missing) {
    Json json = a_result();
    for (const std::string& pointer : pointers) {
      const Json::json_pointer at(pointer);
      json[at.parent_pointer()].erase(at.back());
    }
    EXPECT_EQ(refusal(json.dump()),
              "r.json: has no key `" + name + "`, expected a result, which `tandem simulate SCENARIO --json F` writes");
  }
  const std::vector<std::tuple<std::string, Json, std::string>> wrong = {
      {"/step_time_s", "4 s", "`step_time_s` is `\"4 s\"`, expected a number of at least 0"},
      {"/step_time_s", 0, "`step_time_s` is `0`, expected more than 0"},
      {"/step_time_s", 5, "`time_s` adds up to 4 s and `step_time_s` is 5"},
      {"/time_s/compute", -2.5, "`time_s.compute` is `-2.5`"},
      {"/time_s/exposed", nullptr, "`time_s.exposed` is `null`, expected an object"},
      {"/memory/stages/1/peak_bytes", 0.5, "`memory.stages[1].peak_bytes` is `0.5`, expected a whole number"},
      {"/memory/stages", 3, "`memory.stages` is `3`, expected a list"},
      {"/kinds/0/name", 3, "`kinds[0].name` is `3`, expected a text"},
      {"/stages_s/0/exposed/tp", "x", "`stages_s[0].exposed.tp`"}};
  for (const auto& [pointer, value, words] : wrong) {
    Json json = a_result();
    json[Json::json_pointer(pointer)] = value;
    EXPECT_THAT(refusal(json.dump()), HasSubstr("r.json: " + words));
  }
}

class DiffCommandTest : public testing::Test {
 protected:
  DiffCommandTest() {
    std::ofstream(folder_ / "a.json") << a_result().dump();
    std::ofstream(folder_ / "b.json") << another_result().dump();
  }
  CommandResult diff(const std::string& a, const std::string& b, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"diff", folder_ / a, folder_ / b};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_tandem(arguments);
  }

  TemporaryFolder folder_;
};

TEST_F(DiffCommandTest, PrintsTextAndWritesJson) {
  const CommandResult run = diff("a.json", "b.json", {"--json", folder_ / "d.json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              testing::StartsWith("step time 4.000 s -> 3.750 s (-6.2 %)\n  exposed tp -500.00 ms, bubble +250.00 ms\n"));
  const CommandResult json = diff("a.json", "b.json", {"--json", "-"});
  EXPECT_EQ(Json::parse(json.out), Json::parse(read_all(folder_ / "d.json")));
  EXPECT_EQ(Json::parse(json.out)["b"]["name"], folder_ / "b.json");
  const CommandResult markdown = diff("a.json", "b.json", {"--markdown", "-"});
  EXPECT_THAT(markdown.out, testing::StartsWith("**step time 4.000 s -&gt; 3.750 s (-6.2 %)**\n\nexposed tp -500.00 ms"));
  EXPECT_EQ(diff("a.json", "b.json", {"--markdown", folder_ / "d.md"}).out, run.out);
  EXPECT_EQ(read_all(folder_ / "d.md"), markdown.out);
  EXPECT_THAT(diff("b.json", "b.json").out, HasSubstr("no difference"));
}

TEST_F(DiffCommandTest, RefusesWhatIsNoResult) {
  std::ofstream(folder_ / "topology.json") << R"({"scenario": "x", "cluster": {}})";
  expect_refusal(diff("a.json", "c.json"), wrong_input, {"c.json: cannot be read: No such file", "did you mean"});
  expect_refusal(diff("a.json", "topology.json"), wrong_input, {"no key `step_time_s`", "tandem simulate SCENARIO --json F"});
  expect_refusal(diff("a.json", "."), wrong_input, {"has no traceEvents; expected a trace"});  // a folder holds traces
  expect_refusal(run_tandem({"diff", "/bin/ls", "/bin/ls"}), wrong_input, {"/bin/ls: ", "expected a result"});
  expect_refusal(run_tandem({"diff", folder_ / "a.json"}), wrong_input, {"b is required"});
  expect_refusal(diff("a.json", "b.json", {"--dag", folder_ / "a.json"}), wrong_input, {"--dag ", "is for timelines"});
  for (const std::string option : {"--json", "--report"})  // found before anything is read
    expect_refusal(diff("a.json", "topology.json", {option, "/no/such/folder/d"}), 1, {"cannot write '/no/such/folder/d'"});
}

// Two runs of one DAG, each with its own times.
TEST_F(DiffCommandTest, ComparesTimelinesOfOneDag) {
  const std::string dag = folder_ / "step.dag", tiny = scenario_file("tiny-host");
  ASSERT_EQ(run_tandem({"lower", tiny, "--out", dag}).exit_code, 0);
  for (const char* name : {"1.timeline", "2.timeline"})
    ASSERT_EQ(run_program(TANDEM_RUN_BINARY, {dag, "--backend", "host", "--out", folder_ / name}).exit_code, 0);
  const CommandResult run = diff("1.timeline", "2.timeline", {"--dag", dag, "--json", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = Json::parse(run.out);
  double changes = 0;
  for (const Json& part : json["parts"]) changes += part["b_s"].get<double>() - part["a_s"].get<double>();
  const double change = json["b"]["step_time_s"].get<double>() - json["a"]["step_time_s"].get<double>();
  EXPECT_NE(change, 0);
  EXPECT_NEAR(changes, change, 1e-9);
  EXPECT_FALSE(json["kinds"].empty());
  EXPECT_FALSE(json["stages"].empty());
  EXPECT_THAT(diff("1.timeline", "1.timeline", {"--dag", dag}).out, HasSubstr("no difference"));

  expect_refusal(diff("1.timeline", "2.timeline"), wrong_input, {"1.timeline: is a timeline", "--dag F", "tandem lower"});
  ASSERT_EQ(run_tandem({"lower", tiny, "--set", "training.global_batch=16", "--out", folder_ / "other.dag"}).exit_code, 0);
  expect_refusal(diff("1.timeline", "2.timeline", {"--dag", folder_ / "other.dag"}), wrong_input,
                 {"1.timeline: is the timeline of"});
}

}  // namespace
}  // namespace tandem::cli::diff_test
