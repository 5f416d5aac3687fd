#include "sim/nccl_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "sim/nccl_constants.h"

namespace tandem::sim::nccl_choice_test {
namespace {

constexpr Seconds us = 1e-6;
constexpr double GBps = 1e9;
constexpr Bytes KiB = 1024, MiB = 1024 * KiB;

/// One node of n GPUs behind NVSwitches of which each port reaches `port`.
Layout in_node(std::uint32_t n, BytesPerSecond port, bool nvls) {
  Layout layout{.intra_latency = 3.4 * us, .paths = {{.bandwidth = port}}};
  if (nvls) layout.paths.push_back({.algorithm = Algorithm::nvls, .channels = n, .bandwidth = port / (n + 1)});
  return layout;
}

/// Nodes of eight, with a NIC of 48 GB/s for each GPU, so that both rings and trees fill the NICs.
Layout over_nodes(std::uint32_t nodes) {
  return {.nodes = nodes,
          .intra_latency = 3.4 * us,
          .inter_latency = 14 * us,
          .paths = {{.channels = 8, .bandwidth = 48 * GBps},
                    {.algorithm = Algorithm::tree, .channels = 16, .bandwidth = 24 * GBps / 2}}};
}

CollectiveCost all_reduce(Bytes bytes, std::size_t n, const Layout& layout, Architecture architecture = Architecture::hopper) {
  return nccl_choice(OpKind::all_reduce, bytes, n, layout, architecture);
}

Algorithm algorithm_of(const CollectiveCost& cost, const Layout& layout) { return layout.paths[cost.paths].algorithm; }

TEST(NcclChoice, SmallVectorsGoByLowLatency) {
  const CollectiveCost cost = all_reduce(8 * KiB, 8, in_node(8, 364.5 * GBps, false));
  EXPECT_EQ(cost.protocol, Protocol::ll);
  EXPECT_NEAR(cost.latency, 8 * us + 14 * 0.6 * us, 1e-15);
  EXPECT_EQ(cost.bytes_per_channel, 2 * 14 * KiB);   // 2 * 7/8 of the vector, and as many bytes of flags
  EXPECT_DOUBLE_EQ(cost.rate_limit, 2 * 20 * GBps);  // one channel's
  const CollectiveCost large = all_reduce(1 * MiB, 8, in_node(8, 364.5 * GBps, false));
  EXPECT_EQ(large.protocol, Protocol::ll);
  EXPECT_DOUBLE_EQ(large.rate_limit, 2 * 141 * GBps);  // llMaxBws counts data; half of 364.5 would be 182
}

// NCCL gives a channel of a ring 4 KiB of LL for each of its members before it takes another: from 32 KiB on eight to as much as
// seven channels carry, which is LL's most, all take as long.
TEST(NcclChoice, LowLatencyTakesAsLongForOneChannelAsForMore) {
  const Layout layout = in_node(8, 364.5 * GBps, false);
  const auto time = [&](Bytes bytes) {
    const CollectiveCost cost = all_reduce(bytes, 8, layout);
    return cost.latency + static_cast<double>(cost.bytes_per_channel) / cost.rate_limit;
  };
  const Seconds of_channel = 7.0 / 4 * 32 * KiB / (20 * GBps);
  EXPECT_NEAR(time(16 * KiB), 8 * us + 14 * 0.6 * us + of_channel / 2, 1e-12);
  for (const Bytes bytes : {32 * KiB, 64 * KiB, 128 * KiB})
    EXPECT_NEAR(time(bytes), 8 * us + 14 * 0.6 * us + of_channel, 1e-12) << bytes;
  EXPECT_NEAR(time(256 * KiB), 8 * us + 14 * 0.6 * us + 7.0 / 4 * 256 * KiB / (141 * GBps), 1e-12);
}

TEST(NcclChoice, GatheringByLowLatencyIsSlowerThanScattering) {
  const Layout layout = in_node(8, 366 * GBps, false);
  const auto rate = [&](OpKind kind) {
    const CollectiveCost cost = nccl_choice(kind, 2 * MiB, 8, layout, Architecture::hopper);
    EXPECT_EQ(cost.protocol, Protocol::ll);
    return cost.rate_limit;
  };
  EXPECT_DOUBLE_EQ(rate(OpKind::all_gather), 2 * 0.25 * 366 * GBps);
  EXPECT_DOUBLE_EQ(rate(OpKind::reduce_scatter), 2 * 141 * GBps);
}

TEST(NcclChoice, MiddlingVectorsGoByLL128) {
  const CollectiveCost cost = all_reduce(4 * MiB, 8, in_node(8, 234.9 * GBps, false), Architecture::ampere);
  EXPECT_EQ(cost.protocol, Protocol::ll128);
  EXPECT_EQ(cost.bytes_per_channel, 7 * MiB * 16 / 15 + 1);  // 120 of 128 bytes are data; rounded up
  EXPECT_NEAR(cost.rate_limit, 0.587 * 128 / 120 * 234.9 * GBps, 1);
  // Each of 14 messages takes at least 4.9 us, its transfer included.
  EXPECT_NEAR(cost.latency + static_cast<double>(cost.bytes_per_channel) / cost.rate_limit, 23 * us + 14 * 4.9 * us, 1e-12);
  const CollectiveCost large = all_reduce(16 * MiB, 8, in_node(8, 234.9 * GBps, false), Architecture::ampere);
  EXPECT_EQ(large.protocol, Protocol::ll128);
  EXPECT_NEAR(large.latency, 23 * us, 1e-15);  // each takes longer
}

TEST(NcclChoice, LargeVectorsFillTheLinks) {
  const CollectiveCost cost = all_reduce(1024 * MiB, 8, in_node(8, 364.5 * GBps, false));
  EXPECT_EQ(cost.protocol, Protocol::simple);
  EXPECT_EQ(cost.bytes_per_channel, 1792 * MiB);
  // The pipeline fills for 0.56 of one message of 128 MiB.
  EXPECT_NEAR(cost.latency, 26 * us + 14 * 3.4 * us + 0.56 * 128 * MiB / (364.5 * GBps), 1e-12);
  EXPECT_EQ(cost.rate_limit, 0);
}

TEST(NcclChoice, SwitchesThatAddUpTakeLargeAllReducesAlone) {
  const Layout layout = in_node(8, 364.5 * GBps, true);
  const CollectiveCost cost = all_reduce(1024 * MiB, 8, layout);
  EXPECT_EQ(algorithm_of(cost, layout), Algorithm::nvls);
  EXPECT_EQ(cost.bytes_per_channel, 128 * MiB);
  const BytesPerSecond rate = 0.85 * 364.5 * GBps / 9;
  EXPECT_DOUBLE_EQ(cost.rate_limit, rate);
  // The first pieces of all 16 channels come in before a sum goes out.
  EXPECT_DOUBLE_EQ(cost.latency, 25 * us + 16 * 128 * KiB / rate);
  const CollectiveCost gather = nccl_choice(OpKind::all_gather, 1024 * MiB, 8, layout, Architecture::hopper);
  EXPECT_EQ(algorithm_of(gather, layout), Algorithm::ring);
  EXPECT_EQ(algorithm_of(all_reduce(1024 * MiB, 8, layout, Architecture::ampere), layout), Algorithm::ring);
}

// The defaults that stas00/ml-engineering (network/README.md) observed at 8 GiB: with NVLS switched off, 4 H200 and 4 and 5 B200
// are as fast as before, more of them slower. Ports as the rings say: 366 and 682 GB/s.
TEST(NcclChoice, SwitchesPayFromSoManyGpusOnAsObserved) {
  const auto uses_nvls = [](std::uint32_t n, BytesPerSecond port, Architecture architecture) {
    const Layout layout = in_node(n, port, true);
    return algorithm_of(all_reduce(8192 * MiB, n, layout, architecture), layout) == Algorithm::nvls;
  };
  for (std::uint32_t n = 5; n <= 8; ++n) EXPECT_TRUE(uses_nvls(n, 366 * GBps, Architecture::hopper)) << n;
  for (std::uint32_t n = 6; n <= 8; ++n) EXPECT_TRUE(uses_nvls(n, 682 * GBps, Architecture::blackwell)) << n;
  for (std::uint32_t n = 2; n <= 5; ++n) EXPECT_FALSE(uses_nvls(n, 682 * GBps, Architecture::blackwell)) << n;
}

// Two nodes of eight: ports of 364.5 GB/s, on which a channel has 1/18, and NICs of 48, which two channels share.
TEST(NcclChoice, OverNodesTheSwitchesAddUpBetweenTrees) {
  Layout layout = over_nodes(2);
  layout.paths.push_back({.algorithm = Algorithm::nvls_tree,
                          .channels = 16,
                          .bandwidth = 364.5 / 18 * GBps,
                          .in_node = 364.5 / 18 * GBps,
                          .between_nodes = 24 * GBps});
  const CollectiveCost cost = all_reduce(1024 * MiB, 16, layout);
  EXPECT_EQ(algorithm_of(cost, layout), Algorithm::nvls_tree);
  EXPECT_EQ(cost.bytes_per_channel, 64 * MiB);
  const BytesPerSecond rate = 57.7 / 2 * 8 / 16 * GBps;  // of eight channels; the bus carries each byte twice
  ASSERT_LT(rate, 0.85 * 364.5 / 18 * GBps);
  EXPECT_DOUBLE_EQ(cost.rate_limit, rate);
  EXPECT_NEAR(cost.latency, (25 + 2 * 20.9) * us + 16 * 64 * KiB / rate, 1e-12);
  layout.paths.back().between_nodes = 6 * GBps;
  layout.paths.back().bandwidth = 6 * GBps;
  EXPECT_NE(algorithm_of(all_reduce(1024 * MiB, 16, layout), layout), Algorithm::nvls_tree);
}

// Racks of 72, ports of 682 GB/s on which a channel has 1/146, NICs of 48, which the channels' branches share: 24 on two racks,
// 12 on more, where a NIC sends up and down twice. Nine of 72 NICs are filled.
TEST(NcclChoice, OverRacksFewNicsCarryTheTrees) {
  for (const std::uint32_t racks : {2U, 20U}) {
    const BytesPerSecond nic = (racks == 2 ? 24 : 12) * GBps, port = 682.0 / 146 * GBps;
    Layout layout = over_nodes(racks);
    layout.paths.push_back(
        {.algorithm = Algorithm::nvls_tree, .channels = 144, .bandwidth = port, .in_node = port, .between_nodes = nic});
    const CollectiveCost cost = all_reduce(1024 * MiB, std::size_t{72} * racks, layout, Architecture::blackwell);
    ASSERT_EQ(algorithm_of(cost, layout), Algorithm::nvls_tree);
    EXPECT_DOUBLE_EQ(cost.rate_limit, nic * 9 / 72);
    // The pieces of 32 channels, half of each, at every level: one over two racks, four over twenty.
    const int levels = racks == 2 ? 1 : 4;
    EXPECT_NEAR(cost.latency, (25 + 2 * levels * 20.9) * us + levels * 32 * 64 * KiB / (nic * 9 / 72), 1e-12);
  }
}

// Layouts count channels in as few as they can (topology/crossing_sum.cpp).
TEST(NcclChoice, FirstPiecesAreThoseOfTheGpusHoweverChannelsAreCounted) {
  Seconds latency = 0;
  for (const std::uint32_t channels : {16U, 8U}) {
    Layout layout = over_nodes(2);
    const BytesPerSecond port = 364.5 / 18 * 16 / channels * GBps, nic = 24.0 * 16 / channels * GBps;
    layout.paths.push_back(
        {.algorithm = Algorithm::nvls_tree, .channels = channels, .bandwidth = port, .in_node = port, .between_nodes = nic});
    const CollectiveCost cost = all_reduce(1024 * MiB, 16, layout);
    ASSERT_EQ(algorithm_of(cost, layout), Algorithm::nvls_tree);
    if (latency == 0) latency = cost.latency;
    EXPECT_NEAR(cost.latency, latency, 1e-12);
  }
}

// Eight nodes of 8 GPUs. At 8 MiB, a tree under LL128 has 0.9 of its bandwidth, the smaller of 15/16 of 8 NICs' and 8 times 29.
TEST(NcclChoice, TreesAreCorrectedForMiddlingSizes) {
  const NcclConstants& constants = nccl_constants();
  EXPECT_DOUBLE_EQ(constants.tree_correction(Protocol::ll, 63), 1);
  EXPECT_DOUBLE_EQ(constants.tree_correction(Protocol::simple, 64), 0.9);
  EXPECT_DOUBLE_EQ(constants.tree_correction(Protocol::ll, 512 * KiB), 0.4);
  EXPECT_DOUBLE_EQ(constants.tree_correction(Protocol::ll128, 8 * MiB), 0.9);
  EXPECT_DOUBLE_EQ(constants.tree_correction(Protocol::simple, 256 * MiB), 0.9);
  EXPECT_DOUBLE_EQ(constants.tree_correction(Protocol::simple, 512 * MiB), 1);

  const Layout layout = over_nodes(8);
  const CollectiveCost cost = all_reduce(8 * MiB, 64, layout);
  ASSERT_EQ(algorithm_of(cost, layout), Algorithm::tree);
  ASSERT_EQ(cost.protocol, Protocol::ll128);
  EXPECT_NEAR(cost.latency, (14 + 2 * (7 * 1.25 + 3 * 8.5)) * us, 1e-12);
  EXPECT_NEAR(cost.rate_limit, 0.9 * 8 * 29 / 2 / 16 * 128 / 120 * GBps, 1);
}

// 16 nodes of 8 GPUs, 560 MiB. Ring, Simple: 8.4 + 224 * 3.4 + 30 * 14 = 1190 us and 3035 us at 384 GB/s. Tree, Simple: 176 us
// and 4078 us at 8 * 36 / 2 GB/s. So the ring would be faster by 29 us, but for the 1.4 times that NCCL reckons of its latency.
TEST(NcclChoice, ThePlateauOfRingsFavoursTrees) {
  const Layout layout = over_nodes(16);
  const CollectiveCost cost = all_reduce(560 * MiB, 128, layout);
  EXPECT_EQ(algorithm_of(cost, layout), Algorithm::tree);
  EXPECT_EQ(cost.protocol, Protocol::simple);
  // 6293 us by tree, 1666 + 4552 by ring.
  EXPECT_EQ(algorithm_of(all_reduce(840 * MiB, 128, layout), layout), Algorithm::ring);
}

// One node's ring posts nothing; over nodes LL's hops take as long as the host needs to post them. 16 GPUs, 14 hops of them
// between nodes.
TEST(NcclChoice, TheHostPostsEveryStepOfARingOverNodes) {
  const Layout layout{
      .nodes = 2, .intra_latency = 3.4 * us, .inter_latency = 14 * us, .paths = {{.channels = 8, .bandwidth = 48 * GBps}}};
  const CollectiveCost cost = nccl_choice(OpKind::all_gather, 1 * KiB, 16, layout, Architecture::hopper);
  ASSERT_EQ(cost.protocol, Protocol::ll);
  EXPECT_DOUBLE_EQ(cost.intra_latency, 1 * us);
  EXPECT_DOUBLE_EQ(cost.inter_latency, 2.7 * us);
}

TEST(NcclChoice, TreesCarrySmallVectorsOverNodesAndRingsLargeOnes) {
  const Layout layout = over_nodes(16);
  const CollectiveCost small = all_reduce(8 * KiB, 128, layout);
  EXPECT_EQ(algorithm_of(small, layout), Algorithm::tree);
  EXPECT_EQ(small.protocol, Protocol::ll);
  EXPECT_DOUBLE_EQ(small.latency, 6.8 * us + 2 * (7 * 0.6 * us + 4 * 5 * us));
  EXPECT_EQ(small.bytes_per_channel, 2 * 512);
  const CollectiveCost large = all_reduce(4096 * MiB, 128, layout);
  EXPECT_EQ(algorithm_of(large, layout), Algorithm::ring);
  EXPECT_EQ(large.protocol, Protocol::simple);
  // Twice round but for two steps, both inside a node.
  EXPECT_NEAR(large.latency, 8.4 * us + (254 - 32) * 3.4 * us + 32 * 14 * us, 1e-15);
}

TEST(NcclChoice, SlowHopsAndSwitchesAddToEveryProtocol) {
  Layout slow = over_nodes(16);
  slow.intra_latency += 1 * us;
  slow.inter_latency += 2 * us;
  const Seconds more = all_reduce(8 * KiB, 128, slow).latency - all_reduce(8 * KiB, 128, over_nodes(16)).latency;
  EXPECT_NEAR(more, 2 * (7 * 1 * us + 4 * 2 * us), 1e-15);
}

TEST(NcclChoice, ALayoutFasterThanNcclKnowsHasNoNegativeHops) {
  Layout fast = in_node(8, 364.5 * GBps, false);
  fast.intra_latency = 0;
  EXPECT_DOUBLE_EQ(all_reduce(1, 8, fast).latency, 8 * us);
}

TEST(NcclChoice, OneGpuPerNodeGathersByPat) {
  Layout layout{.nodes = 64, .inter_latency = 14 * us, .paths = {{.bandwidth = 48 * GBps}}};
  const CollectiveCost cost = nccl_choice(OpKind::all_gather, 4 * MiB, 64, layout, Architecture::hopper);
  EXPECT_NEAR(cost.latency, 8 * us + 6 * 14 * us / 3.5 + 64 * 2.8 * us, 1e-15);
  EXPECT_DOUBLE_EQ(cost.rate_limit, 0.75 * 48 * GBps);
  EXPECT_EQ(cost.bytes_per_channel, 63 * MiB / 16);
  // A vector so large that a quarter of the bandwidth is worth more than the ring's 63 hops.
  const CollectiveCost large = nccl_choice(OpKind::reduce_scatter, 8192 * MiB, 64, layout, Architecture::hopper);
  EXPECT_EQ(large.rate_limit, 0);
}

TEST(NcclChoice, PathsWithoutLinksTakeTheirLatency) {
  Layout layout{.nodes = 128, .intra_latency = 3.4 * us, .inter_latency = 14 * us, .paths = {{}, {.algorithm = Algorithm::tree}}};
  const CollectiveCost cost = all_reduce(4, 1024, layout);
  EXPECT_EQ(algorithm_of(cost, layout), Algorithm::tree);
  EXPECT_DOUBLE_EQ(cost.latency, 6.8 * us + 2 * (7 * 0.6 * us + 7 * 5 * us));
}

TEST(NcclChoice, LargerVectorsTakeLonger) {
  for (const Architecture architecture : {Architecture::volta, Architecture::ampere, Architecture::blackwell}) {
    const Layout layout = over_nodes(4);
    Seconds before = 0;
    for (Bytes bytes = 1; bytes <= 4096 * MiB; bytes *= 2) {
      const CollectiveCost cost = all_reduce(bytes, 32, layout, architecture);
      const Paths& paths = layout.paths[cost.paths];
      const BytesPerSecond rate = cost.rate_limit > 0 ? std::min(cost.rate_limit, paths.bandwidth) : paths.bandwidth;
      const Seconds time = cost.latency + static_cast<double>(cost.bytes_per_channel) / rate;
      EXPECT_GE(time, before * (1 - 1e-3)) << name_of(architecture) << " " << bytes;
      before = time;
    }
  }
}

TEST(NcclConstants, AnAlgorithmWithoutRowsIsNamed) {
  EXPECT_GT(nccl_constants().way("ring").base[0], 0);
  EXPECT_THAT([] { nccl_constants().way("collnet"); },
              testing::ThrowsMessage<std::logic_error>("nccl.csv has no rows for collnet"));
}

}  // namespace
}  // namespace tandem::sim::nccl_choice_test
