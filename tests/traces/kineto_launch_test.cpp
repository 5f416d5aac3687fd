// The CPU's part of a folder of traces, read the way Holistic Trace Analysis does for its idle times, queue lengths and critical
// path: times rounded inwards to whole microseconds (hta/common/trace_parser.py), launches joined to kernels by `correlation`
// (hta/common/trace.py, transform_correlation_to_index), queues (hta/analyzers/trace_counters.py), idle times by their cause
// (hta/analyzers/breakdown_analysis.py), and the call stack that its graph is built of (hta/analyzers/critical_path_analysis.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/runtime/temporary_folder.h"
#include "tests/traces/read_trace.h"
#include "tests/traces/sample.h"
#include "traces/kineto.h"

namespace tandem::traces::kineto_launch_test {
namespace {

using nlohmann::json;

struct HtaEvent {
  std::int64_t index = 0;  ///< in the file
  std::string category, name;
  std::int64_t start = 0, end = 0;  ///< us, rounded inwards
  std::int64_t stream = -1, correlation = -1;
  std::int64_t tid = 0;
};

std::vector<HtaEvent> events_in(const std::string& path) {
  std::vector<HtaEvent> events;
  const json trace = json::parse(read_all(path));
  std::int64_t index = -1;
  for (const json& event : trace.at("traceEvents")) {
    ++index;
    if (!event.contains("dur") || !event.contains("cat")) continue;
    const json args = event.value("args", json::object());
    const double start = event.at("ts"), end = start + event.at("dur").get<double>();
    EXPECT_GE(start, 0);
    events.push_back({.index = index,
                      .category = event.at("cat"),
                      .name = event.at("name"),
                      .start = static_cast<std::int64_t>(std::ceil(start)),
                      .end = static_cast<std::int64_t>(std::floor(end)),
                      .stream = args.value("stream", std::int64_t{-1}),
                      .correlation = args.value("correlation", std::int64_t{-1}),
                      .tid = event.at("tid")});
  }
  return events;
}

bool is_launch(const HtaEvent& event) { return event.name == "cudaLaunchKernel" || event.name == "cudaMemcpyAsync"; }

/// Kernels that last 100 us and more, and idle gaps as large, so that whole microseconds are exact enough.
Sample long_kernels() {
  Sample sample = pipeline_sample(3, 2, 4);
  const double scale = 100e-6 / sample.timeline.makespan() * static_cast<double>(sample.dag.tasks.size());
  for (Seconds& time : sample.timeline.start) time *= scale;
  for (Seconds& time : sample.timeline.end) time *= scale;
  return sample;
}

class KinetoLaunchTest : public testing::TestWithParam<bool> {
 protected:
  TemporaryFolder folder_;
  const Sample sample_ = long_kernels();

