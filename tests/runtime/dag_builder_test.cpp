#include "runtime/dag/dag_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/analysis/predecessors.h"
#include "tests/runtime/random_dag.h"

namespace tandem::dag_builder_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using TaskIds = std::vector<TaskId>;

/// One rank, whose kernels stand on whatever stream a test names, so that buffers alone order them.
class Builder {
 public:
  DagBuilder raw;
  RankIndex rank = raw.add_rank({});

  BufferId buffer(std::int64_t elements) { return raw.buffer(rank, BufferKind::activation, DType::f32, Shape(elements)); }
  BufferId view(BufferId of, std::int64_t offset, std::int64_t elements) { return raw.view(of, offset, Shape(elements)); }
  TaskId read(Stream stream, BufferId x) { return raw.kernel(OpKind::fill, {}, {.name = "r", .stream = stream}, {{x}}, {}); }
  TaskId write(Stream stream, BufferId x) { return raw.kernel(OpKind::fill, {}, {.name = "w", .stream = stream}, {}, {{x}}); }
  TaskId update(Stream stream, BufferId x) {
    return raw.kernel(OpKind::fill, {}, {.name = "u", .stream = stream}, {}, {}, {{x}});
  }
};

TaskIds before(const Dag& dag, TaskId id) {
  const Predecessors predecessors(dag);
  TaskIds tasks(predecessors.of(id).begin(), predecessors.of(id).end());
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

TEST(DagBuilder, AReaderWaitsForTheWriter) {
  Builder b;
  const BufferId x = b.buffer(4);
  const TaskId write = b.write(Stream::compute, x);
  const TaskId read = b.read(Stream::tp, x);
  EXPECT_THAT(before(b.raw.finish(), read), ElementsAre(write));
}

TEST(DagBuilder, AWriterWaitsForTheReadersAndTheWriter) {
  Builder b;
  const BufferId x = b.buffer(4);
  const TaskId first = b.write(Stream::compute, x);
  const TaskId reader = b.read(Stream::tp, x);
  const TaskId other_reader = b.read(Stream::dp, x);
  const TaskId second = b.write(Stream::ep, x);
  EXPECT_THAT(before(b.raw.finish(), second), ElementsAre(first, reader, other_reader));
}

TEST(DagBuilder, AnUpdateReadsAndWrites) {
  Builder b;
  const BufferId x = b.buffer(4);
  const TaskId write = b.write(Stream::compute, x);
  const TaskId update = b.update(Stream::tp, x);
  const TaskId read = b.read(Stream::dp, x);
  const Dag dag = b.raw.finish();
  EXPECT_THAT(before(dag, update), ElementsAre(write));
  EXPECT_THAT(before(dag, read), ElementsAre(update));
}

TEST(DagBuilder, ReadersDoNotWaitForEachOther) {
  Builder b;
  const BufferId x = b.buffer(4);
  b.read(Stream::compute, x);
  const TaskId second = b.read(Stream::tp, x);
  EXPECT_THAT(before(b.raw.finish(), second), IsEmpty());
}

TEST(DagBuilder, ATaskThatReadsWhatItWritesDoesNotWaitForItself) {
  Builder b;
  const BufferId x = b.buffer(4);
  const TaskId task = b.raw.kernel(OpKind::add, {}, {.name = "add"}, {{x, x}}, {{x}});
  EXPECT_THAT(before(b.raw.finish(), task), IsEmpty());
}

TEST(DagBuilder, ViewsThatDoNotOverlapAreToldApart) {
  Builder b;
  const BufferId x = b.buffer(10);
  const TaskId left = b.write(Stream::compute, b.view(x, 0, 5));
  const TaskId right = b.write(Stream::tp, b.view(x, 5, 5));
  const TaskId in_the_right = b.read(Stream::dp, b.view(x, 5, 1));
  const TaskId across = b.read(Stream::ep, b.view(x, 4, 2));
  const Dag dag = b.raw.finish();
  EXPECT_THAT(before(dag, right), IsEmpty());
  EXPECT_THAT(before(dag, in_the_right), ElementsAre(right));
  EXPECT_THAT(before(dag, across), ElementsAre(left, right));
}

TEST(DagBuilder, AViewOfAViewCountsFromTheBase) {
  Builder b;
  const BufferId x = b.buffer(10);
  const BufferId inner = b.view(b.view(x, 3, 6), 2, 4);  // elements 5 to 8
  EXPECT_EQ(b.raw.dag().buffers[inner].base, x);
  EXPECT_EQ(b.raw.dag().buffers[inner].offset, 5);
  const TaskId write = b.write(Stream::compute, b.view(x, 8, 1));
  const TaskId read = b.read(Stream::tp, inner);
  EXPECT_THAT(before(b.raw.finish(), read), ElementsAre(write));
}

TEST(DagBuilder, APartlyOverwrittenWriteStillCounts) {
  Builder b;
  const BufferId x = b.buffer(10);
  const TaskId whole = b.write(Stream::compute, x);
  b.write(Stream::tp, b.view(x, 0, 5));
  const TaskId read = b.read(Stream::dp, b.view(x, 5, 5));
  EXPECT_THAT(before(b.raw.finish(), read), ElementsAre(whole));
}

TEST(DagBuilder, AnAllGatherInPlaceWaitsForAllUsersOfTheWhole) {
  Builder b;
  const BufferId whole = b.buffer(8);
  const BufferId shard = b.view(whole, 4, 4);
  const CommunicatorId dp = b.raw.add_communicator({.name = "dp", .axis = Axis::dp, .members = {0, 1}, .layout = {}});
  const TaskId optimizer = b.write(Stream::compute, shard);
  const TaskId reader = b.read(Stream::tp, b.view(whole, 0, 2));  // of the other rank's shard
  const TaskId gather = b.raw.collective(OpKind::all_gather, dp, {.name = "gather", .stream = Stream::dp}, shard, whole);
  const TaskId own = b.read(Stream::cp, shard);
  const TaskId other = b.read(Stream::ep, b.view(whole, 0, 1));
  const Dag dag = b.raw.finish();
  EXPECT_THAT(before(dag, gather), ElementsAre(optimizer, reader));
  EXPECT_THAT(before(dag, own), ElementsAre(gather));
  EXPECT_THAT(before(dag, other), ElementsAre(gather));
  EXPECT_EQ(dag.groups[0].bytes, 8 * 4);  // the whole of fp32
}

TEST(DagBuilder, AStreamRunsInTheOrderLowered) {
  Builder b;
  const TaskId first = b.write(Stream::compute, b.buffer(1));
  const TaskId aside = b.write(Stream::tp, b.buffer(1));
  const TaskId second = b.write(Stream::compute, b.buffer(1));
  EXPECT_EQ(b.raw.last_on(b.rank, Stream::compute), second);
  EXPECT_EQ(b.raw.last_on(b.rank, Stream::tp), aside);
  EXPECT_EQ(b.raw.last_on(b.rank, Stream::dp), no_id);
  const Dag dag = b.raw.finish();
  EXPECT_THAT(before(dag, aside), IsEmpty());
  EXPECT_THAT(before(dag, second), ElementsAre(first));
}

TEST(DagBuilder, StreamsOfDifferentRanksAreIndependent) {
  DagBuilder builder;
  for (std::uint32_t r = 0; r < 2; ++r) {
    const RankIndex rank = builder.add_rank({.world_rank = r});
    const BufferId x = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(1));
    builder.kernel(OpKind::fill, {}, {.name = "w"}, {}, {{x}});
  }
  EXPECT_THAT(before(builder.finish(), 1), IsEmpty());
}

