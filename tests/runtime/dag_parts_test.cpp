// What several builders make, each a part, is the DAG that one makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/dag/dag_builder.h"
#include "tests/runtime/edges.h"

namespace tandem::dag_parts_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// A seeded random step. All ranks have the same collectives and transfers, and between them kernels of their own, with names,
/// attributes, types and devices of which few are the first rank's.
class Step {
 public:
  explicit Step(std::uint32_t seed) : seed_(seed) {
    std::mt19937 random(seed);
    ranks_ = 1 + random() % 5;
    for (std::size_t i = 0; i < 12; ++i) {
      const auto communicator = static_cast<CommunicatorId>(random() % 3);
      calls_.push_back({.communicator = communicator, .elements = 1 + static_cast<std::int64_t>(random() % 3)});
    }
  }

  std::size_t ranks() const { return ranks_; }

  DagBuilder whole() const {
    DagBuilder builder;
    builder.dag().info.scenario = std::to_string(seed_);
    std::vector<std::uint32_t> members;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      builder.add_rank({.world_rank = rank, .device = rank % 2});
      members.push_back(rank);
    }
    for (const char* name : {"a", "b", "pair"}) builder.add_communicator({.name = name, .members = members, .layout = {}});
    return builder;
  }

  void add(DagBuilder& builder, RankIndex rank) const {
    std::mt19937 random(seed_ * 31 + rank);
    std::vector<BufferId> buffers;
    const auto buffer = [&] {
      if (buffers.size() < 3 || random() % 4 == 0) {
        constexpr std::array types{DType::f32, DType::bf16};
        buffers.push_back(builder.buffer(rank, BufferKind::activation, types[random() % 2], Shape(random() % 2 == 0 ? 8 : 16)));
        builder.dag().inputs.push_back({.buffer = buffers.back(), .first_sequence = rank});
      }
      const BufferId some = buffers[random() % buffers.size()];
      if (random() % 2 == 0) return some;
      const BufferId view = builder.view(some, static_cast<std::int64_t>(random() % 4), Shape(4));
      builder.dag().shards.push_back({.buffer = view, .tensor = std::to_string(rank)});
      return view;
    };
    const auto kernel = [&] {
      const BufferId from = buffer(), to = buffer();
      const std::string name = "kernel " + std::to_string(random() % (2 + rank));
      constexpr std::array streams{Stream::compute, Stream::dp, Stream::host};
      return builder.kernel(OpKind::scale, ScaleAttributes{.factor = static_cast<float>(random() % (2 + rank))},
                            {.name = name, .stream = streams[random() % 3]}, {{from}}, {{to}});
    };
    for (const Call& call : calls_) {
      const TaskId first = kernel();
      for (std::size_t i = random() % 6; i > 0; --i) kernel();
      builder.depend(first, kernel());
      const BufferId data = builder.buffer(rank, BufferKind::communication, DType::f32, Shape(call.elements));
      if (call.communicator < 2) {
        builder.collective(OpKind::all_reduce, call.communicator, {.name = "sum", .stream = Stream::dp}, data, data);
      } else {  // each rank to itself and all others
        builder.collective(OpKind::receive, 2, {.name = "receive", .stream = Stream::cp_receive}, no_id, data);
        builder.collective(OpKind::send, 2, {.name = "send", .stream = Stream::cp}, data, no_id);
      }
    }
    kernel();  // which the first of the next rank may run, too
    builder.end_rank();
  }

 private:
  struct Call {
    CommunicatorId communicator;
    std::int64_t elements;
  };
  std::uint32_t seed_;
  std::size_t ranks_ = 0;
  std::vector<Call> calls_;
};

auto fields(const Task& t) {
  return std::tuple(t.op, t.phase, t.axis, t.stream, t.rank, t.first_operand, t.attributes, t.group, t.micro_batch, t.layer,
                    t.chunk, t.name, t.kernel);
}
auto fields(const Buffer& b) {
  return std::tuple(b.shape.dims, b.shape.rank, b.dtype, b.scaling, b.kind, b.rank, b.base, b.offset);
}
auto fields(const Operand& o) { return std::tuple(static_cast<BufferId>(o.buffer), o.access()); }
auto fields(const Group& g) { return std::tuple(g.communicator, g.bytes); }
auto fields(const ParameterShard& s) { return std::tuple(s.buffer, s.tensor); }
auto fields(const InputShard& i) { return std::tuple(i.buffer, i.first_sequence); }

