#include "sim/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "runtime/base/parallel.h"
#include "sim/child_process.h"
#include "sim/simgrid_backend.h"
#include "tests/runtime/small_dag.h"

namespace tandem::sim::simulate_test {
namespace {

constexpr Seconds ns = 1e-9;

TEST(Simulate, InThisProcessIsAsInAChild) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  const TaskId one = small.flow(1'000'000, {{link, 1}}), other = small.flow(3'000'000, {{link, 1}});
  const Dag dag = small.finish();
  const Timeline expected = simulate(dag).timeline;
  run_in_child([&] {
    EndedTasks ended = 0;
    const SimulationRun here = simulate_here(dag, Collectives::fluid, &ended);
    if (ended != dag.tasks.size()) throw std::logic_error("counted others");
    if (here.timeline.start != expected.start || here.timeline.end != expected.end || here.peak_rss <= 0)
      throw std::logic_error("not as in a child");
  });
  EXPECT_LT(expected.end[one], expected.end[other]);
}

TEST(Simulate, OtherWorkIsDoneBesideOrAfterwards) {
  SmallDag small;
  const RankIndex rank = small.rank();
  small.kernel(rank, 500);
  const Dag dag = small.finish();
  const Timeline expected = simulate(dag).timeline;
  for (const std::size_t threads : {1, 2})
    run_in_child([&] {
      limit_threads(threads);
      std::size_t times = 0;
      const SimulationRun run = simulate_here(dag, Collectives::fluid, nullptr, [&] { ++times; });
      if (times != 1) throw std::logic_error("the other work was not done once");
      if (run.timeline.end != expected.end) throw std::logic_error("the step is another one");
    });
}

TEST(Simulate, FailsAlthoughOtherWorkWaitsForItToBegin) {
  SmallDag small;
  const LinkId dead = small.link(0);
  small.flow(1000, {{dead, 1}});
  const Dag dag = small.finish();
  for (const std::size_t threads : {1, 2})
    run_in_child([&] {
      limit_threads(threads);
      try {
        simulate_here(dag, Collectives::fluid, nullptr, [] {});
      } catch (const std::logic_error&) {
        return;
      }
      throw std::logic_error("a flow crossed a link without capacity");
    });
}

TEST(Simulate, KernelsOfOneStreamAddUp) {
  SmallDag small;
  const RankIndex rank = small.rank();
  for (const std::int64_t duration : {300, 1, 7'000'001, 20}) small.kernel(rank, duration);
  const Timeline timeline = simulate(small.finish()).timeline;
  EXPECT_NEAR(timeline.makespan(), (300 + 1 + 7'000'001 + 20) * ns, 1e-15);
}

TEST(Simulate, StreamsOverlap) {
  SmallDag small;
  const RankIndex rank = small.rank();
  small.kernel(rank, 500, Stream::compute);
  const TaskId longer = small.kernel(rank, 900, Stream::tp);
  const TaskId after_both = small.kernel(rank, 100, Stream::compute);
  small.depend(longer, after_both);
  const Timeline timeline = simulate(small.finish()).timeline;
  EXPECT_DOUBLE_EQ(timeline.start[after_both], 900 * ns);
  EXPECT_DOUBLE_EQ(timeline.makespan(), 1000 * ns);
}

TEST(Simulate, TellsHowFarItIs) {
  SmallDag small;
  const RankIndex rank = small.rank();
  for (int kernel = 0; kernel < 1000; ++kernel) small.kernel(rank, 1);
  std::vector<double> shares;
  simulate(small.finish(), Collectives::fluid, {}, [&](double share) { shares.push_back(share); });
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  ASSERT_FALSE(shares.empty());
  EXPECT_GE(shares.front(), 0);
  EXPECT_EQ(shares.back(), 1);
}

TEST(Simulate, KernelEndsAreExact) {
  // Whatever the other ranks do to the engine's clock meanwhile: each kernel ends its duration after its start, to the last bit.
  SmallDag small;
  std::vector<std::int64_t> durations;
  for (const std::int64_t factor : {3, 5, 7, 11, 13, 17, 19}) {
    const RankIndex rank = small.rank();
    for (std::int64_t duration = 1; duration < 10'000'000'000; duration *= factor) {
      small.kernel(rank, duration);
      durations.push_back(duration);
    }
  }
  const Dag dag = small.finish();
  const Timeline timeline = simulate(dag).timeline;
  Seconds now = 0;
  for (TaskId id = 0; id < durations.size(); ++id) {
    if (durations[id] == 1) now = 0;
    EXPECT_EQ(timeline.start[id], now);
    now += static_cast<double>(4 * durations[id]) / 4e9;
    EXPECT_EQ(timeline.end[id], now);
  }
}

TEST(Simulate, MembersOfACollectiveStartAndEndTogether) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  const CommunicatorId both = small.communicator(2, {.paths = {{.crossings = {{link, 1}}}}});
  std::vector<TaskId> members;
  for (const std::int64_t duration : {100, 800}) {
    const RankIndex rank = small.rank();
    const TaskId kernel = small.kernel(rank, duration);
    members.push_back(small.all_reduce(rank, both, 1'000'000));
    small.depend(kernel, members.back());
  }
  const Timeline timeline = simulate(small.finish()).timeline;
  EXPECT_DOUBLE_EQ(timeline.start[members[0]], 800 * ns);
  EXPECT_EQ(timeline.start[members[0]], timeline.start[members[1]]);
  EXPECT_EQ(timeline.end[members[0]], timeline.end[members[1]]);
}

