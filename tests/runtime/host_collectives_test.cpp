#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "runtime/dag/dag_builder.h"
#include "runtime/host/collectives.h"

namespace tandem::host_collectives_test {
namespace {

using Vectors = std::vector<std::vector<float>>;

/// Values with full mantissas, whose sums depend on the order of addition.
Vectors random_vectors(std::size_t members, std::size_t elements) {
  std::mt19937 generator(members);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Vectors vectors(members, std::vector<float>(elements));
  for (std::vector<float>& vector : vectors) {
    for (float& value : vector) value = uniform(generator);
  }
  return vectors;
}

std::vector<float> sum_in_order(const Vectors& vectors) {
  std::vector<float> sum = vectors[0];
  for (std::size_t i = 1; i < vectors.size(); ++i) {
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += vectors[i][e];
  }
  return sum;
}

std::vector<float> largest_of(const Vectors& vectors) {
  std::vector<float> largest = vectors[0];
  for (const std::vector<float>& vector : vectors) {
    for (std::size_t e = 0; e < largest.size(); ++e) largest[e] = std::max(largest[e], vector[e]);
  }
  return largest;
}

void run(const Collective& collective) {
  CollectiveExchange exchange(collective);
  // Backwards: the order in which the members come must not matter.
  for (std::size_t i = exchange.members(); i-- > 0;) exchange.contribute(i);
  for (std::size_t i = 0; i < exchange.members(); ++i) exchange.collect(i);
}

Collective in_place(OpKind op, Vectors& wholes, Reduction reduction = Reduction::sum) {
  Collective collective{.op = op, .reduction = reduction, .members = {}};
  const std::size_t shard = wholes[0].size() / wholes.size();
  for (std::size_t i = 0; i < wholes.size(); ++i) {
    const std::span<float> whole = wholes[i];
    const std::span<float> own = op == OpKind::all_reduce ? whole : whole.subspan(i * shard, shard);
    collective.members.push_back(op == OpKind::all_gather ? CollectiveMember{own, whole} : CollectiveMember{whole, own});
  }
  return collective;
}

class HostCollectives : public testing::TestWithParam<std::size_t> {
 protected:
  std::size_t members() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Members, HostCollectives, testing::Range<std::size_t>(2, 10));

TEST_P(HostCollectives, AllReduceAddsInTheOrderOfTheMembersOnAllOfThem) {
  const Vectors before = random_vectors(members(), 13);  // which none of 2 ... 9 divides
  Vectors vectors = before;
  run(in_place(OpKind::all_reduce, vectors));
  for (const std::vector<float>& vector : vectors) EXPECT_EQ(vector, sum_in_order(before));
}

TEST_P(HostCollectives, AllReduceTakesTheMaximum) {
  const Vectors before = random_vectors(members(), 13);
  Vectors vectors = before;
  run(in_place(OpKind::all_reduce, vectors, Reduction::max));
  for (const std::vector<float>& vector : vectors) EXPECT_EQ(vector, largest_of(before));
}

TEST_P(HostCollectives, AllReduceTakesTheMean) {
  const Vectors before = random_vectors(members(), 13);
  Vectors vectors = before;
  run(in_place(OpKind::all_reduce, vectors, Reduction::mean));
  std::vector<float> mean = sum_in_order(before);
  for (float& element : mean) element /= static_cast<float>(members());
  for (const std::vector<float>& vector : vectors) EXPECT_EQ(vector, mean);
}

TEST_P(HostCollectives, AllReduceOfFewerElementsThanMembers) {
  const Vectors before = random_vectors(members(), 1);
  Vectors vectors = before;
  run(in_place(OpKind::all_reduce, vectors));
  for (const std::vector<float>& vector : vectors) EXPECT_EQ(vector, sum_in_order(before));
}

TEST_P(HostCollectives, AllGatherPutsShardsInTheOrderOfTheMembers) {
  Vectors shards = random_vectors(members(), 3);
  std::vector<float> expected;
  for (const std::vector<float>& shard : shards) expected.insert(expected.end(), shard.begin(), shard.end());

  Vectors apart(members(), std::vector<float>(expected.size(), NAN));
  Collective collective{.op = OpKind::all_gather, .members = {}};
  for (std::size_t i = 0; i < members(); ++i) collective.members.push_back({shards[i], apart[i]});
  run(collective);
  for (const std::vector<float>& whole : apart) EXPECT_EQ(whole, expected);

  Vectors together(members(), std::vector<float>(expected.size(), NAN));
  for (std::size_t i = 0; i < members(); ++i)
    std::ranges::copy(shards[i], together[i].begin() + static_cast<std::ptrdiff_t>(3 * i));
  run(in_place(OpKind::all_gather, together));
  for (const std::vector<float>& whole : together) EXPECT_EQ(whole, expected);
}

TEST_P(HostCollectives, ReduceScatterLeavesEachMemberItsPartOfTheSum) {
  const std::size_t shard = 3;
  const Vectors before = random_vectors(members(), shard * members());
  const std::vector<float> sum = sum_in_order(before);

  Vectors wholes = before;
  Vectors parts(members(), std::vector<float>(shard, NAN));
  Collective collective{.op = OpKind::reduce_scatter, .members = {}};
  for (std::size_t i = 0; i < members(); ++i) collective.members.push_back({wholes[i], parts[i]});
  run(collective);
  run(in_place(OpKind::reduce_scatter, wholes));
  for (std::size_t i = 0; i < members(); ++i) {
    for (std::size_t e = 0; e < shard; ++e) {
      EXPECT_EQ(parts[i][e], sum[i * shard + e]);
      EXPECT_EQ(wholes[i][i * shard + e], sum[i * shard + e]);
    }
  }
}

TEST_P(HostCollectives, AllToAllTransposesTheParts) {
  const std::size_t piece = 3;
  Vectors sent = random_vectors(members(), piece * members());
  Vectors received(members(), std::vector<float>(piece * members(), NAN));
  Collective collective{.op = OpKind::all_to_all, .members = {}};
  for (std::size_t i = 0; i < members(); ++i) collective.members.push_back({sent[i], received[i]});
  run(collective);
  for (std::size_t to = 0; to < members(); ++to) {
    for (std::size_t from = 0; from < members(); ++from) {
      for (std::size_t e = 0; e < piece; ++e) EXPECT_EQ(received[to][from * piece + e], sent[from][to * piece + e]);
    }
  }
}

TEST_P(HostCollectives, BroadcastGivesAllWhatTheRootHas) {
  for (std::size_t root = 0; root < members(); ++root) {
    Vectors vectors = random_vectors(members(), 13);
    const std::vector<float> sent = vectors[root];
    Collective collective{.op = OpKind::broadcast, .members = {}, .root = root};
    for (std::size_t i = 0; i < members(); ++i)
      collective.members.push_back(i == root ? CollectiveMember{vectors[i], {}} : CollectiveMember{{}, vectors[i]});
    run(collective);
    for (const std::vector<float>& vector : vectors) EXPECT_EQ(vector, sent);
  }
}

TEST_P(HostCollectives, ReduceLeavesTheSumOnTheRootAlone) {
  for (std::size_t root = 0; root < members(); ++root) {
    const Vectors before = random_vectors(members(), 13);
    Vectors vectors = before;
    Collective collective{.op = OpKind::reduce, .members = {}, .root = root};
    for (std::size_t i = 0; i < members(); ++i)
      collective.members.push_back({vectors[i], i == root ? std::span<float>(vectors[i]) : std::span<float>()});
    run(collective);
    for (std::size_t i = 0; i < members(); ++i) EXPECT_EQ(vectors[i], i == root ? sum_in_order(before) : before[i]);
  }
}

TEST_P(HostCollectives, GatherPutsPartsInTheOrderOfTheMembersAndScatterTakesThemApart) {
  const std::size_t part = 3;
  for (std::size_t root = 0; root < members(); ++root) {
    Vectors parts = random_vectors(members(), part);
    std::vector<float> expected, whole(part * members(), NAN);
    for (const std::vector<float>& shard : parts) expected.insert(expected.end(), shard.begin(), shard.end());
    Collective gather{.op = OpKind::gather, .members = {}, .root = root};
    for (std::size_t i = 0; i < members(); ++i)
      gather.members.push_back({parts[i], i == root ? std::span<float>(whole) : std::span<float>()});
    run(gather);
    EXPECT_EQ(whole, expected);

    Vectors scattered(members(), std::vector<float>(part, NAN));
    Collective scatter{.op = OpKind::scatter, .members = {}, .root = root};
    for (std::size_t i = 0; i < members(); ++i)
      scatter.members.push_back({i == root ? std::span<float>(whole) : std::span<float>(), scattered[i]});
    run(scatter);
    EXPECT_EQ(scattered, parts);
  }
}

TEST(HostCollective, SendReachesTheDestination) {
  std::vector<float> x{1, 2, 3}, y(3, NAN);
  run({.op = OpKind::send, .members = {{x, {}}, {{}, y}}});
  EXPECT_EQ(y, x);
}

TEST(HostCollective, NotANumberSurvivesTheMaximum) {
  for (std::size_t member = 0; member < 3; ++member) {
    Vectors vectors(3, std::vector<float>{1});
    vectors[member][0] = std::numeric_limits<float>::quiet_NaN();
    run(in_place(OpKind::all_reduce, vectors, Reduction::max));
    EXPECT_TRUE(std::isnan(vectors[0][0])) << "from member " << member;
  }
}

TEST(HostCollective, RejectsMembersThatDoNotFitTogether) {
  std::vector<float> four(4), six(6), two(2);
  EXPECT_THROW(CollectiveExchange({.op = OpKind::all_reduce, .members = {{four, four}, {six, six}}}), std::logic_error);
  EXPECT_THROW(CollectiveExchange({.op = OpKind::all_gather, .members = {{two, four}, {four, four}}}), std::logic_error);
  EXPECT_THROW(CollectiveExchange({.op = OpKind::send, .members = {{four, {}}, {{}, two}}}), std::logic_error);
  EXPECT_THROW(CollectiveExchange({.op = OpKind::all_to_all, .members = {{four, six}, {six, four}}}), std::logic_error);
  EXPECT_THROW(CollectiveExchange({.op = OpKind::all_to_all, .members = {{four, four}, {four, four}}}), std::logic_error);
  EXPECT_THROW(CollectiveExchange({.op = OpKind::broadcast, .members = {{four, {}}, {{}, two}}}), std::logic_error);
  EXPECT_THROW(CollectiveExchange({.op = OpKind::reduce, .members = {{four, four}, {two, {}}}}), std::logic_error);
  EXPECT_THROW(CollectiveExchange({.op = OpKind::gather, .members = {{two, four}, {four, {}}}}), std::logic_error);
  EXPECT_THROW(CollectiveExchange({.op = OpKind::scatter, .members = {{six, two}, {{}, two}}}), std::logic_error);
}

TEST(HostCollective, RejectsAShardInAnothersPlace) {
  std::vector<float> a(4), b(4);
  const std::span<float> first = std::span(a).first(2), last = std::span(b).last(2);
  EXPECT_NO_THROW(CollectiveExchange({.op = OpKind::all_gather, .members = {{first, a}, {last, b}}}));
  EXPECT_THROW(CollectiveExchange({.op = OpKind::all_gather, .members = {{last, b}, {first, a}}}), std::logic_error);
  EXPECT_THROW(CollectiveExchange({.op = OpKind::reduce_scatter, .members = {{b, last}, {a, first}}}), std::logic_error);
  EXPECT_NO_THROW(CollectiveExchange({.op = OpKind::gather, .members = {{first, a}, {last, {}}}}));
  EXPECT_THROW(CollectiveExchange({.op = OpKind::gather, .members = {{first, {}}, {first, a}}, .root = 1}), std::logic_error);
  EXPECT_THROW(CollectiveExchange({.op = OpKind::scatter, .members = {{b, last}, {{}, first}}}), std::logic_error);
}

TEST(HostCollective, MembersStandInTheOrderOfTheCommunicator) {
  DagBuilder builder;
  const CommunicatorId ring = builder.add_communicator({.name = "ring", .members = {5, 3, 4}, .layout = {}});
  for (const std::uint32_t world_rank : {3U, 4U, 5U}) {
    const RankIndex rank = builder.add_rank({.world_rank = world_rank});
    const BufferId whole = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(3));
    const BufferId own = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(1));
    builder.collective(OpKind::all_gather, ring, {.name = "gather"}, own, whole);
  }
  const Dag dag = builder.finish();
  std::vector<float> memory(dag.buffers.size());
  const Collective gather = collective_of(dag, dag.members_of(0), [&](BufferId id) { return &memory[id]; });
  ASSERT_EQ(gather.members.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    // Buffers were made rank by rank, the whole first: rank 5 is the third, rank 3 the first, rank 4 the second.
    const std::size_t rank = std::array<std::size_t, 3>{2, 0, 1}[i];
    EXPECT_EQ(gather.members[i].in.data(), &memory[2 * rank + 1]);
    EXPECT_EQ(gather.members[i].out.data(), &memory[2 * rank]);
  }
}

}  // namespace
}  // namespace tandem::host_collectives_test
