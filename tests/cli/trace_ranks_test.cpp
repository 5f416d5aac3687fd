// Which ranks --trace-ranks asks for, and what a trace then shows.
#include "studies/trace/trace_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "runtime/base/input_error.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/traces/read_trace.h"

namespace tandem::cli::trace_ranks_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseRanks, TakesRanksAndRangesInAnyOrder) {
  EXPECT_THAT(parse_ranks("0", 1), ElementsAre(0));
  EXPECT_THAT(parse_ranks("5,16-18,0", 19), ElementsAre(0, 5, 16, 17, 18));
  EXPECT_THAT(parse_ranks("3-5,4-6,5", 7), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(parse_ranks("7-7,007", 8), ElementsAre(7));
  EXPECT_EQ(parse_ranks("0-131071", 131072).size(), 131072U);
}

struct WrongList {
  std::string list;
  std::string words;
};

TEST(ParseRanks, RefusesTheRest) {
  for (const WrongList& wrong : std::vector<WrongList>{{"a", "found `a`"},
                                                       {"1,", "found ``"},
                                                       {",1", "found ``"},
                                                       {"1-", "found `1-`"},
                                                       {"-1", "found `-1`"},
                                                       {"1-2-3", "found `1-2-3`"},
                                                       {"1 ", "found `1 `"},
                                                       {"+1", "found `+1`"},
                                                       {"0x1", "found `0x1`"},
                                                       {"1;2", "found `1;2`"},
                                                       {"99999999999999999999", "found `99999999999999999999`"},
                                                       {"0,5-2", "`5-2` ends before it begins, expected 2-5"},
                                                       {"3,8", "no rank 8, expected ranks from 0 to 7"},
                                                       {"0-4000000000", "no rank 4000000000"}}) {
    try {
      parse_ranks(wrong.list, 8);
      FAIL() << wrong.list;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("--trace-ranks: "));
      EXPECT_THAT(error.what(), HasSubstr(wrong.words));
    }
  }
}

TEST(TracedRanks, AreTheClassesOfThoseAskedFor) {
  Dag dag;
  dag.ranks = {{.world_rank = 0, .count = 4}, {.world_rank = 4, .count = 4}, {.world_rank = 8, .count = 4}};
  const std::vector<RankIndex> class_of{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
  const std::vector<TracedRank> traced = traced_ranks(dag, class_of, std::vector<std::uint32_t>{1, 3, 8});
  ASSERT_EQ(traced.size(), 2U);
  EXPECT_EQ(traced[0].rank, 0U);
  EXPECT_THAT(traced[0].asked, ElementsAre(1, 3));
  EXPECT_EQ(traced[1].rank, 2U);
  EXPECT_THAT(traced[1].asked, ElementsAre(8));
}

/// Processes by name, with how many slices they have.
std::map<std::string, std::size_t> processes_of(const nlohmann::json& trace) {
  std::map<int, std::string> names;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("name") == "process_name") names[event.at("pid")] = event.at("args").at("name");
  }
  std::map<std::string, std::size_t> slices;
  for (const SliceRead& slice : slices_of(trace)) ++slices[names.at(slice.pid)];
  return slices;
}

nlohmann::json traced(std::vector<std::string> command) {
  const TemporaryFolder folder;
  command.insert(command.end(), {"--trace", folder / "t.json"});
  const CommandResult run = run_tandem(command);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return nlohmann::json::parse(read_all(folder / "t.json"));
}

// 16,384 ranks, 16 stages of 1,024 ranks that behave alike: rank 3,000 is one of stage 2.
TEST(TraceRanks, OfAFoldedStepAreShownByTheirClass) {
  const std::string scenario = scenario_file("llama3-405b-16k");
  const std::map<std::string, std::size_t> all = processes_of(traced({"simulate", scenario}));
  EXPECT_EQ(all.size(), 16U);
  const std::map<std::string, std::size_t> some =
      processes_of(traced({"simulate", scenario, "--trace-ranks", "128-135,0,5,28,120"}));
  const std::string first = "rank 0 · tp 0 · pp 0 · dp 0 ×1024", fourth = "rank 24 · tp 0 · pp 3 · dp 0 ×1024",
                    last = "rank 120 · tp 0 · pp 15 · dp 0 ×1024";
  EXPECT_EQ(some, (std::map<std::string, std::size_t>{{first + " (among them 0, 5, 128-135)", all.at(first)},
                                                      {fourth + " (among them 28)", all.at(fourth)},
                                                      {last, all.at(last)}}));
}

TEST(TraceRanks, OfAnExecutedStepAreThose) {
  const std::map<std::string, std::size_t> processes =
      processes_of(traced({"crosscheck", scenario_file("tiny-host"), "--backend", "host", "--trace-ranks", "5,2-3"}));
  std::set<std::string> heads;
  for (const auto& [name, slices] : processes) heads.insert(name.substr(0, name.find(" · ", name.find("rank"))));
  EXPECT_EQ(heads, (std::set<std::string>{"measured · rank 2", "measured · rank 3", "measured · rank 5", "simulated · rank 2",
                                          "simulated · rank 3", "simulated · rank 5"}));
}

TEST(TraceFolders, HoldAFilePerRank) {
  const TemporaryFolder folder;
  const CommandResult run = run_tandem(
      {"crosscheck", scenario_file("tiny-host"), "--backend", "host", "--trace", folder / "ranks/", "--trace-ranks", "0,5"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* file : {"simulated/rank0.json", "simulated/rank5.json", "measured/rank0.json", "measured/rank5.json"}) {
    const nlohmann::json trace = nlohmann::json::parse(read_all(folder / ("ranks/" + std::string(file))));
    EXPECT_EQ(processes_of(trace).size(), 1U);
  }
}

TEST(TraceFolders, WarnOfRanksOfAnotherTrace) {
  const TemporaryFolder folder;
  const std::vector<std::string> again{"simulate", scenario_file("tiny-host"), "--trace", folder / "ranks/"};
  EXPECT_EQ(run_tandem(again).err, "");
  EXPECT_EQ(run_tandem(again).err, "");
  std::vector<std::string> fewer = again;
  fewer.insert(fewer.end(), {"--trace-ranks", "0"});
  EXPECT_THAT(run_tandem(fewer).err, HasSubstr("tandem: warning: " + (folder / "ranks/rank")));
}

}  // namespace
}  // namespace tandem::cli::trace_ranks_test