template <typename Items>
void expect_same(const Items& a, const Items& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::uint32_t i = 0; i < a.size(); ++i) ASSERT_TRUE(fields(a[i]) == fields(b[i])) << i;
}

void expect_same(const Dag& a, const Dag& b) {
  EXPECT_EQ(a.info.scenario, b.info.scenario);
  EXPECT_EQ(a.ranks.size(), b.ranks.size());
  EXPECT_EQ(a.communicators.size(), b.communicators.size());
  expect_same(a.tasks, b.tasks);
  expect_same(a.buffers, b.buffers);
  expect_same(a.operands, b.operands);
  expect_same(a.groups, b.groups);
  expect_same(a.shards, b.shards);
  expect_same(a.inputs, b.inputs);
  EXPECT_EQ(a.names, b.names);
  EXPECT_TRUE(a.attributes == b.attributes);
  EXPECT_EQ(a.group_begin, b.group_begin);
  EXPECT_EQ(a.group_tasks, b.group_tasks);
  EXPECT_EQ(edges_of(a), edges_of(b));
  EXPECT_EQ(a.first_of_kernel, b.first_of_kernel);
}

Dag by_one_builder(const Step& step) {
  DagBuilder builder = step.whole();
  for (RankIndex rank = 0; rank < step.ranks(); ++rank) step.add(builder, rank);
  return builder.finish();
}

TEST(DagParts, MakeTheDagOfOneBuilder) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const Step step(seed);
    DagBuilder whole = step.whole();
    // Two parts are filled before the first is appended, and used again and again.
    std::array parts{DagBuilder::part_of(whole), DagBuilder::part_of(whole)};
    for (RankIndex rank = 0; rank < step.ranks(); rank += 2) {
      for (RankIndex i = 0; i < 2 && rank + i < step.ranks(); ++i) step.add(parts[i], rank + i);
      for (DagBuilder& part : parts) whole.append(part);
      if (rank == 0) whole.reserve_for(step.ranks(), whole);
    }
    expect_same(by_one_builder(step), whole.finish());
    if (HasFailure()) return;
  }
}

TEST(DagParts, HaveRoomForMoreLikeOneAndMoveNothingWhereThereIsEnough) {
  const Step step(1);
  DagBuilder whole = step.whole();
  DagBuilder part = DagBuilder::part_of(whole);
  step.add(part, 0);
  const std::size_t of_one = part.dag().tasks.size();
  whole.reserve_for(5, part);
  const std::size_t room = whole.dag().tasks.capacity();
  EXPECT_GE(room, 5 * of_one);
  const Tasks::Entry* const place = whole.dag().tasks.data();
  whole.reserve_for(4, part);
  whole.append(part);
  EXPECT_EQ(whole.dag().tasks.capacity(), room);
  EXPECT_EQ(whole.dag().tasks.data(), place);
}

TEST(DagParts, OfSeveralRanksAndBesideRanksThatWereAddedAtOnce) {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    const Step step(seed);
    DagBuilder whole = step.whole();
    DagBuilder part = DagBuilder::part_of(whole);
    for (RankIndex rank = 0; rank < step.ranks(); ++rank) {
      if (rank == 1 || rank == 2) {
        step.add(part, rank);
        continue;
      }
      whole.append(part);
      step.add(whole, rank);
    }
    whole.append(part);
    expect_same(by_one_builder(step), whole.finish());
    if (HasFailure()) return;
  }
}

/// Ranks of one program: pairs of them have a communicator, and each rank its own slice of a weight.
class AlikeRanks {
 public:
  static constexpr RankIndex ranks = 6;

  static DagBuilder whole() {
    DagBuilder builder;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) builder.add_rank({.world_rank = rank});
    for (std::uint32_t rank = 0; rank < ranks; rank += 2)
      builder.add_communicator({.name = "pair", .members = {rank, rank + 1}, .layout = {}});
    return builder;
  }
  static CommunicatorId pair_of(RankIndex rank) { return rank / 2; }
  static BufferId declare(DagBuilder& builder, RankIndex rank) {
    const BufferId weight = builder.buffer(rank, BufferKind::parameter, DType::f32, Shape(ranks));
    const BufferId slice = builder.view(weight, rank, Shape(1));
    builder.dag().shards.push_back({.buffer = slice, .tensor = std::to_string(rank)});
    return slice;
  }
  static void add(DagBuilder& builder, RankIndex rank) {
    const BufferId slice = declare(builder, rank);
    for (std::int32_t i = 0; i < 3; ++i) {
      const BufferId data = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(1));
      builder.kernel(OpKind::scale, ScaleAttributes{.factor = 2}, {.name = "scale", .micro_batch = i}, {{slice}}, {{data}});
      builder.collective(OpKind::all_reduce, pair_of(rank), {.name = "sum", .stream = Stream::tp, .micro_batch = i}, data, data);
    }
    builder.end_rank();
  }
};