/// Many ranks that compute in lockstep, and reduce over one shared link now and then.
Dag lockstep(int ranks, int steps) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  for (int r = 0; r < ranks; ++r) {
    const RankIndex rank = small.rank();
    const CommunicatorId own = small.communicator(2, {.intra_latency = 1e-6, .paths = {{.crossings = {{link, 1}}}}});
    for (int step = 0; step < steps; ++step) {
      const TaskId kernel = small.kernel(rank, 1'000);
      if (step % 10 == 0) small.depend(kernel, small.all_reduce(rank, own, 1'000));
    }
  }
  return small.finish();
}

TEST(Simulate, EqualDagsGiveEqualTimelines) {
  const Dag dag = lockstep(100, 100);
  const Timeline first = simulate(dag).timeline;
  const Timeline second = simulate(dag).timeline;
  EXPECT_EQ(first.start, second.start);
  EXPECT_EQ(first.end, second.end);
}

/// Keeps the order of the reports, across processes.
class Recorder final : public Completions {
 public:
  explicit Recorder(std::size_t count) : tasks_(count), ends_(count), reported_(1) {}
  void ended(TaskId task, Seconds, Seconds end) override {
    const auto place = static_cast<std::size_t>(reported_.values()[0]++);
    tasks_.values()[place] = task;
    ends_.values()[place] = end;
  }
  void passed(TaskId first, std::span<const Seconds> starts, std::span<const Seconds> ends) override {
    for (std::size_t i = 0; i < ends.size(); ++i) ended(first + static_cast<TaskId>(i), starts[i], ends[i]);
  }
  std::size_t reported() { return static_cast<std::size_t>(reported_.values()[0]); }
  TaskId task(std::size_t place) { return static_cast<TaskId>(tasks_.values()[place]); }
  Seconds end(std::size_t place) { return ends_.values()[place]; }

 private:
  SharedDoubles tasks_, ends_, reported_;
};

TEST(SimGridBackend, ReportsWhatEndsAtOneDateInTheOrderOfTaskIds) {
  // Even tasks are flows that end together, odd ones kernels that end together. They are started backwards.
  constexpr TaskId count = 200;
  SmallDag small;
  const LinkId link = small.link(1e9);
  for (TaskId id = 0; id < count; ++id) {
    id % 2 == 0 ? small.flow(1'000, {{link, 1}}) : small.kernel(small.rank(), 1'000);
  }
  const Dag dag = small.finish();
  Recorder recorder(count);
  run_in_child([&] {
    SimGridBackend backend;
    backend.prepare(dag, recorder);
    for (TaskId id = count; id-- > 0;) backend.start({&id, 1});
    backend.drive();
  });
  ASSERT_EQ(recorder.reported(), count);
  for (std::size_t place = 0; place < count / 2; ++place) {
    EXPECT_EQ(recorder.task(place), 2 * place + 1);
    EXPECT_DOUBLE_EQ(recorder.end(place), 1'000 * ns);
    EXPECT_EQ(recorder.task(count / 2 + place), 2 * place);
    EXPECT_EQ(recorder.end(count / 2 + place), recorder.end(count / 2));
  }
}

TEST(Simulate, NothingTakesNoTime) { EXPECT_EQ(simulate(SmallDag().finish()).timeline.makespan(), 0); }

TEST(Simulate, MeasuresItself) {
  const SimulationRun run = simulate(lockstep(10, 10));
  EXPECT_GT(run.wall, 0);
  EXPECT_GT(run.peak_rss, 1 << 20);
}

TEST(Simulate, PassesOnWhatWentWrongInTheChild) {
  SmallDag small;
  small.kernel(small.rank(), 1);
  Dag dag = small.finish();
  dag.devices[0].memory_bandwidth = 0;
  try {
    simulate(dag);
    FAIL() << "a device without memory bandwidth ran a kernel";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "one element a nanosecond has no memory bandwidth");
  }
}

}  // namespace
}  // namespace tandem::sim::simulate_test
