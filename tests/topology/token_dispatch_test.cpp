// The loads of DeepEP's dispatch, counted token by token.

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "topology/layouts.h"

namespace tandem::topology::token_dispatch_test {
namespace {

struct Case {
  std::uint32_t nodes, gpus;     ///< members lie on all GPUs of `nodes` nodes
  std::uint32_t experts, top_k;  ///< of a GPU, of a token
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.nodes << " nodes of " << c.gpus << ", " << c.top_k << " of " << c.nodes * c.gpus * c.experts;
}

Cluster cluster_of(const Case& c) {
  ClusterSpec spec;
  spec.gpus = std::int64_t{c.nodes} * c.gpus;
  spec.gpus_per_node = c.gpus;
  spec.nics_per_node = c.gpus;
  spec.nic_gbps = 400;
  spec.fabric = {.tiers = 2, .rail_optimized = true, .leaf_ports = 64};
  return Cluster(spec);
}

struct Counted {
  std::map<LinkId, double> rows;  ///< by link
  TokenCopies copies{0, 0, 0};
  double tokens = 0;
};

void travel(Counted& counted, const Layout& way) {
  for (const Crossing& crossing : way.paths.front().crossings) counted.rows[crossing.link] += crossing.multiplicity;
}

/// Every GPU sends one token to every possible set of experts.
Counted counted(const Cluster& cluster, const Case& c) {
  Counted all;
  const std::uint32_t gpus = c.nodes * c.gpus, experts = gpus * c.experts;
  for (std::uint64_t chosen = 0; chosen < std::uint64_t{1} << experts; ++chosen) {
    if (static_cast<std::uint32_t>(std::popcount(chosen)) != c.top_k) continue;
    std::set<std::uint32_t> ranks, nodes;
    for (std::uint32_t e = 0; e < experts; ++e)
      if ((chosen >> e & 1U) != 0) ranks.insert(e / c.experts), nodes.insert(e / c.experts / c.gpus);
    all.copies.choices += c.top_k, all.copies.ranks += ranks.size(), all.copies.nodes += nodes.size(), all.tokens += 1;
    for (std::uint32_t from = 0; from < gpus; ++from) {
      const auto entry = [&](std::uint32_t node) { return node * c.gpus + from % c.gpus; };
      for (const std::uint32_t node : nodes)
        if (entry(node) != from) travel(all, lay_pair(cluster, from, entry(node)));
      for (const std::uint32_t rank : ranks)
        if (rank != entry(rank / c.gpus)) travel(all, lay_pair(cluster, entry(rank / c.gpus), rank));
    }
  }
  for (double* sum : {&all.copies.choices, &all.copies.ranks, &all.copies.nodes}) *sum /= all.tokens;
  return all;
}

class TokenDispatch : public testing::TestWithParam<Case> {};

// Rows over each link, of as many tokens from each member: as counted, but for the rounding to whole crossings.
TEST_P(TokenDispatch, LoadsAreThoseOfAllTokensCountedOneByOne) {
  const Case& c = GetParam();
  const Cluster cluster = cluster_of(c);
  std::vector<std::uint32_t> members(c.nodes * c.gpus);
  std::iota(members.begin(), members.end(), 0U);
  const Counted expected = counted(cluster, c);
  const Layout layout = lay_token_dispatch(cluster, members, expected.copies);
  const Paths& paths = layout.paths.front();
  EXPECT_EQ(paths.algorithm, Algorithm::deepep);

  std::map<LinkId, double> rows;
  const double n = members.size(), of_channel = expected.tokens * c.top_k * (n - 1) / n / paths.channels;
  for (const Crossing& crossing : paths.crossings) rows[crossing.link] += crossing.multiplicity * of_channel;
  for (const auto& [link, crossings] : expected.rows) EXPECT_NEAR(rows[link], crossings, 0.02 * crossings) << link;
  for (const auto& [link, crossings] : rows) EXPECT_TRUE(expected.rows.contains(link) || crossings == 0) << link;
}

INSTANTIATE_TEST_SUITE_P(Layouts, TokenDispatch,
                         testing::Values(Case{1, 4, 2, 2}, Case{1, 4, 3, 4}, Case{2, 2, 2, 2}, Case{2, 4, 1, 3}, Case{3, 2, 2, 4},
                                         Case{4, 1, 2, 2}, Case{2, 4, 2, 8}));

TEST(TokenDispatch, OfOneNodeThatAllGoToIsEvenOverThePorts) {
  const Case c{1, 8, 1, 8};
  const Cluster cluster = cluster_of(c);
  std::vector<std::uint32_t> members(8);
  std::iota(members.begin(), members.end(), 0U);
  const Paths paths = lay_token_dispatch(cluster, members, {8, 1, 8}).paths.front();
  EXPECT_EQ(paths.crossings.size(), 16U);  // each port, out and in
  // A port carries 7 of a token's 8 rows, as all of them that leave.
  for (const Crossing& crossing : paths.crossings) EXPECT_EQ(crossing.multiplicity, paths.channels);
  EXPECT_DOUBLE_EQ(paths.in_node, paths.bandwidth);
  EXPECT_EQ(paths.between_nodes, 0);
}

TEST(TokenDispatch, OverUnequalNodesRowsTravelByThemselves) {
  const Cluster cluster = cluster_of({2, 4, 1, 2});
  const std::vector<std::uint32_t> members{0, 1, 2, 4};
  EXPECT_EQ(lay_token_dispatch(cluster, members, {2, 1.5, 1.8}).paths.front().algorithm, Algorithm::direct);
}

}  // namespace
}  // namespace tandem::topology::token_dispatch_test