TEST(DagBuilder, AWriterWaitsForTheLastReaderOfAStreamAlone) {
  Builder b;
  const BufferId x = b.buffer(4);
  b.read(Stream::compute, x);
  b.read(Stream::compute, b.view(x, 0, 2));
  const TaskId last_of_the_whole = b.read(Stream::compute, x);
  const TaskId last_of_a_part = b.read(Stream::compute, b.view(x, 0, 2));
  const TaskId write = b.write(Stream::tp, x);
  EXPECT_THAT(before(b.raw.finish(), write), ElementsAre(last_of_the_whole, last_of_a_part));
}

TEST(DagBuilder, DependAddsAnEdge) {
  Builder b;
  const TaskId first = b.write(Stream::compute, b.buffer(1));
  const TaskId second = b.write(Stream::tp, b.buffer(1));
  b.raw.depend(no_id, second);
  b.raw.depend(first, second);
  EXPECT_THAT(before(b.raw.finish(), second), ElementsAre(first));
}

bool conflict(const Dag& dag, TaskId a, TaskId b) {
  for (const Operand& x : dag.operands_of(a)) {
    for (const Operand& y : dag.operands_of(b)) {
      const Buffer& p = dag.buffers[x.buffer];
      const Buffer& q = dag.buffers[y.buffer];
      if (p.base != q.base || (x.access() == Access::read && y.access() == Access::read)) continue;
      if (p.offset < q.offset + q.shape.elements() && q.offset < p.offset + p.shape.elements()) return true;
    }
  }
  return false;
}