TEST(DagParts, AreKeptAndAppendedAsOtherRanks) {
  DagBuilder one = AlikeRanks::whole(), whole = AlikeRanks::whole();
  DagBuilder part = DagBuilder::part_of(whole);
  AlikeRanks::add(part, 0);
  whole.append_and_keep(part);
  for (RankIndex rank = 1; rank < AlikeRanks::ranks; ++rank) {
    DagBuilder declared = DagBuilder::part_of(whole);
    AlikeRanks::declare(declared, rank);
    whole.append_as(part, {.rank = rank, .communicator = {AlikeRanks::pair_of(rank)}, .declared = &declared});
  }
  for (RankIndex rank = 0; rank < AlikeRanks::ranks; ++rank) AlikeRanks::add(one, rank);
  expect_same(one.finish(), whole.finish());
}

TEST(DagParts, NeedNoEndsOfRanksToFindTheirEdges) {
  // Here nothing is said of ranks' ends: all edges are found at the end, over all ranks.
  DagBuilder builder;
  std::vector<TaskId> tasks;
  for (std::uint32_t rank = 0; rank < 2; ++rank) builder.add_rank({.world_rank = rank});
  for (int i = 0; i < 3; ++i) {
    for (RankIndex rank = 0; rank < 2; ++rank) {
      const BufferId x = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(1));
      tasks.push_back(builder.kernel(OpKind::fill, {}, {.name = "w"}, {}, {{x}}));
    }
  }
  const std::vector<TaskGraph::Edge> expected{{0, 2}, {1, 3}, {2, 4}, {3, 5}};
  EXPECT_EQ(edges_of(builder.finish()), expected);
}

class TwoRanks : public testing::Test {
 protected:
  TwoRanks() {
    for (std::uint32_t rank = 0; rank < 2; ++rank) whole_.add_rank({.world_rank = rank});
    pair_ = whole_.add_communicator({.name = "pair", .members = {0, 1}, .layout = {}});
    part_ = DagBuilder::part_of(whole_);
  }

  BufferId all_reduce(DagBuilder& builder, RankIndex rank, std::int64_t elements) {
    const BufferId data = builder.buffer(rank, BufferKind::communication, DType::f32, Shape(elements));
    builder.collective(OpKind::all_reduce, pair_, {.name = "sum"}, data, data);
    return data;
  }

  DagBuilder whole_, part_;
  CommunicatorId pair_ = 0;
};

TEST_F(TwoRanks, DisagreeOnTheSizeOfACollectiveWhenTheSecondIsAppended) {
  all_reduce(whole_, 0, 8);
  all_reduce(part_, 1, 9);
  part_.end_rank();
  EXPECT_THAT([&] { whole_.append(part_); },
              ThrowsMessage<std::logic_error>(HasSubstr("members of 'pair' disagree on the size")));
}

TEST_F(TwoRanks, OfWhichOneCallsMoreOftenAreRefusedAtTheEnd) {
  all_reduce(whole_, 0, 8);
  for (int i = 0; i < 2; ++i) all_reduce(part_, 1, 8);
  part_.end_rank();
  whole_.append(part_);
  EXPECT_THAT([&] { whole_.finish(); }, ThrowsMessage<std::logic_error>(HasSubstr("has 1 members, another has 2")));
}

TEST_F(TwoRanks, AreNotTouchedAnyMoreOnceComplete) {
  const BufferId data = all_reduce(whole_, 0, 8);
  const TaskId last = whole_.last_on(0, Stream::compute);
  whole_.end_rank();
  EXPECT_THROW(whole_.kernel(OpKind::fill, {}, {.name = "w"}, {}, {{data}}), std::logic_error);
  all_reduce(whole_, 1, 8);
  whole_.depend(last, last + 1);
  EXPECT_THROW(whole_.finish(), std::logic_error);
}

TEST_F(TwoRanks, TakeNoPartOfAnotherDag) {
  DagBuilder other;
  EXPECT_THROW(other.append(part_), std::logic_error);
}

}  // namespace
}  // namespace tandem::dag_parts_test