  /// By rank. With the parameter, the source tells when tasks were issued: each 8 us before it started, in 5 us.
  std::map<std::uint32_t, std::vector<HtaEvent>> written() const {
    TraceSource source{"simulated", &sample_.dag, &sample_.timeline};
    if (GetParam())
      source.issued = [&](TaskId id) { return Issued{sample_.timeline.start[id] - 13e-6, sample_.timeline.start[id] - 8e-6}; };
    TraceFolder(folder_ / "ranks/").write({source});
    std::map<std::uint32_t, std::vector<HtaEvent>> ranks;
    for (const Rank& rank : sample_.dag.ranks)
      ranks[rank.world_rank] = events_in(folder_ / ("ranks/rank" + std::to_string(rank.world_rank) + ".json"));
    return ranks;
  }
};

INSTANTIATE_TEST_SUITE_P(AheadAndAsIssued, KinetoLaunchTest, testing::Bool());

TEST_P(KinetoLaunchTest, EveryKernelHasOneLaunchBeforeIt) {
  for (const auto& [rank, events] : written()) {
    std::map<std::int64_t, HtaEvent> launches, kernels;
    for (const HtaEvent& event : events) {
      if (is_launch(event)) {
        EXPECT_TRUE(launches.emplace(event.correlation, event).second);
        EXPECT_EQ(event.category, "cuda_runtime");
        EXPECT_EQ(event.stream, -1);
        EXPECT_GT(event.index, 0) << "HTA takes index 0 for none";
        EXPECT_GE(event.end, event.start);
      }
      if (event.stream >= 0) {
        EXPECT_TRUE(kernels.emplace(event.correlation, event).second);
        EXPECT_GT(event.stream, 0);
      }
    }
    ASSERT_GT(kernels.size(), 4U);
    ASSERT_EQ(launches.size(), kernels.size());
    for (const auto& [correlation, kernel] : kernels) {
      ASSERT_TRUE(launches.contains(correlation));
      EXPECT_LT(launches[correlation].start, kernel.start);
      EXPECT_LE(launches[correlation].end, kernel.start);
    }
  }
}

// A launch puts one into its stream's queue, a kernel takes one out when it starts. Of a stream, launches are in the order of
// kernels.
TEST_P(KinetoLaunchTest, QueuesAreNeverNegativeAndStreamsKeepTheirOrder) {
  for (const auto& [rank, events] : written()) {
    std::map<std::int64_t, std::int64_t> stream_of;
    for (const HtaEvent& event : events)
      if (event.stream >= 0) stream_of[event.correlation] = event.stream;
    std::map<std::int64_t, std::vector<std::pair<std::int64_t, int>>> changes;
    std::map<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>> launched, ran;
    for (const HtaEvent& event : events) {
      if (event.correlation < 0) continue;
      const std::int64_t stream = stream_of.at(event.correlation);
      changes[stream].emplace_back(event.start, event.stream >= 0 ? -1 : 1);
      (event.stream >= 0 ? ran : launched)[stream].emplace_back(event.start, event.correlation);
    }
    for (auto& [stream, steps] : changes) {
      std::ranges::sort(steps);  // of one time, what is taken out comes first: the worst
      int length = 0;
      for (const auto& [time, change] : steps) {
        length += change;
        EXPECT_GE(length, 0);
      }
      EXPECT_EQ(length, 0);
      const auto order = [](std::vector<std::pair<std::int64_t, std::int64_t>> all) {
        std::ranges::sort(all);
        std::vector<std::int64_t> correlations;
        for (const auto& [time, correlation] : all) correlations.push_back(correlation);
        return correlations;
      };
      EXPECT_EQ(order(launched[stream]), order(ran[stream]));
    }
  }
}

TEST_P(KinetoLaunchTest, LaunchesLieInOperatorsAndTheseInOneIteration) {
  for (const auto& [rank, events] : written()) {
    std::vector<HtaEvent> iterations, operators, launches;
    for (const HtaEvent& event : events) {
      if (event.category == "user_annotation") iterations.push_back(event);
      if (event.category == "cpu_op") operators.push_back(event);
      if (is_launch(event)) launches.push_back(event);
    }
    ASSERT_EQ(iterations.size(), 1U);
    EXPECT_EQ(iterations[0].name, "ProfilerStep#1");
    ASSERT_EQ(operators.size(), launches.size());
    // An edge from an operator to a launch is there where the operator holds the launch in the thread's call stack, and no other
    // operator does.
    for (std::size_t i = 0; i < operators.size(); ++i) {
      EXPECT_EQ(operators[i].tid, launches[i].tid);
      EXPECT_LE(operators[i].start, launches[i].start);
      EXPECT_GE(operators[i].end, launches[i].end);
      EXPECT_GE(operators[i].start, iterations[0].start);
      EXPECT_LT(operators[i].start, iterations[0].end);
      if (i > 0) {
        EXPECT_GE(operators[i].start, operators[i - 1].end);
      }
    }
    for (const HtaEvent& event : events) {
      EXPECT_GE(event.start, iterations[0].start);
      EXPECT_LE(event.end, iterations[0].end);
    }
  }
}

// HTA: an idle gap of a stream is the host's where the kernel after it was launched after the kernel before it had ended; of a
// launch where it is shorter than a threshold; else another's. The CPU that is ahead is no reason to wait.
TEST_P(KinetoLaunchTest, IdleTimeHasItsCause) {
  std::int64_t host_wait = 0, other = 0;
  for (const auto& [rank, events] : written()) {
    std::map<std::int64_t, std::int64_t> launched;
    std::map<std::int64_t, std::vector<HtaEvent>> streams;
    for (const HtaEvent& event : events) {
      if (is_launch(event)) launched[event.correlation] = event.start;
      if (event.stream >= 0) streams[event.stream].push_back(event);
    }
    for (auto& [stream, kernels] : streams) {
      std::ranges::sort(kernels, {}, &HtaEvent::start);
      for (std::size_t i = 1; i < kernels.size(); ++i) {
        const std::int64_t idle = kernels[i].start - kernels[i - 1].end;
        (launched.at(kernels[i].correlation) > kernels[i - 1].end ? host_wait : other) += idle;
      }
    }
  }
  if (GetParam()) {
    EXPECT_GT(host_wait, 0) << "each was issued 8 us before it began";
  } else {
    EXPECT_GT(other, 20 * host_wait);
  }
}

}  // namespace
}  // namespace tandem::traces::kineto_launch_test
