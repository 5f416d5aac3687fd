// A folder of traces read the way Holistic Trace Analysis reads it (its hta/common/trace_file.py, hta/common/trace.py,
// hta/common/trace_parser.py, hta/analyzers/breakdown_analysis.py and hta/analyzers/communication_analysis.py), and the same from
// the timeline. What it takes for communication has changed: "ncclKernel" anywhere in a name, then ^nccl.*Kernel (its issue 247);
// the search for stragglers wants "ncclKernel" at the beginning (its issue 360), which satisfies all.
#include "traces/kineto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "tests/runtime/temporary_folder.h"
#include "tests/traces/read_trace.h"
#include "tests/traces/sample.h"

namespace tandem::traces::kineto_test {
namespace {

using nlohmann::json;
using Interval = std::pair<std::int64_t, std::int64_t>;  // ns

struct RankTimes {
  std::int64_t kernel = 0;      ///< from the first kernel's start to the last one's end
  std::int64_t busy = 0;        ///< some kernel ran
  std::int64_t compute = 0;     ///< one that is no communication
  std::int64_t overlapped = 0;  ///< both kinds ran
  bool operator==(const RankTimes&) const = default;
};
void PrintTo(const RankTimes& times, std::ostream* out) {
  *out << times.kernel << ' ' << times.busy << ' ' << times.compute << ' ' << times.overlapped;
}

/// Looks at each stretch between two neighbouring starts or ends.
RankTimes times_of(const std::vector<Interval>& compute, const std::vector<Interval>& communication) {
  std::set<std::int64_t> edges;
  for (const auto& intervals : {compute, communication}) {
    for (const auto& [start, end] : intervals) edges.insert({start, end});
  }
  RankTimes times{.kernel = *edges.rbegin() - *edges.begin()};
  const auto covers = [](const std::vector<Interval>& intervals, std::int64_t time) {
    return std::ranges::any_of(intervals, [&](const Interval& one) { return one.first <= time && time < one.second; });
  };
  for (auto edge = edges.begin(); std::next(edge) != edges.end(); ++edge) {
    const std::int64_t length = *std::next(edge) - *edge;
    const bool computes = covers(compute, *edge), communicates = covers(communication, *edge);
    times.busy += computes || communicates ? length : 0;
    times.compute += computes ? length : 0;
    times.overlapped += computes && communicates ? length : 0;
  }
  return times;
}

/// By the rank that each file says it is of. Kernels are the events with a duration, a category and a stream above 0;
/// communication those whose names begin with "ncclKernel"; memory copies those that have "Memcpy" or "Memset" in them.
std::map<int, RankTimes> read_as_hta(const std::string& folder) {
  std::map<int, RankTimes> ranks;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_EQ(entry.path().extension(), ".json");
    const std::string text = read_all(entry.path());
    const json trace = json::parse(text);
    const int rank = trace.at("distributedInfo").at("rank");
    EXPECT_NE(text.find("\"rank\": " + std::to_string(rank)), std::string::npos);
    std::vector<Interval> compute, communication;
    for (const json& event : trace.at("traceEvents")) {
      if (!event.contains("dur") || !event.contains("cat")) continue;
      if (event.at("cat") != "kernel") {  // the CPU's, which kineto_launch_test.cpp reads
        EXPECT_FALSE(event.contains("args") && event.at("args").contains("stream"));
        continue;
      }
      EXPECT_GT(event.at("args").at("stream"), 0);
      const std::string name = event.at("name");
      EXPECT_EQ(name.find("Memcpy"), std::string::npos);
      EXPECT_EQ(name.find("Memset"), std::string::npos);
      const std::int64_t start = std::llround(event.at("ts").get<double>() * 1000);
      (name.starts_with("ncclKernel") ? communication : compute)
          .emplace_back(start, start + std::llround(event.at("dur").get<double>() * 1000));
    }
    EXPECT_TRUE(ranks.emplace(rank, times_of(compute, communication)).second) << "two files of rank " << rank;
  }
  return ranks;
}

TEST(Kineto, ReadersFindEveryRankAndItsTimes) {
  const TemporaryFolder folder;
  const Sample sample = pipeline_sample(3, 2, 4);
  EXPECT_THAT(TraceFolder(folder / "ranks/").write({{"simulated", &sample.dag, &sample.timeline}}), testing::IsEmpty());

  std::map<int, RankTimes> expected;
  for (const Rank& rank : sample.dag.ranks) {
    std::vector<Interval> compute, communication;
    for (TaskId id = 0; id < sample.dag.tasks.size(); ++id) {
      const Task& task = sample.dag.tasks[id];
      if (sample.dag.ranks[task.rank].world_rank != rank.world_rank) continue;
      (is_communication(task.op) ? communication : compute)
          .emplace_back(std::llround(sample.timeline.start[id] * 1e9), std::llround(sample.timeline.end[id] * 1e9));
    }
    expected[static_cast<int>(rank.world_rank)] = times_of(compute, communication);
  }
  EXPECT_EQ(read_as_hta(folder / "ranks"), expected);
  const auto overlaps = [](const auto& entry) { return entry.second.overlapped > 0 && entry.second.busy < entry.second.kernel; };
  EXPECT_TRUE(std::ranges::any_of(expected, overlaps)) << "a sample that shows nothing";
}

TEST(Kineto, CommunicationIsNamedAfterNcclsKernels) {
  const TemporaryFolder folder;
  Sample sample = pipeline_sample(2, 2, 1);
  for (std::string& name : sample.dag.names) name += " \"q\"";
  TraceFolder(folder / "ranks/").write({{"simulated", &sample.dag, &sample.timeline, {{2}}}});
  std::set<std::string> names;
  const json trace = json::parse(read_all(folder / "ranks/rank2.json"));
  for (const json& event : trace.at("traceEvents"))
    if (event.value("cat", "") == "kernel") names.insert(event.at("name"));
  EXPECT_THAT(names,
              testing::ElementsAre("mlp up \"q\"", "mlp up dw \"q\"", "mlp up dx \"q\"", "ncclKernel_AllReduce(gradients \"q\")",
                                   "ncclKernel_SendRecv(receive \"q\")", "ncclKernel_SendRecv(send \"q\")"));
}

TEST(Kineto, AnEmptyFolderIsTakenAwayAgain) {
  const TemporaryFolder folder;
  { TraceFolder made(folder / "ranks/"); }
  EXPECT_TRUE(folder.empty());
  std::filesystem::create_directory(folder / "mine");
  { TraceFolder there(folder / "mine/"); }
  EXPECT_FALSE(folder.empty());
}

TEST(Kineto, SourcesHaveFoldersOfTheirOwnAndOtherTracesAreTold) {
  const TemporaryFolder folder;
  const Sample sample = pipeline_sample(2, 1, 1);
  const TraceSource simulated{"simulated", &sample.dag, &sample.timeline}, measured{"measured", &sample.dag, &sample.timeline};
  TraceFolder(folder / "ranks/").write({simulated, measured});
  EXPECT_EQ(read_as_hta(folder / "ranks/simulated").size(), 2U);
  EXPECT_EQ(read_as_hta(folder / "ranks/measured").size(), 2U);
  const TraceSource one{"simulated", &sample.dag, &sample.timeline, {{1}}};
  EXPECT_THAT(TraceFolder(folder / "ranks/measured/").write({one}), testing::ElementsAre(folder / "ranks/measured/rank0.json"));
}

}  // namespace
}  // namespace tandem::traces::kineto_test