// The definition itself: a path exists wherever two tasks conflict or share a stream, and no edge stands without such a reason.
TEST(DagBuilder, OrdersExactlyWhatConflictsOrSharesAStream) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    const Dag dag = random_dag(seed);
    const Predecessors predecessors(dag);
    std::vector<std::vector<bool>> after(dag.tasks.size(), std::vector<bool>(dag.tasks.size(), false));
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      for (const TaskId direct : predecessors.of(id)) {
        ASSERT_LT(direct, id);
        after[id][direct] = true;
        for (TaskId earlier = 0; earlier < direct; ++earlier) after[id][earlier] = after[id][earlier] || after[direct][earlier];
      }
      for (TaskId earlier = 0; earlier < id; ++earlier) {
        const Task& a = dag.tasks[earlier];
        const Task& b = dag.tasks[id];
        const bool ordered = (a.rank == b.rank && a.stream == b.stream) || conflict(dag, earlier, id);
        if (ordered) {
          EXPECT_TRUE(after[id][earlier]) << earlier << " -> " << id << ", seed " << seed;
        }
        const bool edge = std::ranges::count(predecessors.of(id), earlier) > 0;
        if (edge) {
          EXPECT_TRUE(ordered) << earlier << " -> " << id << ", seed " << seed;
        }
      }
    }
  }
}

/// Ranks that call collectives on buffers of their own.
class Communicating {
 public:
  DagBuilder raw;

  explicit Communicating(std::uint32_t ranks) {
    for (std::uint32_t r = 0; r < ranks; ++r) raw.add_rank({.world_rank = r});
  }
  CommunicatorId communicator(std::vector<std::uint32_t> members) {
    return raw.add_communicator({.name = "the group", .axis = Axis::pp, .members = std::move(members), .layout = {}});
  }
  TaskId all_reduce(RankIndex rank, CommunicatorId communicator, std::int64_t elements) {
    const BufferId x = buffer(rank, elements);
    return raw.collective(OpKind::all_reduce, communicator, {.name = "reduce", .stream = Stream::tp}, x, x);
  }
  TaskId send(RankIndex rank, CommunicatorId pair, std::int64_t elements) {
    return raw.collective(OpKind::send, pair, {.name = "send", .stream = Stream::pp_send_forward}, buffer(rank, elements), no_id);
  }
  TaskId receive(RankIndex rank, CommunicatorId pair, std::int64_t elements) {
    const TaskLabels labels{.name = "receive", .stream = Stream::pp_receive_forward};
    return raw.collective(OpKind::receive, pair, labels, no_id, buffer(rank, elements));
  }
  BufferId buffer(RankIndex rank, std::int64_t elements) {
    return raw.buffer(rank, BufferKind::communication, DType::bf16, Shape(elements));
  }
};

TaskIds unit(const Dag& dag, TaskId id) { return {dag.unit_of(id).begin(), dag.unit_of(id).end()}; }

TEST(DagBuilder, TheNthCollectivesOfAllMembersMeet) {
  Communicating c(3);
  const CommunicatorId all = c.communicator({0, 1, 2});
  const CommunicatorId two = c.communicator({0, 2});
  std::vector<TaskIds> calls(3);
  for (const RankIndex rank : {2U, 0U, 1U}) {  // lowered in any order of ranks
    calls[0].push_back(c.all_reduce(rank, all, 5));
    if (rank != 1) calls[1].push_back(c.all_reduce(rank, two, 6));
    calls[2].push_back(c.all_reduce(rank, all, 7));
  }
  const Dag dag = c.raw.finish();
  EXPECT_EQ(dag.groups.size(), 3);
  for (std::size_t call = 0; call < 3; ++call) {
    for (const TaskId id : calls[call]) {
      EXPECT_EQ(unit(dag, id), calls[call]);
      EXPECT_EQ(dag.groups[dag.tasks[id].group].bytes, static_cast<Bytes>(2 * (5 + call)));  // bf16
    }
  }
}

