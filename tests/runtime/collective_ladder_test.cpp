// The ladder of collectives that a calibration executes: who is in what, how many bytes, how often, and what its runs say.
#include "runtime/collective_ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "runtime/cuda/nccl_call.h"
#include "runtime/dag/check_dag.h"
#include "runtime/plan/arena.h"
#include "runtime/plan/issue_order.h"

namespace tandem::collective_ladder_test {
namespace {

using testing::ElementsAre;

constexpr Bytes KiB = 1024, MiB = 1024 * KiB;

MachineRanks machines_of(std::size_t machines, std::uint32_t each) {
  MachineRanks all(machines);
  for (std::uint32_t rank = 0; rank < machines * each; ++rank) all[rank / each].push_back(rank);
  return all;
}

/// Members and machines.
std::set<std::pair<int, int>> placements(const std::vector<MeasuredCollective>& collectives, OpKind op) {
  std::set<std::pair<int, int>> found;
  for (const MeasuredCollective& collective : collectives)
    if (collective.op == op) found.emplace(collective.members, collective.machines);
  return found;
}

TEST(RanksByMachine, KeepTheOrderOfTheWorld) {
  const std::vector<std::string> names{"b", "a", "b", "a", "c"};
  EXPECT_THAT(ranks_by_machine(names), ElementsAre(ElementsAre(0U, 2U), ElementsAre(1U, 3U), ElementsAre(4U)));
}

TEST(CollectivesWorthMeasuring, LieAsThoseOfTrainingStepsDo) {
  const auto of_one = collectives_worth_measuring(machines_of(1, 8), {.smallest = 4 * KiB, .largest = MiB, .factor = 4});
  EXPECT_EQ(placements(of_one, OpKind::all_reduce), (std::set<std::pair<int, int>>{{2, 1}, {4, 1}, {8, 1}}));
  EXPECT_EQ(placements(of_one, OpKind::send), (std::set<std::pair<int, int>>{{2, 1}}));
  constexpr std::size_t sizes = 5, operations = 4, groups = 3;
  EXPECT_EQ(of_one.size(), sizes * (operations * groups + 1));

  const auto of_three = collectives_worth_measuring(machines_of(3, 4), {.smallest = 4 * KiB, .largest = MiB, .factor = 4});
  EXPECT_EQ(placements(of_three, OpKind::all_to_all),
            (std::set<std::pair<int, int>>{{2, 1}, {4, 1}, {2, 2}, {4, 2}, {8, 2}, {3, 3}, {6, 3}, {12, 3}}));
  EXPECT_EQ(placements(of_three, OpKind::send), (std::set<std::pair<int, int>>{{2, 1}, {2, 2}}));
  for (const MeasuredCollective& collective : of_three) {
    EXPECT_EQ(collective.bytes % (16 * collective.members), 0);
    EXPECT_EQ(collective.timing.samples, 0);
  }
}

TEST(CollectivesWorthMeasuring, AreAsEvenAsTheMachinesAllow) {
  const MachineRanks uneven{{0, 1, 2, 3}, {4, 5}};
  EXPECT_EQ(placements(collectives_worth_measuring(uneven, {.smallest = MiB, .largest = MiB}), OpKind::all_gather),
            (std::set<std::pair<int, int>>{{2, 1}, {2, 2}, {4, 2}}));
  EXPECT_TRUE(collectives_worth_measuring(machines_of(1, 1), {.smallest = MiB, .largest = MiB}).empty());
  // 512 members have no part of 16 bytes each in 4 KiB.
  for (const MeasuredCollective& collective :
       collectives_worth_measuring(machines_of(64, 8), {.smallest = 4 * KiB, .largest = MiB}))
    EXPECT_TRUE(collective.members < 512 || collective.bytes >= 16 * KiB);
}

TEST(CollectiveLadder, HasARowOfEachAmongItsMembers) {
  const MachineRanks machines = machines_of(2, 4);
  const auto wanted = collectives_worth_measuring(machines, {.smallest = 64 * KiB, .largest = 64 * MiB, .factor = 32});
  const CollectiveLadder ladder = make_collective_ladder(wanted, machines, DType::bf16);
  EXPECT_EQ(first_flaw(ladder.dag), "");
  EXPECT_EQ(ladder.dag.ranks.size(), 8U);
  ASSERT_EQ(ladder.timed.size(), wanted.size());
  std::size_t tasks = 0, groups = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::size_t in_a_row = timed_in_a_row(wanted[i].bytes);
    ASSERT_EQ(ladder.timed[i].size(), in_a_row);
    const std::size_t with_barriers = (in_a_row + 2) * (wanted[i].op == OpKind::send ? 2 : 1);
    groups += with_barriers;
    tasks += with_barriers * static_cast<std::size_t>(wanted[i].members);
    for (const GroupId group : ladder.timed[i]) {
      EXPECT_EQ(ladder.dag.groups[group].bytes, wanted[i].bytes);
      std::set<std::uint32_t> members;
      for (const TaskId task : ladder.dag.members_of(group)) members.insert(ladder.dag.tasks[task].rank);
      std::set<std::uint32_t> expected;
      for (std::uint32_t m = 0; m < static_cast<std::uint32_t>(wanted[i].members); ++m) {
        const auto each = static_cast<std::uint32_t>(wanted[i].members / wanted[i].machines);
        expected.insert(m / each * 4 + m % each);
      }
      EXPECT_EQ(members, expected);
    }
  }
  EXPECT_EQ(ladder.dag.tasks.size(), tasks);
  EXPECT_EQ(ladder.dag.groups.size(), groups);
}

TEST(CollectiveLadder, HasRowsOfTwentyAndFewerOfWhatTakesLong) {
  EXPECT_EQ(timed_in_a_row(4 * KiB), 20U);
  EXPECT_EQ(timed_in_a_row(16 * MiB), 16U);
  EXPECT_EQ(timed_in_a_row(1024 * MiB), 4U);
}

TEST(CollectiveLadder, TakesTheMemoryOfItsLargest) {
  const MachineRanks machines = machines_of(1, 4);
  const std::vector<MeasuredCollective> wanted{
      {.op = OpKind::all_reduce, .members = 4, .bytes = MiB, .timing = {}},
      {.op = OpKind::all_gather, .members = 4, .bytes = 2 * MiB, .timing = {}},
      {.op = OpKind::all_to_all, .members = 2, .bytes = MiB, .timing = {}},
  };
  const CollectiveLadder ladder = make_collective_ladder(wanted, machines, DType::bf16);
  const ArenaPlan arena = plan_arena(ladder.dag, issue_order(ladder.dag), [](const Buffer& buffer) { return buffer.bytes(); });
  // What is gathered, and beside it what of a rank's other collectives takes most: all that a rank receives, or its part.
  EXPECT_THAT(arena.size, ElementsAre(3 * MiB, 3 * MiB, 2 * MiB + MiB / 2, 2 * MiB + MiB / 2));
}

TEST(CollectiveLadder, IsWhatNcclCanBeAsked) {
  const MachineRanks machines{{0, 2}, {1, 3}};
  const auto wanted = collectives_worth_measuring(machines, {.smallest = 4 * KiB, .largest = 4 * KiB});
  const CollectiveLadder ladder = make_collective_ladder(wanted, machines, DType::bf16);
  for (TaskId id = 0; id < ladder.dag.tasks.size(); ++id) {
    const NcclCall call = plan_call(ladder.dag, id);
    const auto members = ladder.dag.communicator_of(ladder.dag.tasks[id]).members.size();
    const bool by_part = call.function == NcclFunction::all_gather || call.function == NcclFunction::reduce_scatter ||
                         call.function == NcclFunction::all_to_all;
    EXPECT_EQ(call.count * 2 * (by_part ? members : 1), call.own_memory ? 2U : 4U * KiB);
  }
  std::set<std::vector<std::uint32_t>> members;
  for (const Communicator& communicator : ladder.dag.communicators) members.insert(communicator.members);
  EXPECT_EQ(members, (std::set<std::vector<std::uint32_t>>{{0, 2}, {0, 1}, {0, 2, 1, 3}}));
  EXPECT_EQ(ladder.dag.communicators.size(), 5U);  // a pair beside each group of two
}

TEST(CollectiveLadder, RefusesWhatIsNotToBeHad) {
  const auto refused = [](const MeasuredCollective& collective) {
    EXPECT_THROW(make_collective_ladder({&collective, 1}, machines_of(2, 4), DType::f32), std::logic_error);
  };
  refused({.op = OpKind::all_reduce, .members = 5, .bytes = 5 * KiB, .timing = {}});
  refused({.op = OpKind::all_reduce, .members = 6, .machines = 3, .bytes = 6 * KiB, .timing = {}});
  refused({.op = OpKind::all_reduce, .members = 1, .bytes = KiB, .timing = {}});
  refused({.op = OpKind::all_reduce, .members = 4, .bytes = 4 * KiB + 4, .timing = {}});
  refused({.op = OpKind::all_reduce, .members = 4, .bytes = 0, .timing = {}});
}

/// Every task of a rank begins when the one before it has ended, by the rank's own clock.
class Clocks {
 public:
  explicit Clocks(const Dag& dag) : timeline_{std::vector<Seconds>(dag.tasks.size()), std::vector<Seconds>(dag.tasks.size())} {
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) now_.push_back(1000.0 * rank);
  }
  void take(RankIndex rank, TaskId task, Seconds time) {
    timeline_.start[task] = now_[rank];
    timeline_.end[task] = now_[rank] += time;
  }
  const Timeline& timeline() const { return timeline_; }

