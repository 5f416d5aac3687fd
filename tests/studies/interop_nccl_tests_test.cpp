// What nccl-tests printed, as a profile: rows of every form of its columns, GPUs and machines from what a file says, and a step
// whose collectives take what was measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <fstream>
#include <map>

#include "runtime/base/input_error.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/reading/load.h"
#include "scenarios/reading/profile.h"
#include "sim/simulate.h"
#include "studies/interop/import_source.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::studies::interop_nccl_tests_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* head =
    "#                                                              out-of-place                       in-place          \n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       \n";

/// A half of a row: time, algbw = size / time, busbw = algbw * factor, as nccl-tests prints them.
std::string half(double bytes, double us, double factor, const std::string& wrong = "0") {
  return fmt::format("  {:7.2f}  {:6.2f}  {:6.2f}  {:>5}", us, bytes / us / 1e3, bytes / us / 1e3 * factor, wrong);
}
std::string row(std::int64_t bytes, std::int64_t count, const std::string& op_and_root, double us, double in_place_us,
                double factor) {
  const auto size = static_cast<double>(bytes);
  return fmt::format("{:12}  {:12}     float  {}", bytes, count, op_and_root) + half(size, us, factor) +
         half(size, in_place_us, factor) + "\n";
}
std::string all_reduce_row(std::int64_t bytes, int ranks, double us) {
  return row(bytes, bytes / 4, "   sum      -1", us, us, 2.0 * (ranks - 1) / ranks);
}
std::string rank_line(int rank, const std::string& host, int device, const std::string& gpu = "NVIDIA H100 80GB HBM3") {
  return fmt::format("#  Rank {:2} Group  0 Pid {:6} on {:>10} device {:2} [0000:{:02x}:00] {}\n", rank, 1000 + rank, host,
                     device, device, gpu);
}
/// `hosts` hosts of `each` GPUs.
std::string rank_lines(int hosts, int each) {
  std::string lines = "# Using devices\n";
  for (int rank = 0; rank < hosts * each; ++rank) lines += rank_line(rank, "n" + std::to_string(rank / each), rank % each);
  return lines;
}

class NcclTests : public testing::Test {
 protected:
  TemporaryFolder folder_;

  ImportResult import(const std::vector<std::string>& texts, ImportRequest request = {}, const std::string& name = "out") {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      request.paths.push_back(folder_ / (name + std::to_string(i)));
      std::ofstream(request.paths.back()) << texts[i];
    }
    for (const ImportSource& source : import_sources())
      if (source.name == "nccl-tests") return import_files(source, request);
    throw std::logic_error("no such source");
  }

  std::vector<MeasuredCollective> collectives(const std::vector<std::string>& texts, ImportRequest request = {},
                                              const std::string& name = "out") {
    std::ofstream(folder_ / "net.profile") << import(texts, std::move(request), name).out;
    return read_profile(folder_ / "net.profile").collectives;
  }

  std::string refusal(const std::string& text, ImportRequest request = {}, const std::string& name = "out") {
    try {
      import({text}, std::move(request), name);
    } catch (const InputError& error) {
      const std::string what = error.what();
      return what.starts_with(folder_ / name) ? what.substr((folder_ / name).size() + 1) : what;
    }
    return "accepted";
  }
};

TEST_F(NcclTests, ARowIsTheMedianOfAllTimesOfItsShape) {
  const std::string begin =
      "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1 minBytes 8\n" + rank_lines(2, 8) + head;
  const double factor = 2.0 * 15 / 16;
  const auto found =
      collectives({begin + row(1 << 20, 1 << 18, "   sum      -1", 100, 102, factor) + row(0, 0, "   sum      -1", 0.3, 0.3, 0),
                   begin + row(1 << 20, 1 << 18, "   sum      -1", 110, 101, factor) +
                       row(1 << 22, 1 << 20, "   sum      -1", 300, 300, factor)});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].op, OpKind::all_reduce);
  EXPECT_EQ(found[0].members, 16);
  EXPECT_EQ(found[0].machines, 2);
  EXPECT_EQ(found[0].bytes, 1 << 20);
  EXPECT_DOUBLE_EQ(found[0].timing.median, 101.5e-6);
  EXPECT_DOUBLE_EQ(found[0].timing.lowest, 100e-6);
  EXPECT_DOUBLE_EQ(found[0].timing.highest, 110e-6);
  EXPECT_EQ(found[0].timing.samples, 4);
  EXPECT_DOUBLE_EQ(found[1].timing.median, 300e-6);
}