TEST(DagBuilder, ReduceScatterCountsTheWholeAndGatherToo) {
  Communicating c(1);
  const CommunicatorId group = c.communicator({0, 1});
  c.raw.collective(OpKind::reduce_scatter, group, {.name = "scatter"}, c.buffer(0, 8), c.buffer(0, 4));
  c.raw.collective(OpKind::all_gather, group, {.name = "gather"}, c.buffer(0, 5), c.buffer(0, 10));
  const Dag dag = c.raw.finish();
  EXPECT_EQ(dag.groups[0].bytes, 2 * 8);
  EXPECT_EQ(dag.groups[1].bytes, 2 * 10);
}

TEST(DagBuilder, TheNthSendMeetsTheNthReceive) {
  Communicating c(2);
  const CommunicatorId pair = c.communicator({0, 1});
  const TaskIds sends{c.send(0, pair, 3), c.send(0, pair, 4)};
  const TaskIds receives{c.receive(1, pair, 3), c.receive(1, pair, 4)};
  const Dag dag = c.raw.finish();
  for (std::size_t n = 0; n < 2; ++n) EXPECT_THAT(unit(dag, sends[n]), ElementsAre(sends[n], receives[n]));
}

// In a folded DAG one rank may stand for the source and for the destination of a pair.
TEST(DagBuilder, ARankPairedWithItselfMeetsItself) {
  Communicating c(1);
  const CommunicatorId pair = c.communicator({0, 1});
  const TaskId first_receive = c.receive(0, pair, 3);
  const TaskId first_send = c.send(0, pair, 3);
  const TaskId second_send = c.send(0, pair, 4);
  const TaskId second_receive = c.receive(0, pair, 4);
  const Dag dag = c.raw.finish();
  EXPECT_THAT(unit(dag, first_send), ElementsAre(first_receive, first_send));
  EXPECT_THAT(unit(dag, second_receive), ElementsAre(second_send, second_receive));
}

TEST(DagBuilder, RefusesMembersThatDisagreeOnTheSize) {
  Communicating c(2);
  const CommunicatorId group = c.communicator({0, 1});
  c.all_reduce(0, group, 8);
  EXPECT_THROW(c.all_reduce(1, group, 9), std::logic_error);
}

TEST(DagBuilder, RefusesACollectiveThatMissesAMember) {
  Communicating c(2);
  const CommunicatorId group = c.communicator({0, 1});
  for (const RankIndex rank : {0U, 1U, 0U}) c.all_reduce(rank, group, 8);
  EXPECT_THROW(c.raw.finish(), std::logic_error);
}

TEST(DagBuilder, RefusesASendWithoutAReceive) {
  Communicating c(2);
  const CommunicatorId pair = c.communicator({0, 1});
  c.send(0, pair, 1);
  c.receive(1, pair, 1);
  c.send(0, pair, 1);
  EXPECT_THROW(c.raw.finish(), std::logic_error);
}

TEST(DagBuilder, RefusesAnotherRanksBuffer) {
  Communicating c(2);
  const BufferId mine = c.buffer(0, 1);
  const BufferId theirs = c.buffer(1, 1);
  EXPECT_THROW(c.raw.kernel(OpKind::add, {}, {.name = "add"}, {{mine, theirs}}, {{mine}}), std::logic_error);
}