 private:
  Timeline timeline_;
  std::vector<Seconds> now_;
};

TEST(LadderSamples, AreOfTheMemberThatWaitedForNobodyWhateverTheClocks) {
  const MachineRanks machines = machines_of(1, 4);
  const std::vector<MeasuredCollective> wanted{{.op = OpKind::all_reduce, .members = 4, .bytes = MiB, .timing = {}},
                                               {.op = OpKind::all_to_all, .members = 2, .bytes = MiB, .timing = {}}};
  const CollectiveLadder ladder = make_collective_ladder(wanted, machines, DType::bf16);
  Clocks clocks(ladder.dag);
  std::map<TaskId, std::size_t> place;  // of a timed one in its row
  for (const std::vector<GroupId>& row : ladder.timed)
    for (std::size_t i = 0; i < row.size(); ++i)
      for (const TaskId task : ladder.dag.members_of(row[i])) place[task] = i;
  for (TaskId id = 0; id < ladder.dag.tasks.size(); ++id) {
    const RankIndex rank = ladder.dag.tasks[id].rank;
    const bool is_timed = place.contains(id);
    const Seconds alone = ladder.dag.tasks[id].op == OpKind::all_reduce ? 3 : 2;
    // Of each, another member is last; the first of a row take longest.
    clocks.take(rank, id, !is_timed ? 50 : alone + (place[id] % 2 == rank % 2 ? 0 : 0.5));
  }
  const auto samples = samples_of(ladder, clocks.timeline());
  EXPECT_THAT(samples[0], testing::Each(testing::DoubleNear(3, 1e-9)));
  EXPECT_THAT(samples[1], testing::Each(testing::DoubleNear(2, 1e-9)));
  EXPECT_EQ(samples[0].size(), timed_in_a_row(MiB));
}

TEST(LadderSamples, OfATransferAreTheReceivers) {
  const MeasuredCollective wanted{.op = OpKind::send, .members = 2, .bytes = MiB, .timing = {}};
  const CollectiveLadder ladder = make_collective_ladder({&wanted, 1}, machines_of(1, 2), DType::bf16);
  Clocks clocks(ladder.dag);
  for (TaskId id = 0; id < ladder.dag.tasks.size(); ++id)
    clocks.take(ladder.dag.tasks[id].rank, id, ladder.dag.tasks[id].op == OpKind::receive ? 7 : 1);
  EXPECT_THAT(samples_of(ladder, clocks.timeline())[0], testing::Each(testing::DoubleNear(7, 1e-9)));
}

}  // namespace
}  // namespace tandem::collective_ladder_test
