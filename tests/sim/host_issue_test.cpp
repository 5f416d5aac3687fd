#include "sim/host_issue.h"

#include <gtest/gtest.h>

#include "sim/bounds.h"
#include "sim/simulate.h"
#include "tests/runtime/random_dag.h"
#include "tests/runtime/small_dag.h"

namespace tandem::sim::host_issue_test {
namespace {

constexpr Seconds ns = 1e-9;

Dag issued_by(SmallDag& small, const IssueCost& cost, std::vector<OpKind> waits_for = {}) {
  Dag dag = small.finish();
  dag.software.issue = cost;
  dag.software.waits_for = std::move(waits_for);
  return dag;
}

TEST(HostIssue, TimesOfAllTasksAreThoseOfEach) {
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    Dag dag = random_dag(seed);
    dag.software.issue = {.forward = 100 * ns, .backward = 70 * ns, .communication = 30 * ns};
    dag.software.extra[0][static_cast<std::size_t>(OpKind::scale)] = {.kernels = 2};
    dag.devices[1].site.kernels = 1.5;
    const IssueTimes times(dag);
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      EXPECT_EQ(times.of(id).all(), issue_time(dag, id));
      EXPECT_EQ(times.of(id).first, first_issue_time(dag, id));
    }
  }
}

TEST(HostIssue, HidesBehindKernelsThatAreLonger) {
  SmallDag small;
  const RankIndex rank = small.rank();
  for (int i = 0; i < 10; ++i) small.kernel(rank, 1000);
  const Timeline timeline = simulate(issued_by(small, {.forward = 100 * ns})).timeline;
  EXPECT_NEAR(timeline.makespan(), (100 + 10 * 1000) * ns, 1e-15);  // only the first is waited for
}

TEST(HostIssue, PacesKernelsThatAreShorter) {
  SmallDag small;
  const RankIndex rank = small.rank();
  std::vector<TaskId> kernels;
  for (int i = 0; i < 10; ++i) kernels.push_back(small.kernel(rank, 30));
  const Timeline timeline = simulate(issued_by(small, {.forward = 100 * ns})).timeline;
  for (std::size_t i = 0; i < kernels.size(); ++i)
    EXPECT_NEAR(timeline.start[kernels[i]], 100 * ns * static_cast<double>(i + 1), 1e-15);
  EXPECT_NEAR(timeline.makespan(), (10 * 100 + 30) * ns, 1e-15);
}

// 4 us of kernels are ahead of it when the CPU has issued 20 more of 30 ns: 20 * 100 ns pass meanwhile.
TEST(HostIssue, LongKernelsLetTheCpuGetAhead) {
  SmallDag small;
  const RankIndex rank = small.rank();
  small.kernel(rank, 4000);
  for (int i = 0; i < 20; ++i) small.kernel(rank, 30);
  const Timeline timeline = simulate(issued_by(small, {.forward = 100 * ns})).timeline;
  EXPECT_NEAR(timeline.makespan(), (100 + 4000 + 20 * 30) * ns, 1e-15);
}

TEST(HostIssue, ExtraKernelsAreIssuedToo) {
  SmallDag small;
  const RankIndex rank = small.rank();
  small.kernel(rank, 30);
  Dag dag = issued_by(small, {.forward = 100 * ns});
  dag.software.extra[0][static_cast<std::size_t>(OpKind::fill)] = {.kernels = 3, .bytes = 8};
  // Four to issue; 4 bytes an element in 1 ns, so 8 more bytes take twice as long again.
  EXPECT_NEAR(simulate(dag).timeline.makespan(), (4 * 100 + 30 + 60) * ns, 1e-15);
}

TEST(HostIssue, ACollectiveStartsWhenItsLastMemberIsIssued) {
  SmallDag small;
  const RankIndex early = small.rank(), late = small.rank();
  const CommunicatorId both = small.communicator(2, {.intra_latency = 50 * ns, .paths = {{}}});
  for (int i = 0; i < 5; ++i) small.kernel(late, 1, Stream::tp);
  const TaskId first = small.all_reduce(early, both, 4);
  small.all_reduce(late, both, 4);
  const Timeline timeline = simulate(issued_by(small, {.forward = 100 * ns, .communication = 10 * ns})).timeline;
  EXPECT_NEAR(timeline.start[first], (5 * 100 + 10) * ns, 1e-15);
}

