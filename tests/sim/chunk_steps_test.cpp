// What the messages of a collective are, and when they leave.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/sim/collective_in_steps.h"

namespace tandem::sim::chunk_steps_test {
namespace {

class Conservation : public testing::TestWithParam<Setting> {
 protected:
  const Cluster cluster_{cluster_of(GetParam().gpus, GetParam().per_node, GetParam().rails, GetParam().oversubscribed)};
};
INSTANTIATE_TEST_SUITE_P(Clusters, Conservation,
                         testing::Values(Setting{8, 8, true, 1}, Setting{16, 1, true, 1}, Setting{16, 4, false, 2},
                                         Setting{64, 8, true, 4}, Setting{48, 8, true, 1}));

TEST_P(Conservation, EveryLinkCarriesTheBytesOfTheOneFlow) {
  for (const OpKind op : {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_to_all, OpKind::send}) {
    SCOPED_TRACE(operation(op).name);
    const Layout layout = lay_out(op, cluster_);
    const std::size_t n = op == OpKind::send ? 2 : static_cast<std::size_t>(cluster_.gpus());
    const Bytes bytes = static_cast<Bytes>(n * n * (n - 1)) * 4096;  // divides into whole chunks
    const CollectiveCost cost = collective_cost(op, bytes, n, layout);
    std::map<LinkId, Bytes> flow;
    for (const Crossing& crossing : layout.paths[cost.paths].crossings)
      flow[crossing.link] = cost.bytes_per_channel * crossing.multiplicity;
    EXPECT_EQ(carried_in_steps(chunk_steps(op, bytes, n, layout, cost)), flow);
  }
}

/// n members, each hop on a link of its own with these capacities: nothing is shared.
Layout bare_ring(const std::vector<Link>& links, Seconds latency) {
  Paths paths;
  for (LinkId id = 0; id < links.size(); ++id) {
    const auto next = static_cast<std::uint32_t>((id + 1) % links.size());
    paths.hops.push_back({.from = id, .to = next, .crossings = {{id, 1}}});
    paths.crossings.push_back({id, 1});
  }
  return {.intra_latency = latency, .paths = {paths}};
}

// S(i, k) = max(A(i - 1, k - 1), L(i, k - 1)), L = S + chunk / capacity(i), A = L + latency: when message k of hop i starts, has
// left, and arrives.
TEST(BareRing, FollowsTheRecurrence) {
  const Bytes bytes = 5 * 1'000'000;
  const Seconds latency = 20e-6;
  std::vector<Link> links;
  for (const double GBps : {10.0, 3.0, 50.0, 7.0, 4.0}) links.push_back({.capacity = GBps * 1e9});
  const Layout layout = bare_ring(links, latency);
  Collective collective(links);
  collective.add(OpKind::all_reduce, links.size(), bytes, layout);

  const std::size_t n = links.size();
  const CollectiveCost cost = collective_cost(OpKind::all_reduce, bytes, n, layout);
  const ChunkSteps steps = chunk_steps(OpKind::all_reduce, bytes, n, layout, cost);
  std::vector<Seconds> left(n, steps.start), arrived(n, steps.start);
  for (std::size_t k = 0; k < 2 * (n - 1); ++k) {
    const std::vector<Seconds> before = arrived;
    for (std::size_t i = 0; i < n; ++i) {
      left[i] = std::max(left[i], before[(i + n - 1) % n]) + 1e6 / links[i].capacity;
      arrived[i] = left[i] + steps.intra_latency;
    }
  }
  EXPECT_NEAR(times_of(collective.finish()).steps, *std::ranges::max_element(arrived), 1e-10);
}

TEST(BareRing, OfTwoIsAClosedForm) {
  const std::vector<Link> links{{.capacity = 1e9}, {.capacity = 1e9}};
  const Layout layout = bare_ring(links, 3e-6);
  Collective collective(links);
  collective.add(OpKind::all_gather, 2, 2'000'000, layout);
  const Seconds base = collective_cost(OpKind::all_gather, 2'000'000, 2, layout).latency - 3e-6;
  EXPECT_NEAR(times_of(collective.finish()).steps, base + 1e-3 + 3e-6, 1e-10);
}

// Nothing to carry: the hops that wait for each other, after the start, take the flow's latency. An all-to-all of nothing takes
// no time: another one carries its data.
TEST(Latency, IsThatOfTheOneFlow) {
  const std::vector<Link> links(4, {.capacity = 1e9});
  const Layout layout = bare_ring(links, 3e-6);
  for (const auto& [op, hops] :
       {std::pair{OpKind::all_reduce, 6}, std::pair{OpKind::all_gather, 3}, std::pair{OpKind::broadcast, 1}}) {
    const CollectiveCost cost = collective_cost(op, 0, 4, layout);
    const ChunkSteps steps = chunk_steps(op, 0, 4, layout, cost);
    EXPECT_DOUBLE_EQ(steps.start + hops * steps.intra_latency, cost.latency) << operation(op).name;
    EXPECT_GT(steps.intra_latency, 0);
  }
  EXPECT_EQ(collective_cost(OpKind::all_to_all, 0, 4, layout).latency, 0);
}

TEST(Chunks, AddUpToTheBytes) {
  const ChunkSteps steps{.messages = 7, .bytes = 24};
  Bytes sum = 0;
  for (std::uint32_t i = 0; i < steps.messages; ++i) {
    EXPECT_GE(steps.bytes_of(i), 3);
    EXPECT_LE(steps.bytes_of(i), 4);
    sum += steps.bytes_of(i);
  }
  EXPECT_EQ(sum, 24);
}

// Under LL the flags travel with the data and its rate is limited; under LL128 and Simple less so. Whatever NCCL chooses, the
// chunks are as many bytes as the flow, at its rate limit, and their hops take the latency that the flow counts.
TEST(Tuned, ChunksFollowTheProtocol) {
  const Cluster cluster(cluster_of(8, 8));
  const Layout layout = lay_group(cluster, all(8), {}, Detail::hops);
  std::set<Protocol> protocols;
  for (Bytes bytes = 1 << 10; bytes <= 1 << 30; bytes *= 8) {
    const CollectiveCost cost = collective_cost(OpKind::all_reduce, bytes, 8, layout, Architecture::hopper);
    protocols.insert(cost.protocol);
    const ChunkSteps steps = chunk_steps(OpKind::all_reduce, bytes, 8, layout, cost);
    EXPECT_NEAR(static_cast<double>(steps.bytes), static_cast<double>(cost.bytes_per_channel), 2.0 * steps.messages);
    EXPECT_NEAR(steps.start + steps.messages * steps.intra_latency, cost.latency, 1e-12);
    Collective collective(cluster, Architecture::hopper);
    collective.add(OpKind::all_reduce, 8, bytes, layout);
    const Times times = times_of(collective.finish());
    EXPECT_NEAR(times.ratio(), 1, 0.03) << bytes << " B, " << name_of(cost.protocol);
  }
  EXPECT_GT(protocols.size(), 1U);
}

}  // namespace
}  // namespace tandem::sim::chunk_steps_test
