#include "sim/nccl_channels.h"

#include <gtest/gtest.h>

namespace tandem::sim::nccl_channels_test {
namespace {

constexpr double GBps = 1e9;
constexpr Bytes KiB = 1024, MiB = 1024 * KiB;

Occupation occupation(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, const CollectiveCost& cost,
                      Architecture architecture = Architecture::hopper) {
  return nccl_occupation(kind, bytes, members, layout, cost, 1, architecture);
}

Layout of(Algorithm algorithm, std::uint32_t nodes, std::uint32_t channels) {
  return {.nodes = nodes, .paths = {{.algorithm = algorithm, .channels = channels}}};
}

std::int32_t channels(Bytes bytes, std::size_t members, std::uint32_t nodes, Protocol protocol,
                      Architecture architecture = Architecture::hopper) {
  const Layout ring = of(Algorithm::ring, nodes, 1);
  return occupation(OpKind::all_gather, bytes, members, ring, {.protocol = protocol}, architecture).multiprocessors;
}

// Numbers that NCCL logs: see sim/profiles/nccl.csv.
TEST(NcclChannels, AreThoseOfNcclsLogs) {
  EXPECT_EQ(channels(1024 * MiB, 8, 1, Protocol::simple, Architecture::ampere), 24);
  EXPECT_EQ(channels(1024 * MiB, 8, 1, Protocol::simple), 24);
  EXPECT_EQ(channels(1024 * MiB, 8, 1, Protocol::simple, Architecture::blackwell), 32);
  EXPECT_EQ(channels(1024 * MiB, 16, 2, Protocol::simple, Architecture::ampere), 16);
  EXPECT_EQ(channels(1024 * MiB, 16, 2, Protocol::simple), 16);
  EXPECT_EQ(channels(1024 * MiB, 4, 2, Protocol::simple), 8);
  EXPECT_EQ(channels(1024 * MiB, 64, 64, Protocol::simple, Architecture::ampere), 2);
  EXPECT_EQ(channels(1024 * MiB, 8, 1, Protocol::simple, Architecture::unknown), 0);
}

TEST(NcclChannels, HaveALeastNumberOfBytes) {
  EXPECT_EQ(channels(100 * 1024, 8, 1, Protocol::simple), 3);  // 32 KiB each
  EXPECT_EQ(channels(32 * KiB - 1, 8, 1, Protocol::simple), 1);
  EXPECT_EQ(channels(100 * 1024, 8, 1, Protocol::ll128), 20);  // 5 KiB each
  EXPECT_EQ(channels(100 * 1024, 8, 1, Protocol::ll), 3);      // 4 KiB for each of eight members
  EXPECT_EQ(channels(0, 8, 1, Protocol::ll), 1);
}

TEST(NcclChannels, OfNvlsAndSendsAreTheirOwn) {
  const CollectiveCost cost{.bytes_per_channel = MiB};
  EXPECT_EQ(occupation(OpKind::all_reduce, KiB, 8, of(Algorithm::nvls, 1, 8), cost).multiprocessors, 16);
  // A rank that sends and receives at a time has half of a pair's channels for each.
  EXPECT_EQ(occupation(OpKind::send, MiB, 2, of(Algorithm::direct, 1, 1), cost).multiprocessors, 16);
  EXPECT_EQ(occupation(OpKind::send, MiB, 2, of(Algorithm::direct, 2, 1), cost).multiprocessors, 1);
  EXPECT_EQ(occupation(OpKind::all_to_all, MiB, 16, of(Algorithm::direct, 2, 15), cost).multiprocessors, 16);
}

TEST(NcclOccupation, MovesWhatIsSentAndReceivedThroughMemory) {
  // 8 MiB over 8 members of one node; each in one second.
  const double vector = 8 * MiB;
  const CollectiveCost gathered{.bytes_per_channel = 7 * MiB};
  EXPECT_DOUBLE_EQ(occupation(OpKind::all_gather, 8 * MiB, 8, of(Algorithm::ring, 1, 1), gathered).memory, 2 * 7.0 / 8 * vector);
  const CollectiveCost reduced{.bytes_per_channel = 14 * MiB};
  EXPECT_DOUBLE_EQ(occupation(OpKind::all_reduce, 8 * MiB, 8, of(Algorithm::ring, 1, 1), reduced).memory, 4 * 7.0 / 8 * vector);
  const CollectiveCost switched{.bytes_per_channel = MiB};
  EXPECT_DOUBLE_EQ(occupation(OpKind::all_reduce, 8 * MiB, 8, of(Algorithm::nvls, 1, 8), switched).memory, 2 * 9.0 / 8 * vector);
  const CollectiveCost branch{.bytes_per_channel = MiB / 2};
  EXPECT_DOUBLE_EQ(occupation(OpKind::all_reduce, 8 * MiB, 16, of(Algorithm::tree, 2, 16), branch).memory, 4 * vector);
  const CollectiveCost sent{.bytes_per_channel = 8 * MiB};
  EXPECT_DOUBLE_EQ(occupation(OpKind::send, 8 * MiB, 2, of(Algorithm::direct, 1, 1), sent).memory, vector);
}

}  // namespace
}  // namespace tandem::sim::nccl_channels_test