// A collective over two ranks has a list of two tensors: two copies of 3 ns each, and of 8 bytes that are read and written at 4 a
// nanosecond. The CPU issues them after a gather, and before a reduction can begin.
TEST(HostIssue, TensorsOfAListAreCopiedOneByOne) {
  struct Times {
    Seconds start, takes, next;
  };
  const auto times = [](bool gathers, bool lists) {
    SmallDag small;
    const RankIndex ranks[] = {small.rank(), small.rank()};
    const CommunicatorId both = small.communicator(2, {.intra_latency = 50 * ns, .paths = {{}}});
    TaskId collective = no_id, kernel = no_id;
    for (const RankIndex rank : ranks) {
      collective = gathers ? small.all_gather(rank, both, 8) : small.reduce_scatter(rank, both, 8);
      kernel = small.kernel(rank, 30);
    }
    Dag dag = issued_by(small, {.forward = 100 * ns, .communication = 10 * ns, .loop = 7 * ns});
    dag.software.tensor_lists = lists;
    dag.devices[0].efficiency.launch = 3 * ns;
    const Timeline timeline = simulate(dag).timeline;
    const Seconds start = timeline.start[collective];
    return Times{start, timeline.end[collective] - start, timeline.start[kernel]};
  };
  for (const bool gathers : {true, false}) {
    const Times plain = times(gathers, false), lists = times(gathers, true);
    EXPECT_NEAR(plain.start, 10 * ns, 1e-15);
    EXPECT_NEAR(lists.start, (10 + (gathers ? 0 : 2 * 7)) * ns, 1e-15);
    EXPECT_NEAR(lists.takes - plain.takes, (2 * 3 + 2 * 8 / 4.0) * ns, 1e-15);
    EXPECT_NEAR(plain.next, (10 + 100) * ns, 1e-15);
    EXPECT_NEAR(lists.next, (10 + 2 * 7 + 100) * ns, 1e-15);
  }
}

// The second kernel is issued only when the first, which the CPU waits for, has ended.
TEST(HostIssue, WaitsForWhatTheFrameworkWaitsFor) {
  SmallDag small;
  const RankIndex rank = small.rank();
  small.kernel(rank, 1000);
  const TaskId second = small.kernel(rank, 1000, Stream::tp);
  const Timeline timeline = simulate(issued_by(small, {.forward = 100 * ns}, {OpKind::fill})).timeline;
  EXPECT_NEAR(timeline.start[second], (100 + 1000 + 100) * ns, 1e-15);
}

// What a gather waits for is torch.cuda.synchronize() in ZeRO's gathers of weights; those of sequence parallelism know nothing of
// it.
TEST(HostIssue, WaitsForGathersOfWeightsAlone) {
  for (const bool weights : {true, false}) {
    SmallDag small;
    const RankIndex one = small.rank(), two = small.rank();
    const CommunicatorId both = small.communicator(2, {.intra_latency = 50 * ns, .paths = {{}}});
    const Stream stream = weights ? Stream::dp : Stream::tp;
    for (const RankIndex rank : {one, two}) small.all_gather(rank, both, 4, stream);
    const TaskId next = small.kernel(one, 1000);
    const Timeline timeline = simulate(issued_by(small, {.forward = 100 * ns}, {OpKind::all_gather})).timeline;
    const Seconds gathered = timeline.end[0];
    EXPECT_GT(gathered, 0);
    EXPECT_NEAR(timeline.start[next], 100 * ns + (weights ? gathered : 0), 1e-15);
  }
}

// The first rank lowers its collective before the kernel that the CPU waits for, and its CPU issues it before, though the other
// rank gets there later.
TEST(HostIssue, FollowsTheOrderOfLowering) {
  SmallDag small;
  const RankIndex one = small.rank(), two = small.rank();
  const CommunicatorId both = small.communicator(2, {.intra_latency = 50 * ns, .paths = {{}}});
  const TaskId collective = small.all_reduce(one, both, 4);
  small.kernel(one, 1000);
  for (int i = 0; i < 3; ++i) small.kernel(two, 10);
  small.all_reduce(two, both, 4);
  const Timeline timeline = simulate(issued_by(small, {.forward = 1 * ns, .communication = 1 * ns}, {OpKind::fill})).timeline;
  EXPECT_NEAR(timeline.start[collective], (3 * (1 + 10) + 1) * ns, 1e-15);
}

/// Two kernels of 1 us, and what another stage sent: posted when the first has ended, lowered behind the second.
struct Receiver {
  SmallDag small;
  RankIndex sender = small.rank(), rank = small.rank();
  CommunicatorId pair = small.communicator(2, {.intra_latency = 50 * ns, .paths = {{}}});
  TaskId first = no_id, second = no_id, receive = no_id;

