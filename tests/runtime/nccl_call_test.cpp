#include "runtime/cuda/nccl_call.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "runtime/dag/dag_builder.h"
#include "tests/runtime/nccl_reference.h"

namespace tandem::nccl_call_test {
namespace {

/// One collective of `members` ranks, which stand in the communicator in another order than in the world.
class OneCollective {
 public:
  explicit OneCollective(std::uint32_t members, DType type = DType::f32) : type_(type) {
    std::vector<std::uint32_t> ring(members);
    std::iota(ring.begin(), ring.end(), 0U);
    std::ranges::shuffle(ring, std::mt19937(members));
    communicator_ = builder_.add_communicator({.name = "ring", .members = ring, .layout = {}});
    for (std::uint32_t world_rank = 0; world_rank < members; ++world_rank) builder_.add_rank({.world_rank = world_rank});
    for (const std::uint32_t world_rank : ring) places_.push_back(world_rank);
  }

  BufferId buffer(RankIndex rank, std::int64_t elements) {
    return builder_.buffer(rank, BufferKind::activation, type_, Shape(elements));
  }
  std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }

  /// all_gather and reduce_scatter, the shard in its place of the whole or apart.
  Dag sharded(OpKind op, std::int64_t shard, bool in_place, Reduction reduction = Reduction::sum) {
    for (std::int64_t place = 0; place < size(); ++place) {
      const RankIndex rank = places_[static_cast<std::size_t>(place)];
      const BufferId whole = buffer(rank, shard * size());
      const BufferId own = in_place ? builder_.view(whole, place * shard, Shape(shard)) : buffer(rank, shard);
      const bool gathers = op == OpKind::all_gather;
      builder_.collective(op, communicator_, {.name = "x"}, gathers ? own : whole, gathers ? whole : own, reduction);
    }
    return builder_.finish();
  }

  Dag all_reduce(std::int64_t elements, Reduction reduction) {
    for (const RankIndex rank : places_) {
      const BufferId whole = buffer(rank, elements);
      builder_.collective(OpKind::all_reduce, communicator_, {.name = "x"}, whole, whole, reduction);
    }
    return builder_.finish();
  }

  Dag all_to_all(std::int64_t piece) {
    for (const RankIndex rank : places_)
      builder_.collective(OpKind::all_to_all, communicator_, {.name = "x"}, buffer(rank, piece * size()),
                          buffer(rank, piece * size()));
    return builder_.finish();
  }

  Dag rooted(OpKind op, std::int64_t elements, std::uint32_t root, bool in_place, Reduction reduction = Reduction::sum) {
    const bool partial = op == OpKind::gather || op == OpKind::scatter;
    for (std::uint32_t place = 0; place < places_.size(); ++place) {
      const RankIndex rank = places_[place];
      BufferId whole = no_id, part = no_id;
      if (!partial || place == root) whole = buffer(rank, elements * (partial ? size() : 1));
      if (partial) {
        const bool inside = in_place && place == root;
        part = inside ? builder_.view(whole, place * elements, Shape(elements)) : buffer(rank, elements);
      }
      builder_.rooted_collective(op, communicator_, {.name = "x"}, root, whole, part, reduction);
    }
    return builder_.finish();
  }

  Dag transfer(std::int64_t elements) {
    builder_.collective(OpKind::send, communicator_, {.name = "x"}, buffer(places_[0], elements), no_id);
    builder_.collective(OpKind::receive, communicator_, {.name = "x"}, no_id, buffer(places_[1], elements));
    return builder_.finish();
  }

  Dag barrier() {
    for (const RankIndex rank : places_) builder_.barrier(rank, communicator_, {.name = "x"});
    return builder_.finish();
  }

