// Collectives played message by message, against the one flow that else stands for them.
//
// No more messages of a collective are on a link at once than `multiplicity` counts, and shares are max-min fair: every message
// is at least as fast as the one flow. No link carries more than its capacity: no collective takes less than the one flow's
// transfer. So messages that start together end with the one flow, exactly. For a ring of K steps, where each chunk takes K hops,
//   max(latency + K chunk / fastest hop, start + transfer + a hop) <= steps <= latency + transfer
// with the latency of the worst journey: NCCL counts nodes - 1 hops between nodes each time round, where the worst journey from
// some member of a node of several has one more. Both models are then apart by no more than the smaller of latency and transfer:
// a ring whose hops are of different speeds hides its latencies behind the slowest, which the sum does not know. With hops of one
// speed (one node; one GPU per node) nothing is hidden, and the right side is exact.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "runtime/dag_builder.h"
#include "sim/chunk_steps.h"
#include "sim/simulate.h"
#include "topology/layouts.h"

namespace tandem {
namespace {

constexpr Bytes KiB = 1 << 10, MiB = 1 << 20, GiB = 1 << 30;
constexpr double three_percent = 0.03;
constexpr double rounding = 1e-6;  // chunks are whole bytes, and events a picosecond apart are one

/// H100 nodes in numbers; leaves and pods small enough that 64 GPUs cross the core.
ClusterSpec cluster_of(std::int64_t gpus, std::int64_t per_node, bool rails = true, double oversubscribed = 1) {
  ClusterSpec spec;
  spec.gpus = gpus;
  spec.gpus_per_node = spec.nics_per_node = per_node;
  spec.nvlink_GBps = 450;
  spec.nic_gbps = 400;
  spec.nvlink_latency_us = 3.4;
  spec.nic_latency_us = 13.87;
  spec.switch_latency_us = 0.13;
  spec.fabric = {.rail_optimized = rails, .leaf_ports = 2, .pod_leaves = per_node};
  spec.fabric.oversubscription = {1, oversubscribed, oversubscribed};
  return spec;
}

std::vector<std::uint32_t> all(std::int64_t gpus) {
  std::vector<std::uint32_t> list(static_cast<std::size_t>(gpus));
  std::iota(list.begin(), list.end(), 0U);
  return list;
}

/// Collectives that start at 0 on the links of a cluster, each seen from one member.
class Collective {
 public:
  explicit Collective(const Cluster& cluster, Architecture architecture = Architecture::unknown)
      : Collective(cluster.links(), architecture) {}
  explicit Collective(std::vector<Link> links, Architecture architecture = Architecture::unknown) {
    builder_.dag().links = std::move(links);
    builder_.dag().devices.emplace_back().architecture = architecture;
  }

  void add(OpKind op, std::size_t members, Bytes bytes, const Layout& layout) {
    const auto n = static_cast<Bytes>(members);
    Communicator communicator{.name = "all", .axis = Axis::dp, .members = all(n), .layout = layout};
    const CommunicatorId id = builder_.add_communicator(std::move(communicator));
    const RankIndex rank = builder_.add_rank({.world_rank = static_cast<std::uint32_t>(builder_.dag().ranks.size())});
    const auto buffer = [&](Bytes size) { return builder_.buffer(rank, BufferKind::communication, DType::f8, Shape(size)); };
    const BufferId in = buffer(op == OpKind::all_gather ? bytes / n : bytes);
    BufferId out = in;
    if (op != OpKind::all_reduce) out = op == OpKind::send ? no_id : buffer(op == OpKind::reduce_scatter ? bytes / n : bytes);
    builder_.collective(op, id, {.name = "collective", .stream = Stream::dp}, in, out);
  }

  Dag finish() { return builder_.finish(); }

 private:
  DagBuilder builder_;
};

Layout lay_out(OpKind op, const Cluster& cluster, Detail detail = Detail::hops) {
  const std::vector<std::uint32_t> members = all(cluster.gpus());
  if (op == OpKind::send) return lay_pair(cluster, 0, members.back(), detail);
  if (op == OpKind::all_to_all) return lay_exchange(cluster, members, detail);
  return lay_group(cluster, members, {}, detail);
}

struct Times {
  Seconds fluid = 0, steps = 0;
  double ratio() const { return steps / fluid; }
};

Times times_of(const Dag& dag) {
  return {simulate(dag, Collectives::fluid).timeline.makespan(), simulate(dag, Collectives::steps).timeline.makespan()};
}

/// One collective of a whole cluster, its two times and what must hold of them.
struct Case {
  Times times;
  Seconds least = 0, most = 0;

