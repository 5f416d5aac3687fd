#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/dag/dag_builder.h"
#include "runtime/host/backend.h"
#include "runtime/host/verify_collectives.h"
#include "tests/runtime/all_collectives.h"

namespace tandem::host_verify_collectives_test {
namespace {

void run(const Collective& collective) {
  CollectiveExchange exchange(collective);
  for (std::size_t i = 0; i < exchange.members(); ++i) exchange.contribute(i);
  for (std::size_t i = 0; i < exchange.members(); ++i) exchange.collect(i);
}

TEST(VerifyCollectives, CountsEachDistinctOneOnce) {
  EXPECT_EQ(verify_collectives(all_collectives(2)), 13U);
  EXPECT_EQ(verify_collectives(all_collectives(7)), 13U);
}

TEST(VerifyCollectives, FindsAShiftedResultInEveryKind) {
  const Dag dag = all_collectives(4);
  for (const OpKind broken : {OpKind::all_reduce, OpKind::reduce_scatter, OpKind::all_gather, OpKind::all_to_all, OpKind::reduce,
                              OpKind::gather, OpKind::scatter, OpKind::send}) {
    const auto shift = [&](const Collective& collective) {
      run(collective);
      const std::span<float> out = collective.members.back().out;
      if (collective.op == broken && !out.empty()) std::ranges::rotate(out, out.begin() + 1);  // one reduce ends elsewhere
    };
    try {
      verify_collectives(dag, shift);
      ADD_FAILURE() << operation(broken).name;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(std::string(operation(broken).name) + " on communicator"));
    }
  }
}

TEST(VerifyCollectives, FindsAMemberThatCountsTwiceForAnother) {
  const Dag dag = all_collectives(4);
  const auto miscount = [](const Collective& collective) {
    Collective wrong = collective;
    if (wrong.op == OpKind::all_reduce && wrong.reduction == Reduction::sum) {
      std::vector<float> duplicate(wrong.members[1].in.begin(), wrong.members[1].in.end());
      std::ranges::copy(duplicate, wrong.members[2].in.begin());
    }
    run(wrong);
  };
  EXPECT_THROW(verify_collectives(dag, miscount), std::runtime_error);
}

TEST(VerifyCollectives, FindsAShiftedBroadcast) {
  const auto shift = [&](const Collective& collective) {
    run(collective);
    const std::span<float> out = collective.members.front().out;  // the root is the last
    if (collective.op == OpKind::broadcast) std::ranges::rotate(out, out.begin() + 1);
  };
  EXPECT_THROW(verify_collectives(all_collectives(4), shift), std::runtime_error);
}

TEST(VerifyCollectives, FindsMembersThatNameDifferentRoots) {
  DagBuilder builder;
  const CommunicatorId pair = builder.add_communicator({.name = "pair", .members = {0, 1}, .layout = {}});
  for (std::uint32_t r = 0; r < 2; ++r) {
    const RankIndex rank = builder.add_rank({.world_rank = r});
    const BufferId x = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(4));
    builder.rooted_collective(OpKind::broadcast, pair, {.name = "broadcast"}, r, x);
  }
  EXPECT_THROW(verify_collectives(builder.finish()), std::logic_error);
}

TEST(VerifyCollectives, FindsShardsThatDoNotFollowTheCommunicatorsOrder) {
  Dag dag = all_collectives(4);
  std::swap(dag.communicators[0].members[1], dag.communicators[0].members[2]);
  EXPECT_THROW(verify_collectives(dag), std::logic_error);
}

TEST(VerifyCollectives, FindsACommunicatorThatNamesARankTwice) {
  Dag dag = all_collectives(4);
  dag.communicators[0].members[1] = 2;
  EXPECT_THROW(verify_collectives(dag), std::logic_error);
}

TEST(VerifyCollectives, FindsATransferWhoseEndsAreSwapped) {
  Dag dag = all_collectives(4);
  std::ranges::reverse(dag.communicators[1].members);
  EXPECT_THROW(verify_collectives(dag), std::logic_error);
}

}  // namespace
}  // namespace tandem::host_verify_collectives_test