 private:
  DType type_;
  DagBuilder builder_;
  CommunicatorId communicator_ = 0;
  std::vector<RankIndex> places_;  ///< of the members in the communicator's order
};

class NcclCalls : public testing::TestWithParam<std::uint32_t> {
 protected:
  std::uint32_t members() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Members, NcclCalls, testing::Range(2U, 8U));

constexpr std::array reductions{Reduction::sum, Reduction::max, Reduction::mean};

TEST_P(NcclCalls, DoAsTheHostsCollectives) {
  expect_calls_do_as_the_host(OneCollective(members()).all_to_all(3), 0);
  for (const bool in_place : {false, true})
    expect_calls_do_as_the_host(OneCollective(members()).sharded(OpKind::all_gather, 5, in_place), 0);
  for (const Reduction reduction : reductions) {
    expect_calls_do_as_the_host(OneCollective(members()).all_reduce(7, reduction), 0);
    for (const bool in_place : {false, true})
      expect_calls_do_as_the_host(OneCollective(members()).sharded(OpKind::reduce_scatter, 5, in_place, reduction), 0);
  }
}

TEST_P(NcclCalls, DoAsTheHostsCollectivesFromEveryRoot) {
  for (std::uint32_t root = 0; root < members(); ++root) {
    SCOPED_TRACE(root);
    expect_calls_do_as_the_host(OneCollective(members()).rooted(OpKind::broadcast, 7, root, false), 0);
    for (const Reduction reduction : reductions)
      expect_calls_do_as_the_host(OneCollective(members()).rooted(OpKind::reduce, 7, root, false, reduction), 0);
    for (const bool in_place : {false, true}) {
      expect_calls_do_as_the_host(OneCollective(members()).rooted(OpKind::gather, 3, root, in_place), 0);
      expect_calls_do_as_the_host(OneCollective(members()).rooted(OpKind::scatter, 3, root, in_place), 0);
    }
  }
}

TEST(NcclCall, TransferDoesAsTheHosts) { expect_calls_do_as_the_host(OneCollective(2).transfer(9), 0); }

TEST(NcclCall, InPlaceIsWhereNcclLooksForIt) {
  const Dag dag = OneCollective(4).sharded(OpKind::all_gather, 5, true);
  RandomMemory memory(dag, dag.members_of(0), 1);
  for (const TaskId id : dag.members_of(0)) {
    const NcclCall call = plan_call(dag, id);
    // nccl.h: "in place when sendbuff == recvbuff + rank * sendcount"; the tasks were lowered in the members' order.
    EXPECT_EQ(memory.at(call.send), memory.at(call.receive) + id * call.count);
  }
}

TEST(NcclCall, ABarrierReducesOneElementOfItsOwn) {
  const Dag dag = OneCollective(3).barrier();
  for (const TaskId id : dag.members_of(0)) {
    const NcclCall call = plan_call(dag, id);
    EXPECT_EQ(call.function, NcclFunction::all_reduce);
    EXPECT_EQ(call.count, 1U);
    EXPECT_TRUE(call.own_memory);
    EXPECT_EQ(call.send, no_id);
    EXPECT_EQ(call.receive, no_id);
  }
}

TEST(NcclCall, TypesAreTheBuffers) {
  const auto type_of = [](DType type) { return plan_call(OneCollective(2, type).all_to_all(4), 0).type; };
  EXPECT_EQ(type_of(DType::f32), NcclType::f32);
  EXPECT_EQ(type_of(DType::bf16), NcclType::bf16);
  EXPECT_EQ(type_of(DType::f16), NcclType::f16);
  EXPECT_EQ(type_of(DType::i32), NcclType::i32);
  EXPECT_EQ(type_of(DType::f8), NcclType::u8);
  EXPECT_FALSE(plan_call(OneCollective(2).all_to_all(4), 0).own_memory);
}

TEST(NcclCall, Fp8IsNotReduced) {
  EXPECT_NO_THROW(plan_call(OneCollective(2, DType::f8).sharded(OpKind::all_gather, 4, false), 0));
  EXPECT_THROW(plan_call(OneCollective(2, DType::f8).all_reduce(4, Reduction::sum), 0), std::runtime_error);
  EXPECT_THROW(plan_call(OneCollective(2, DType::f8).sharded(OpKind::reduce_scatter, 4, false), 0), std::runtime_error);
}

/// A file may hold any sizes; on a GPU a wrong one would be written past a buffer's end.
TEST(NcclCall, RefusesOperandsThatDoNotFit) {
  const auto refused = [](Dag dag) {
    Buffer larger = dag.buffers[0];
    larger.shape = Shape(larger.shape.elements() + 1);
    dag.buffers.set(0, larger);
    EXPECT_THROW(plan_call(dag, 0), std::logic_error) << operation(dag.tasks[0].op).name;
  };
  refused(OneCollective(3).sharded(OpKind::all_gather, 4, false));
  refused(OneCollective(3).sharded(OpKind::reduce_scatter, 4, false));
  refused(OneCollective(3).all_to_all(4));
  refused(OneCollective(3).rooted(OpKind::gather, 4, 0, false));
  refused(OneCollective(3).rooted(OpKind::scatter, 4, 0, false));
  Dag no_buffer = OneCollective(2).transfer(4);
  no_buffer.operands[0].access_bits = static_cast<std::uint32_t>(Access::write);
  EXPECT_THROW(plan_call(no_buffer, 0), std::logic_error);
  Dag kernel = OneCollective(2).transfer(4);
  Task task = kernel.tasks[0];
  task.op = OpKind::gemm;
  kernel.tasks.set(0, task);
  EXPECT_THROW(plan_call(kernel, 0), std::logic_error);
}

}  // namespace
}  // namespace tandem::nccl_call_test