// Of all-gather and its kind, `count` is a rank's: 16 ranks. Reduce-scatter adds up, all-gather does not.
TEST_F(NcclTests, CollectivesAreKnownByRedopRootAndCount) {
  const auto one = [&](const std::string& text, const std::string& name = "out") {
    return collectives({head + text}, {.gpus = 0}, name).front();
  };
  const std::int64_t bytes = 1 << 24, count = bytes / 4;
  EXPECT_EQ(one(row(bytes, count / 16, "   sum      -1", 900, 900, 15.0 / 16)).op, OpKind::reduce_scatter);
  const MeasuredCollective all_gather = one(row(bytes, count / 16, "  none      -1", 900, 900, 15.0 / 16), "gcp-allgather");
  EXPECT_EQ(all_gather.op, OpKind::all_gather);
  EXPECT_EQ(all_gather.members, 16);
  EXPECT_EQ(one(row(bytes, count / 16, "  none      -1", 900, 900, 15.0 / 16), "AllToAll").op, OpKind::all_to_all);
  EXPECT_EQ(one("/opt/alltoall_perf -b 8\n" + row(bytes, count / 16, "  none      -1", 900, 900, 15.0 / 16)).op,
            OpKind::all_to_all);
  EXPECT_THAT(refusal(head + row(bytes, count / 16, "  none      -1", 900, 900, 15.0 / 16)),
              HasSubstr(":4:5: could be of all_gather, alltoall, and nothing says which"));
  const std::string two = rank_lines(2, 1) + head;
  EXPECT_EQ(collectives({two + row(bytes, count, "  none       0", 900, 900, 1)}).front().op, OpKind::broadcast);
  EXPECT_EQ(collectives({two + row(bytes, count, "   sum       0", 900, 900, 1)}).front().op, OpKind::reduce);
  const MeasuredCollective send = collectives({two + row(bytes, count, "  none      -1", 900, 900, 1)}).front();
  EXPECT_EQ(send.op, OpKind::send);
  EXPECT_EQ(send.machines, 2);
}

TEST_F(NcclTests, GpusFollowFromBandwidths) {
  for (const int ranks : {2, 3, 8, 12, 72}) {
    const ImportResult result = import({head + all_reduce_row(1 << 30, ranks, 5000)});
    EXPECT_THAT(result.assumed, Contains(HasSubstr(std::to_string(ranks) + " GPUs, as busbw / algbw is that of no other number")))
        << ranks;
  }
  // Of a broadcast both bandwidths are one.
  const std::string broadcast = head + row(1 << 20, 1 << 18, "  none       0", 50, 50, 1);
  EXPECT_THAT(refusal(broadcast), HasSubstr("expected --gpus N"));
  EXPECT_EQ(collectives({broadcast}, {.gpus = 4}).front().members, 4);
}

TEST_F(NcclTests, MachinesFollowFromHosts) {
  const auto machines = [&](const std::string& ranks, int members, const ImportRequest& request = {}) {
    const std::vector<MeasuredCollective> found = collectives({ranks + head + all_reduce_row(1 << 30, members, 5000)}, request);
    return found.empty() ? 0 : found.front().machines;
  };
  EXPECT_EQ(machines(rank_lines(3, 4), 12), 3);
  EXPECT_EQ(machines(rank_lines(1, 8), 8), 1);
  // The first and the last of each host are enough.
  EXPECT_EQ(machines(rank_line(0, "a", 0) + rank_line(7, "a", 7) + rank_line(8, "b", 0) + rank_line(15, "b", 7), 16), 2);
  // One process has all GPUs of a host, and one line.
  EXPECT_EQ(machines("# nThread 1 nGpus 8 minBytes 8\n" + rank_line(0, "a", 0) + rank_line(8, "b", 0), 16), 2);
  // Not listed: eight are a machine, or as many as a node of the preset has.
  EXPECT_EQ(machines("", 16), 2);
  EXPECT_EQ(machines("", 16, {.cluster = "juwels-booster"}), 4);
  EXPECT_EQ(machines(rank_line(71, "t", 3), 72, {.cluster = "gb200-nvl72"}), 1);
  EXPECT_EQ(machines(rank_line(0, "t", 0, "NVIDIA GB200") + rank_line(71, "u", 3, "NVIDIA GB200"), 72), 1);
}