  Case(OpKind op, const Cluster& cluster, Bytes bytes) {
    const Layout layout = lay_out(op, cluster);
    const std::size_t members = op == OpKind::send ? 2 : static_cast<std::size_t>(cluster.gpus());
    Collective collective(cluster);
    collective.add(op, members, bytes, layout);
    times = times_of(collective.finish());
    least = most = times.fluid;
    if (op == OpKind::send || op == OpKind::all_to_all) return;

    const CollectiveCost cost = collective_cost(op, bytes, members, layout);
    const ChunkSteps steps = chunk_steps(op, bytes, members, layout, cost);
    const Seconds transfer = uncontended_time(cost, layout, cluster.links()) - cost.latency;
    Seconds latency = cost.latency, hop = layout.nodes == 1 ? steps.intra_latency : steps.inter_latency;
    if (layout.nodes > 1 && layout.nodes < members) {
      // An all-reduce goes round twice but for two hops, of which with two GPUs per node one is between nodes.
      const int more = op == OpKind::all_reduce && members > 2 * layout.nodes ? 2 : 1;
      latency += more * (steps.inter_latency - steps.intra_latency);
      hop = steps.intra_latency;
    }
    const Seconds at_full_speed = static_cast<double>(steps.bytes) / (cluster.spec().nvlink_GBps * 1e9);
    most = latency + transfer;
    least = is_of_one_speed(layout, cluster) ? most : std::max(latency + at_full_speed, steps.start + transfer + hop);
  }

  /// In an otherwise empty network.
  static bool is_of_one_speed(const Layout& layout, const Cluster& cluster) {
    if (layout.nodes == 1) return true;
    return cluster.spec().gpus_per_node == 1 && cluster.spec().fabric.oversubscription == std::vector<double>{1, 1, 1};
  }
};

struct Setting {
  std::int64_t gpus, per_node;
  bool rails;
  double oversubscribed;
};
void PrintTo(const Setting& s, std::ostream* out) {
  *out << s.gpus << " GPUs, " << s.per_node << " per node, " << (s.rails ? "rails" : "no rails") << ", 1:" << s.oversubscribed;
}

class Steps : public testing::TestWithParam<Setting> {
 protected:
  const Cluster cluster_{cluster_of(GetParam().gpus, GetParam().per_node, GetParam().rails, GetParam().oversubscribed)};

