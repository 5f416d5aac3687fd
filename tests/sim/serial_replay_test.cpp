#include "sim/serial_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "tests/runtime/random_dag.h"
#include "tests/runtime/small_dag.h"

namespace tandem::sim::serial_replay_test {
namespace {

constexpr Seconds ns = 1e-9;

/// Counts down what the units of a DAG wait for.
class Waiting {
 public:
  explicit Waiting(const Dag& dag) : dag_(dag), preds_(dag.tasks.size(), 0), done_(dag.tasks.size(), false) {
    for (const TaskId after : dag.graph.targets()) ++preds_[after];
  }

  /// The first tasks of units that are ready and not done.
  std::vector<TaskId> ready() const {
    std::vector<TaskId> firsts;
    for (TaskId id = 0; id < dag_.tasks.size(); ++id)
      if (!done_[id] && dag_.unit_of(id).front() == id &&
          std::ranges::all_of(dag_.unit_of(id), [&](TaskId member) { return preds_[member] == 0; }))
        firsts.push_back(id);
    return firsts;
  }

  void settle(TaskId first) {
    for (const TaskId member : dag_.unit_of(first)) {
      done_[member] = true;
      for (const TaskId after : dag_.graph.successors(member)) --preds_[after];
    }
  }

 private:
  const Dag& dag_;
  std::vector<std::uint32_t> preds_;
  std::vector<bool> done_;
};

/// When units end that take `length`, each as soon as what it waits for has, or, `one_at_a_time`, its ranks are free, too: of
/// what is ready, what `timeline` started first.
Timeline played(const Dag& dag, const std::vector<Seconds>& length, const Timeline* one_at_a_time = nullptr) {
  Waiting waiting(dag);
  Timeline played{.start = std::vector<Seconds>(dag.tasks.size(), 0), .end = std::vector<Seconds>(dag.tasks.size(), 0)};
  std::vector<Seconds> free(dag.ranks.size(), 0);
  for (std::vector<TaskId> ready = waiting.ready(); !ready.empty(); ready = waiting.ready()) {
    const TaskId first = one_at_a_time == nullptr ? ready.front() : *std::ranges::min_element(ready, {}, [&](TaskId id) {
      return std::pair(instant_of_turn(one_at_a_time->start[id]), id);
    });
    Seconds start = 0;
    for (const TaskId member : dag.unit_of(first)) {
      start = std::max(start, played.start[member]);  // by what it waits for
      if (one_at_a_time != nullptr) start = std::max(start, free[dag.tasks[member].rank]);
    }
    for (const TaskId member : dag.unit_of(first)) {
      played.start[member] = start;
      played.end[member] = free[dag.tasks[member].rank] = start + length[first];
      for (const TaskId after : dag.graph.successors(member))
        played.start[after] = std::max(played.start[after], start + length[first]);
    }
    waiting.settle(first);
  }
  return played;
}

/// Whole nanoseconds, many of them equal.
std::vector<Seconds> random_lengths(const Dag& dag, int shortest, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> nanoseconds(shortest, 3);
  std::vector<Seconds> lengths(dag.tasks.size());
  for (Seconds& length : lengths) length = nanoseconds(random) * ns;
  return lengths;
}

// Where all take some time, what a task waits for started an instant before it at the latest: then the order of all ranks is the
// order of each.
TEST(SerialReplay, IsThatOfAllRanksInTurn) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Dag dag = random_dag(seed);
    const std::vector<Seconds> length = random_lengths(dag, 1, seed);
    const Timeline timeline = played(dag, length);
    const std::optional<Seconds> last = SerialReplay(dag).last_end(timeline, nullptr);
    ASSERT_TRUE(last.has_value());
    EXPECT_NEAR(*last, played(dag, length, &timeline).last_end(), 1e-6 * ns) << "seed " << seed;
  }
}

// What takes no time may wait for what has a higher number and is of the same instant: several orders are as good.
TEST(SerialReplay, EndsWhereTasksTakeNoTime) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Dag dag = random_dag(seed);
    const Timeline timeline = played(dag, random_lengths(dag, 0, seed));
    const std::optional<Seconds> last = SerialReplay(dag).last_end(timeline, nullptr);
    ASSERT_TRUE(last.has_value());
    EXPECT_GE(*last, timeline.last_end() * (1 - 1e-12)) << "seed " << seed;
  }
}

// A chain gives way to what started while it ran, and goes on afterwards: the other rank waits for half of it.
TEST(SerialReplay, AChainGivesWay) {
  SmallDag small;
  const RankIndex rank = small.rank(), other = small.rank();
  const CommunicatorId pair = small.communicator(2, {});
  small.kernel(rank, 300);
  small.kernel(rank, 300);
  const TaskId before = small.kernel(other, 100), after = small.kernel(other, 100);
  const TaskId send = small.send(rank, pair, 8), receive = small.receive(other, pair, 8);
  small.depend(before, receive);
  small.depend(receive, after);
  const Dag dag = small.finish();
  ASSERT_EQ(send, 4U);
  const Timeline timeline{.start = {0, 300 * ns, 0, 250 * ns, 100 * ns, 100 * ns},
                          .end = {300 * ns, 600 * ns, 100 * ns, 350 * ns, 250 * ns, 250 * ns}};
  // Rank 0: 300, then 150 of the transfer, then 300. Rank 1 waits for the transfer: 300 + 150 + 100.
  EXPECT_NEAR(*SerialReplay(dag).last_end(timeline, nullptr), 750 * ns, 1e-6 * ns);
}

}  // namespace
}  // namespace tandem::sim::serial_replay_test