TEST_F(NcclTests, EveryFormOfColumnsIsRead) {
  const std::int64_t bytes = 1 << 24, count = bytes / 4;
  const auto time = [&](const std::string& text) { return collectives({text}, {.gpus = 8}).front().timing; };
  const std::string plain = row(bytes, count, "   sum      -1", 250, 250, 1.75);
  EXPECT_DOUBLE_EQ(time(head + plain).median, 250e-6);
  EXPECT_DOUBLE_EQ(time(plain).median, 250e-6) << "without its head";
  std::string marked, indented;
  for (const std::string& line : {std::string("[1,0]<stdout>:"), std::string("0: "), std::string("nccl-test-0 ")})
    marked += line + plain;
  EXPECT_EQ(time(head + marked).samples, 6);
  // No validation, one half alone, the largest error instead of wrong values, no root, and the columns of -I.
  EXPECT_DOUBLE_EQ(
      time(head + row(bytes, count, "   sum      -1", 250, 250, 1.75).replace(plain.find("    0"), 5, "  N/A")).median, 250e-6);
  const std::string half_row =
      fmt::format("{:12}  {:12}     float     sum      -1", bytes, count) + half(static_cast<double>(bytes), 250, 1.75) + "\n";
  EXPECT_EQ(time(head + half_row).samples, 1);
  const std::string old_head =
      "#     size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n";
  const auto old_half = half(static_cast<double>(bytes), 250, 1.75, "2e-07");
  EXPECT_EQ(time(old_head + fmt::format("{:12}  {:12}   float     sum", bytes, count) + old_half + old_half + "\n").samples, 2);
  const std::string wide_head =
      "# size count type redop root time algbw busbw #wrong min max p99 cv time algbw busbw #wrong min max p99 cv\n";
  const std::string wide = half(static_cast<double>(bytes), 250, 1.75) + " 240.00 290.00 280.00 1.20";
  EXPECT_EQ(time(wide_head + fmt::format("{:12}  {:12}   float     sum   -1", bytes, count) + wide + wide + "\n").highest,
            250e-6);
}

TEST_F(NcclTests, SeveralProgramsMayHavePrintedOneAfterTheOther) {
  const std::string ranks = rank_lines(1, 8);
  const auto found = collectives({"# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1 minBytes 8\n" + ranks + head +
                                  all_reduce_row(1 << 20, 8, 50) +
                                  "# Collective test concluded: all_reduce_perf\n# Collective test starting: broadcast_perf\n# "
                                  "nThread 1 nGpus 1 minBytes 8\n" +
                                  ranks + head + row(1 << 20, 1 << 18, "  none       0", 40, 40, 1)});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].op, OpKind::all_reduce);
  EXPECT_EQ(found[1].op, OpKind::broadcast);
  EXPECT_EQ(found[1].members, 8);
}

constexpr const char* report =
    R"({"version":2,"start_time":"2026-01-02 03:04:05","args":["\/x\/all_reduce_perf","-b","1M"],"nccl_version":22903,
"config":{"nthreads":1,"ngpus":2,"devices":[{"rank":0,"group":0,"hostname":"a","device":0,"device_info":"GPU"}]},
"results":[{"size":1048576,"count":262144,"type":"float","redop":"sum","root":"    -1","out_of_place":{"time":100.0,"alg_bw":10.48576,"bus_bw":10.48576,"nwrong":0.0},
"in_place":{"time":100.0,"alg_bw":10.48576,"bus_bw":10.48576,"nwrong":null}}],"out_of_bounds":{"count":0,"okay":"true"}})";

TEST_F(NcclTests, AReportInJsonSaysTheSame) {
  std::ofstream(folder_ / "net.profile") << import({report}).out;
  const Profile profile = read_profile(folder_ / "net.profile");
  ASSERT_EQ(profile.collectives.size(), 1U);
  EXPECT_EQ(profile.collectives[0].members, 2);
  EXPECT_EQ(profile.collectives[0].machines, 1);
  EXPECT_DOUBLE_EQ(profile.collectives[0].timing.median, 100e-6);
  EXPECT_EQ(profile.origin.device, "GPU");
  EXPECT_EQ(profile.origin.date, "2026-01-02 03:04:05");
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = report;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(refusal(changed("\"nwrong\":0.0", "\"nwrong\":7.0")),
              HasSubstr("results[0].out_of_place.nwrong is 7.0, expected 0"));
  EXPECT_THAT(refusal(changed("\"size\":1048576", "\"siz\":1048576")), HasSubstr("results[0].size is missing"));
  EXPECT_THAT(refusal(std::string(report).substr(0, 300)), HasSubstr(":3:"));
}

TEST_F(NcclTests, RecordsOfRcclTestsSayTheirShape) {
  const auto record = [](int in_place, const std::string& wrong) {
    return R"({"numCycle":0, "name":"ReduceScatter", "nodes":2, "ranks":16, "ranksPerNode":8, "gpusPerRank":1, "size":1048576, "type":"float", "redop":"sum", "inPlace":)" +
           std::to_string(in_place) + R"(, "time":100.000000, "algBw":10.485760, "busBw":9.830400, "wrong":")" + wrong + "\"}";
  };
  const auto found = collectives({"[\n" + record(0, "0") + ",\n" + record(1, "N/A") + "\n]\n"});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].op, OpKind::reduce_scatter);
  EXPECT_EQ(found[0].members, 16);
  EXPECT_EQ(found[0].machines, 2);
  EXPECT_EQ(found[0].timing.samples, 2);
  EXPECT_THAT(refusal("[" + record(0, "12") + "]"), HasSubstr("[0].wrong is `12`, expected 0"));
}