  void expect_close(OpKind op, std::initializer_list<Bytes> sizes) const {
    for (const Bytes bytes : sizes) {
      SCOPED_TRACE(std::string(operation(op).name) + " of " + std::to_string(bytes));
      const Case c(op, cluster_, bytes);
      EXPECT_GE(c.times.steps, c.least * (1 - rounding));
      EXPECT_LE(c.times.steps, c.most * (1 + rounding));
      if (c.least > c.times.fluid * (1 - three_percent) && c.most < c.times.fluid * (1 + three_percent)) {
        EXPECT_NEAR(c.times.steps, c.times.fluid, three_percent * c.times.fluid);
        ++within_;
      }
    }
  }
  mutable int within_ = 0;  ///< how often the two had to be within three percent
};

INSTANTIATE_TEST_SUITE_P(Clusters, Steps,
                         testing::Values(Setting{8, 8, true, 1}, Setting{8, 1, true, 1}, Setting{8, 1, false, 2},
                                         Setting{8, 2, true, 4}, Setting{16, 1, true, 1}, Setting{16, 2, true, 1},
                                         Setting{16, 4, false, 2}, Setting{16, 8, true, 1}, Setting{32, 8, true, 1},
                                         Setting{32, 4, false, 4}, Setting{64, 8, true, 1}, Setting{64, 8, false, 4}));

TEST_P(Steps, MessagesThatStartTogetherEndWithTheOneFlow) {
  expect_close(OpKind::send, {64 * KiB, MiB, 16 * MiB, GiB});
  expect_close(OpKind::all_to_all, {64 * KiB, 16 * MiB, GiB});
  EXPECT_EQ(within_, 7);
}

TEST_P(Steps, RingsAreApartByNoMoreThanTheSmallerOfLatencyAndTransfer) {
  expect_close(OpKind::all_reduce, {64 * KiB, 16 * MiB, GiB});
  expect_close(OpKind::all_gather, {64 * KiB, 16 * MiB, 8 * GiB});
  if (cluster_.gpus() <= 16) expect_close(OpKind::reduce_scatter, {64 * KiB, MiB, 16 * MiB, 256 * MiB, GiB});
  if (GetParam().gpus == GetParam().per_node) {
    EXPECT_EQ(within_, 11);
  }
  EXPECT_GE(within_, 1);
}

class Conservation : public Steps {};
INSTANTIATE_TEST_SUITE_P(Clusters, Conservation,
                         testing::Values(Setting{8, 8, true, 1}, Setting{16, 1, true, 1}, Setting{16, 4, false, 2},
                                         Setting{64, 8, true, 4}, Setting{48, 8, true, 1}));

std::map<LinkId, Bytes> carried_in_steps(const ChunkSteps& steps) {
  std::map<LinkId, Bytes> carried;
  for (const Hop& hop : steps.hops) {
    for (std::uint32_t i = 0; i < steps.messages; ++i) {
      for (const Crossing& crossing : hop.crossings)
        carried[crossing.link] += steps.bytes_of(i) / hop.parts * crossing.multiplicity;
    }
  }
  return carried;
}

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

/// What is left when the hops of the one flow's latency are taken off it comes before the first message; a shorter latency (of
/// another protocol) makes the hops shorter.
TEST(Latency, IsThatOfTheOneFlow) {
  const std::vector<Link> links(4, {.capacity = 1e9});
  const Layout layout = bare_ring(links, 3e-6);
  const ChunkSteps longer = chunk_steps(OpKind::all_gather, 4096, 4, layout, {.latency = 10e-6, .bytes_per_channel = 3072});
  EXPECT_DOUBLE_EQ(longer.start, 1e-6);
  EXPECT_DOUBLE_EQ(longer.intra_latency, 3e-6);
  const ChunkSteps shorter = chunk_steps(OpKind::all_gather, 4096, 4, layout, {.latency = 4.5e-6, .bytes_per_channel = 3072});
  EXPECT_DOUBLE_EQ(shorter.start, 0);
  EXPECT_DOUBLE_EQ(shorter.intra_latency, 1.5e-6);
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

class Trees : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Clusters, Trees,
                         testing::Values(Setting{16, 8, true, 1}, Setting{8, 1, true, 1}, Setting{12, 2, true, 1},
                                         Setting{32, 4, false, 2}));

/// Hops from the farthest leaf to a root.
std::uint32_t height(const std::vector<Hop>& hops) {
  std::uint32_t highest = 0;
  for (const Hop& leaf : hops) {
    std::uint32_t steps = 0;
    for (const Hop* at = leaf.down ? nullptr : &leaf; at != nullptr; ++steps) {
      const auto up = std::ranges::find_if(
          hops, [&](const Hop& hop) { return !hop.down && hop.channel == at->channel && hop.from == at->to; });
      at = up == hops.end() ? nullptr : &*up;
    }
    highest = std::max(highest, steps);
  }
  return highest;
}

// A pipeline of d hops, none slower than the one flow: S slices take at most S + d - 1 times one slice, and the latencies.
TEST_P(Trees, FillTheirPipeline) {
  const auto [gpus, per_node, rails, oversubscribed] = GetParam();
  const Cluster cluster(cluster_of(gpus, per_node, rails, oversubscribed));
  Layout layout = lay_group(cluster, all(gpus), {.tree = true}, Detail::hops);
  layout.paths.erase(layout.paths.begin());
  ASSERT_EQ(layout.paths.front().algorithm, Algorithm::tree);
  const auto n = static_cast<std::size_t>(gpus);
  for (const Bytes bytes : {64 * KiB, 16 * MiB, 256 * MiB}) {
    Collective collective(cluster);
    collective.add(OpKind::all_reduce, n, bytes, layout);
    const Seconds played = simulate(collective.finish(), Collectives::steps).timeline.makespan();

    const CollectiveCost cost = collective_cost(OpKind::all_reduce, bytes, n, layout);
    const ChunkSteps steps = chunk_steps(OpKind::all_reduce, bytes, n, layout, cost);
    Seconds transfer = 0;
    for (const auto& [link, carried] : carried_in_steps(steps))
      transfer = std::max(transfer, static_cast<double>(carried) / cluster.link(link).capacity);
    const std::uint32_t hops = 2 * height(layout.paths.front().hops);
    const Seconds slowest = std::max(steps.intra_latency, steps.inter_latency);
    EXPECT_GT(played, transfer + steps.start) << bytes;
    EXPECT_LT(played, steps.start + transfer * (1 + (hops - 1.0) / steps.messages) + hops * slowest) << bytes;
    EXPECT_GE(steps.bytes / steps.messages, std::min<Bytes>(steps.bytes, 16 * KiB));
    EXPECT_LE(steps.bytes / steps.messages, 512 * KiB);
  }
}

// Two GPUs share each NIC, and each is in a ring of its own over all nodes: each gets half.
TEST(Contention, OfRingsOnTheSameNics) {
  ClusterSpec spec = cluster_of(16, 4);
  spec.nics_per_node = 2;
  const Cluster cluster(spec);
  for (const Bytes bytes : {MiB, 64 * MiB, GiB}) {
    Collective together(cluster);
    Collective alone(cluster);
    for (std::uint32_t place = 0; place < 4; ++place) {
      const std::vector<std::uint32_t> members{place, place + 4, place + 8, place + 12};
      const Layout layout = lay_group(cluster, members, {}, Detail::hops);
      together.add(OpKind::all_gather, 4, bytes, layout);
      if (place == 0) alone.add(OpKind::all_gather, 4, bytes, layout);
    }
    const Times both = times_of(together.finish()), one = times_of(alone.finish());
    EXPECT_NEAR(both.steps, both.fluid, three_percent * both.fluid) << bytes;
    EXPECT_NEAR(one.steps, one.fluid, three_percent * one.fluid) << bytes;
    EXPECT_GT(both.steps, 1.2 * one.steps) << bytes;
  }
}

// A long all-gather and a short one on the same ring: the short one ends first, and both models agree on either.
TEST(Contention, OfUnequalCollectives) {
  const Cluster cluster(cluster_of(8, 1));
  const Layout layout = lay_out(OpKind::all_gather, cluster);
  Collective collective(cluster);
  collective.add(OpKind::all_gather, 8, 512 * MiB, layout);
  collective.add(OpKind::all_gather, 8, 128 * MiB, layout);
  const Dag dag = collective.finish();
  const Timeline fluid = simulate(dag, Collectives::fluid).timeline;
  const Timeline steps = simulate(dag, Collectives::steps).timeline;
  EXPECT_LT(fluid.end[1], 0.5 * fluid.end[0]);
  for (const TaskId id : {0U, 1U}) EXPECT_NEAR(steps.end[id], fluid.end[id], three_percent * fluid.end[id]);
}

TEST(Nvls, IsOneFlow) {
  ClusterSpec spec = cluster_of(8, 8);
  spec.nvls = true;
  const Cluster cluster(spec);
  Layout layout = lay_group(cluster, all(8), {.nvls = true}, Detail::hops);
  layout.paths.erase(layout.paths.begin());
  ASSERT_EQ(layout.paths.front().algorithm, Algorithm::nvls);
  Collective collective(cluster);
  collective.add(OpKind::all_reduce, 8, 16 * MiB, layout);
  const Times times = times_of(collective.finish());
  EXPECT_NEAR(times.steps, times.fluid, 1e-11);
}

TEST(Determinism, EqualDagsGiveEqualTimelines) {
  const Cluster cluster(cluster_of(16, 4, false, 2));
  Collective collective(cluster);
  collective.add(OpKind::all_reduce, 16, 7'654'321, lay_out(OpKind::all_reduce, cluster));
  collective.add(OpKind::all_to_all, 16, 1'234'576, lay_out(OpKind::all_to_all, cluster));
  const Dag dag = collective.finish();
  EXPECT_EQ(simulate(dag, Collectives::steps).timeline.end, simulate(dag, Collectives::steps).timeline.end);
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
}  // namespace tandem
