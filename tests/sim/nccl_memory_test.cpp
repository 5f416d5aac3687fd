#include "sim/nccl_memory.h"

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/dag/dag_builder.h"

namespace tandem::sim::nccl_memory_test {
namespace {

constexpr Bytes kibi = 1024;
constexpr Bytes connection = (512 + 4800 + 4096) * kibi;  // NCCL's buffers of LL, LL128 and Simple

/// One rank on a GPU, and what it communicates over.
class OneRank {
 public:
  explicit OneRank(Architecture architecture = Architecture::hopper) {
    builder_.dag().devices.emplace_back().architecture = architecture;
    rank_ = builder_.add_rank({});
  }
  CommunicatorId communicator(std::size_t members, std::uint32_t nodes) {
    Communicator made{.name = "dp", .axis = Axis::dp, .members = std::vector<std::uint32_t>(members), .layout = {.nodes = nodes}};
    std::iota(made.members.begin(), made.members.end(), 0U);
    made.layout.paths = {{.algorithm = Algorithm::ring, .channels = 1}};
    return builder_.add_communicator(std::move(made));
  }
  void all_gather(CommunicatorId over) {
    const auto members = static_cast<std::int64_t>(builder_.dag().communicators[over].members.size());
    builder_.collective(OpKind::all_gather, over, {.name = "gather"}, buffer(8), buffer(8 * members));
  }
  void send(CommunicatorId over) { builder_.collective(OpKind::send, over, {.name = "send"}, buffer(8), no_id); }
  void receive(CommunicatorId over) { builder_.collective(OpKind::receive, over, {.name = "receive"}, no_id, buffer(8)); }
  Bytes memory() { return nccl_memory(builder_.dag(), ByRank::tasks(builder_.dag()), rank_); }

 private:
  DagBuilder builder_;
  RankIndex rank_ = 0;

  BufferId buffer(std::int64_t elements) {
    return builder_.buffer(rank_, BufferKind::communication, DType::bf16, Shape(elements));
  }
};

// Channels as NCCL logs them: 24 in a node of H100, 16 on two nodes of eight. Of a ring each has one connection, of a tree one up
// and one down; two members are each other's only one.
TEST(NcclMemory, BuffersForEachConnectionOfEachChannel) {
  OneRank node, pair, nodes;
  node.all_gather(node.communicator(8, 1));
  EXPECT_EQ(node.memory(), 24 * (1 + 2) * connection);
  pair.all_gather(pair.communicator(2, 1));
  EXPECT_EQ(pair.memory(), 24 * (1 + 1) * connection);
  nodes.all_gather(nodes.communicator(16, 2));
  EXPECT_EQ(nodes.memory(), 16 * (1 + 2) * connection);
}

TEST(NcclMemory, OfWhatIsUsedOnce) {
  OneRank rank;
  const CommunicatorId used = rank.communicator(8, 1);
  rank.communicator(8, 1);
  EXPECT_EQ(rank.memory(), 0);
  rank.all_gather(used);
  const Bytes once = rank.memory();
  rank.all_gather(used);
  EXPECT_EQ(rank.memory(), once);
  rank.all_gather(rank.communicator(1, 1));
  EXPECT_EQ(rank.memory(), once);
}

/// Folded, a rank that sends to one of its class and receives from another does both through one pair.
TEST(NcclMemory, OfAFoldedRingIsThatOfTheWholeOne) {
  OneRank folded, whole;
  const CommunicatorId both = folded.communicator(2, 1);
  folded.send(both);
  folded.receive(both);
  whole.send(whole.communicator(2, 1));
  whole.receive(whole.communicator(2, 1));
  EXPECT_EQ(folded.memory(), whole.memory());
  EXPECT_EQ(whole.memory(), 2 * 24 * (1 + 1) * connection);
}

TEST(NcclMemory, OfAnUnknownArchitectureIsNotKnown) {
  OneRank rank(Architecture::unknown);
  rank.all_gather(rank.communicator(8, 1));
  EXPECT_EQ(rank.memory(), 0);
}

}  // namespace
}  // namespace tandem::sim::nccl_memory_test