TEST(DagBuilder, ATaskLikeAnotherWaitsForWhatIsKnownAndWhatItDoesToTheRest) {
  Builder b;
  const BufferId x = b.buffer(4), weight = b.buffer(4);
  const TaskId cast = b.write(Stream::dp, weight);
  const TaskId write = b.raw.kernel(OpKind::fill, {}, {.name = "w", .stream = Stream::compute}, {{weight}}, {{x}});
  const TaskId read = b.read(Stream::tp, x);
  const BufferId y = b.raw.buffer_like(x, 2);
  constexpr std::uint32_t first = 1, second = 2;
  const TaskId write_again = b.raw.task_like(write, 1, {{weight, y}}, {.waits = {}, .operands = second});
  const TaskId read_again = b.raw.task_like(read, 1, {{y}}, {.waits = {{write_again}}, .operands = first});
  const Dag dag = b.raw.finish();
  EXPECT_THAT(before(dag, write_again), ElementsAre(cast, write));
  EXPECT_THAT(before(dag, read_again), ElementsAre(read, write_again));
  EXPECT_EQ(dag.tasks[read_again].micro_batch, 1);
}

TEST(DagBuilder, RefusesToOrderByABufferLikeAnother) {
  Builder b;
  const BufferId x = b.buffer(4);
  const BufferId y = b.raw.buffer_like(x, 1), view = b.raw.buffer_like(x, y), of_x = b.raw.buffer_like(x, x);
  for (const BufferId untracked : {y, view}) EXPECT_THROW(b.read(Stream::tp, untracked), UntrackedBuffer);
  EXPECT_NO_THROW(b.read(Stream::tp, of_x));
}

TEST(DagBuilder, RefusesAViewThatLeavesItsBuffer) {
  Builder b;
  const BufferId x = b.buffer(10);
  EXPECT_THROW(b.view(x, 8, 3), std::logic_error);
  EXPECT_THROW(b.view(x, -1, 3), std::logic_error);
  EXPECT_THROW(b.view(b.view(x, 0, 4), 2, 3), std::logic_error);  // inside the base, outside the view
  EXPECT_NO_THROW(b.view(x, 7, 3));
}

TEST(DagBuilder, KeepsEqualNamesAndAttributesOnce) {
  Builder b;
  for (const float factor : {1.0F, 2.0F, 1.0F}) {
    b.raw.kernel(OpKind::fill, ScaleAttributes{factor}, {.name = "fill"}, {}, {{b.buffer(1)}});
  }
  const Dag dag = b.raw.finish();
  EXPECT_THAT(dag.names, ElementsAre("fill"));
  EXPECT_EQ(dag.attributes.size(), 2);
  EXPECT_EQ(dag.tasks[0].attributes, dag.tasks[2].attributes);
  EXPECT_EQ(std::get<ScaleAttributes>(dag.attributes[dag.tasks[1].attributes]).factor, 2.0F);
}

TEST(DagBuilder, CollectivesWithARootCountTheWholeOnEveryMember) {
  DagBuilder builder;
  const CommunicatorId group = builder.add_communicator({.name = "group", .members = {0, 1}, .layout = {}});
  for (std::uint32_t r = 0; r < 2; ++r) {
    const RankIndex rank = builder.add_rank({.world_rank = r});
    const BufferId whole = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(8));
    const BufferId part = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(4));
    builder.rooted_collective(OpKind::broadcast, group, {.name = "broadcast"}, 1, whole);
    builder.rooted_collective(OpKind::gather, group, {.name = "gather"}, 1, r == 1 ? whole : no_id, part);
    builder.rooted_collective(OpKind::scatter, group, {.name = "scatter"}, 1, r == 1 ? whole : no_id, part);
    builder.barrier(rank, group, {.name = "barrier"});
    EXPECT_THROW(builder.rooted_collective(OpKind::gather, group, {.name = "gather"}, 1, r == 0 ? whole : no_id, part),
                 std::logic_error);
  }
  const Dag dag = builder.finish();
  ASSERT_EQ(dag.groups.size(), 4U);
  for (const GroupId id : {0U, 1U, 2U}) EXPECT_EQ(dag.groups[id].bytes, 32);
  EXPECT_EQ(dag.groups[3].bytes, 0);
  EXPECT_TRUE(dag.operands_of(dag.members_of(3).front()).empty());
  // Who sends reads, who receives writes: the scatter writes the part that the gather read before.
  EXPECT_EQ(dag.operands_of(dag.members_of(0)[0]).front().access(), Access::write);
  EXPECT_EQ(dag.operands_of(dag.members_of(0)[1]).front().access(), Access::read);
}

}  // namespace
}  // namespace tandem::dag_builder_test