  explicit Receiver(std::int64_t sent_after_ns) {
    if (sent_after_ns > 0) small.kernel(sender, sent_after_ns, Stream::pp_send_forward);
    small.send(sender, pair, 4);
    first = small.kernel(rank, 1000);
    second = small.kernel(rank, 1000);
    receive = small.receive(rank, pair, 4);
    small.depend(first, receive);
  }
};

// The CPU waits for each kernel before it issues the next, but for the second not before it posts the receive.
TEST(HostIssue, ReceivesAreIssuedWhenTheyArePosted) {
  Receiver stage(0);
  const Timeline timeline =
      simulate(issued_by(stage.small, {.forward = 100 * ns, .communication = 1 * ns}, {OpKind::fill})).timeline;
  EXPECT_NEAR(timeline.start[stage.receive], (100 + 1000 + 1) * ns, 1e-15);
  EXPECT_NEAR(timeline.start[stage.second], (100 + 1000 + 1 + 100) * ns, 1e-15);
}

// A CPU that waits for receives does so behind the second kernel, whether that ends before or after what was sent comes.
TEST(HostIssue, ReceivesAreWaitedForWhereTheyAreNeeded) {
  for (const std::int64_t sent : {0, 5000}) {
    Receiver stage(sent);
    const TaskId next = stage.small.kernel(stage.rank, 10, Stream::tp);
    const Timeline timeline = simulate(issued_by(stage.small, {.forward = 100 * ns}, {OpKind::receive})).timeline;
    EXPECT_NEAR(timeline.start[stage.second], (100 + 1000) * ns, 1e-15);
    EXPECT_NEAR(timeline.start[next], timeline.end[stage.receive] + 100 * ns, 1e-15);
  }
}

// The GPU begins with the first expert's kernel; what comes next is issued after the last one's.
TEST(HostIssue, ExpertsKernelsAreIssuedOneByOne) {
  SmallDag small;
  const RankIndex rank = small.rank();
  const TaskId cast = small.cast(rank, 8, 4), next = small.kernel(rank, 1000);
  Dag dag = issued_by(small, {.forward = 100 * ns, .loop = 10 * ns});
  EXPECT_NEAR(issue_time(dag, cast), 100 * ns, 1e-15);
  dag.software.kernel_per_expert = {OpKind::cast};
  dag.software.extra[0][static_cast<std::size_t>(OpKind::cast)] = {.kernels = 2, .bytes = 0};
  EXPECT_NEAR(issue_time(dag, cast), (100 + 4 * 3 * 10) * ns, 1e-15);
  const Timeline timeline = simulate(dag).timeline;
  EXPECT_NEAR(timeline.start[cast], (100 + 3 * 10) * ns, 1e-15);
  EXPECT_NEAR(timeline.start[next], (100 + 4 * 3 * 10 + 100) * ns, 1e-15);
  EXPECT_GE(timeline.makespan(), lower_bound(dag));
  EXPECT_LE(timeline.makespan(), upper_bound(dag, timeline) * (1 + 1e-12));
}

TEST(HostIssue, CapturedKernelsAreIssuedForFree) {
  SmallDag small;
  const RankIndex rank = small.rank();
  const TaskId captured = small.kernel(rank, 30), cast = small.cast(rank, 8, 2);
  Dag dag = issued_by(small, {.forward = 100 * ns});
  dag.software.captured = {OpKind::fill, OpKind::cast};
  EXPECT_EQ(issue_time(dag, captured), 0);
  EXPECT_EQ(issue_time(dag, cast), 0);
  dag.software.kernel_per_expert = {OpKind::cast};  // experts' rows are not known when a graph is captured
  EXPECT_NEAR(issue_time(dag, cast), (100 + 2 * 100) * ns, 1e-15);
}

TEST(HostIssue, StepsLieBetweenTheirBounds) {
  for (const double cost : {0.0, 20.0, 400.0}) {
    SmallDag small;
    const RankIndex one = small.rank(), two = small.rank();
    const CommunicatorId both = small.communicator(2, {.intra_latency = 70 * ns, .paths = {{}}});
    for (int i = 0; i < 8; ++i) {
      small.kernel(one, 100 + 7 * i, i % 2 == 0 ? Stream::compute : Stream::tp);
      small.kernel(two, 150);
      small.all_reduce(one, both, 8);
      small.all_reduce(two, both, 8);
    }
    const Dag dag = issued_by(small, {.forward = cost * ns, .communication = cost * ns});
    const Timeline timeline = simulate(dag).timeline;
    EXPECT_GE(timeline.makespan(), lower_bound(dag)) << cost;
    EXPECT_LE(timeline.makespan(), upper_bound(dag, timeline) * (1 + 1e-12)) << cost;
  }
}

}  // namespace
}  // namespace tandem::sim::host_issue_test