TEST_F(NcclTests, WhatIsNoMeasurementIsRefusedAtItsLine) {
  const std::int64_t bytes = 1 << 24;
  const std::string good = row(bytes, bytes / 4, "   sum      -1", 250, 250, 1.75);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return head + text.replace(text.find(from), from.size(), to);
  };
  const std::string ranks = rank_lines(1, 8);
  EXPECT_THAT(refusal(changed(" 250.00", "  XXXXX")), HasSubstr(":4:"));
  EXPECT_THAT(refusal(changed(" 250.00", "  XXXXX")), HasSubstr("time is `XXXXX`, expected a number"));
  EXPECT_THAT(refusal(changed("    0", "    3")), HasSubstr("#wrong is `3`, expected 0"));
  EXPECT_THAT(refusal(head + good + "# Out of bounds values : 4 FAILED\n"), HasSubstr(":5:1: 4 values were out of bounds"));
  EXPECT_THAT(refusal(changed(" 67.11", " 77.11")), HasSubstr("algbw is 77.11 GB/s, but 16777216 bytes in 250 us are 67.11"));
  EXPECT_THAT(refusal(ranks + head + row(bytes, bytes / 4, "   sum      -1", 250, 250, 1.5)),
              HasSubstr("but that of all_reduce among 8 ranks is 1.7500 times the algbw"));
  EXPECT_THAT(refusal(head), HasSubstr("has no row of measured times"));
  EXPECT_THAT(refusal("#  Rank 0 Group 1 Pid 9 on a device 0 [0x1] T\n" + std::string(head) + good),
              HasSubstr("several groups ran at the same time"));
  EXPECT_THAT(refusal("# Collective test starting: broadcast_perf\n" + std::string(head) + good),
              HasSubstr("are not those of broadcast"));
}

/// By operation, members and bytes: how long each collective of a step lasted.
using Times = std::map<std::tuple<OpKind, std::size_t, Bytes>, std::vector<Seconds>>;
Times times_of(const Scenario& scenario) {
  const Dag dag = lower(scenario, make_world(scenario, false));
  const Timeline timeline = simulate(dag).timeline;
  Times times;
  for (GroupId group = 0; group < dag.groups.size(); ++group) {
    const TaskId first = dag.members_of(group).front();
    times[{dag.tasks[first].op, dag.communicator_of(dag.tasks[first]).members.size(), dag.groups[group].bytes}].push_back(
        timeline.duration(first));
  }
  return times;
}

// Measured between two nodes of eight: the all-reduce of that size takes as long, the kernels what they took, and another size
// what the line between two measured ones says.
TEST_F(NcclTests, AStepTakesWhatWasMeasured) {
  const auto scenario = [&](const std::string& profile) {
    std::ofstream(folder_ / "s.yaml") << "model: {layers: 2, hidden: 512, heads: 16, kv_heads: 16, ffn: 1024, vocab: 4096}\n"
                                      << "cluster: {preset: dgx-h100, gpus: 16" << profile << "}\nparallelism: {tp: 16}\n"
                                      << "training: {sequence: 1024, micro_batch: 1, global_batch: 1}\n";
    return load_scenario(folder_ / "s.yaml", {});
  };
  const Times modelled = times_of(scenario(""));
  std::size_t compared = 0;
  for (const auto& [key, durations] : modelled) {
    const auto [op, members, bytes] = key;
    if (op != OpKind::all_reduce || members != 16 || bytes < 4096) continue;
    const std::string begin = rank_lines(2, 8) + head;
    std::ofstream(folder_ / "net.profile") << import({begin + all_reduce_row(bytes, 16, 1234)}).out;
    const Times measured = times_of(scenario(", profile: net.profile"));
    for (const Seconds time : measured.at(key)) EXPECT_NEAR(time, 1234e-6, 1e-5 * 1234e-6);
    std::ofstream(folder_ / "net.profile")
        << import({begin + all_reduce_row(bytes / 2, 16, 1000), begin + all_reduce_row(bytes * 2, 16, 4000)}).out;
    const Times between = times_of(scenario(", profile: net.profile"));
    for (const Seconds time : between.at(key)) EXPECT_NEAR(time, 2000e-6, 1e-5 * 2000e-6);  // a third of the way
    // Of one node: nothing.
    std::ofstream(folder_ / "net.profile") << import({rank_lines(1, 16) + head + all_reduce_row(bytes, 16, 1234)}).out;
    EXPECT_EQ(times_of(scenario(", profile: net.profile")).at(key), durations);
    ++compared;
  }
  EXPECT_GT(compared, 0U);
}

}  // namespace
}  // namespace tandem::studies::interop_nccl_tests_test
