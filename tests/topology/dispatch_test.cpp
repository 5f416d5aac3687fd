// The loads of node-limited expert dispatch, counted row by row.

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <vector>

#include "topology/layouts.h"

namespace tandem::topology::dispatch_test {
namespace {

/// All subsets of `size` of the numbers below `of`.
std::vector<std::vector<std::uint32_t>> subsets(std::uint32_t of, std::uint32_t size) {
  std::vector<std::vector<std::uint32_t>> all;
  for (std::uint32_t bits = 0; bits < 1U << of; ++bits) {
    std::vector<std::uint32_t> members;
    for (std::uint32_t i = 0; i < of; ++i) {
      if ((bits >> i & 1U) != 0) members.push_back(i);
    }
    if (members.size() == size) all.push_back(members);
  }
  return all;
}

struct Case {
  std::uint32_t nodes, gpus, nics;  ///< members lie on all GPUs of `nodes` nodes
  std::uint32_t choices, limit;
  std::int64_t leaf_ports;
  bool rails = true;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.nodes << " nodes of " << c.gpus << ", " << c.choices << " choices in " << c.limit;
}

Cluster cluster_of(const Case& c) {
  ClusterSpec spec;
  spec.gpus = std::int64_t{c.nodes} * c.gpus;
  spec.gpus_per_node = c.gpus;
  spec.nics_per_node = c.nics;
  spec.nic_gbps = 400;
  spec.fabric = {.tiers = 3, .rail_optimized = c.rails, .leaf_ports = c.leaf_ports, .pod_leaves = c.nics};
  return Cluster(spec);
}

using Rows = std::map<LinkId, std::uint64_t>;

void travel(Rows& rows, const Layout& way, std::uint64_t times) {
  for (const Crossing& crossing : way.paths.front().crossings) rows[crossing.link] += crossing.multiplicity * times;
}

/// Every GPU sends one token to every possible set of GPUs: a copy to each node, to the GPU of the sender's place there, and from
/// there a copy to each GPU chosen.
Rows counted(const Cluster& cluster, const Case& c) {
  const auto inside = subsets(c.gpus, c.choices / c.limit);
  Rows rows;
  for (std::uint32_t from = 0; from < c.nodes * c.gpus; ++from) {
    for (const auto& nodes : subsets(c.nodes, c.limit)) {
      for (const std::uint32_t node : nodes) {
        // The choices in the other nodes of this token come in as many ways each.
        std::uint64_t ways = 1;
        for (std::uint32_t i = 1; i < c.limit; ++i) ways *= inside.size();
        const std::uint32_t relay = node * c.gpus + from % c.gpus;
        if (relay != from) travel(rows, lay_pair(cluster, from, relay), ways * inside.size());
        for (const auto& chosen : inside) {
          for (const std::uint32_t gpu : chosen) {
            const std::uint32_t to = node * c.gpus + gpu;
            if (to != relay) travel(rows, lay_pair(cluster, relay, to), ways);
          }
        }
      }
    }
  }
  return rows;
}

class Dispatch : public testing::TestWithParam<Case> {};

// A pair's message is 1/GPUs of the rows that one GPU's tokens make, all choices counted.
TEST_P(Dispatch, LoadsAreThoseOfAllTokensCountedOneByOne) {
  const Case& c = GetParam();
  const Cluster cluster = cluster_of(c);
  std::vector<std::uint32_t> members(c.nodes * c.gpus);
  std::iota(members.begin(), members.end(), 0U);
  const Paths layout = lay_dispatch(cluster, members, c.choices, c.limit).paths.front();
  const std::uint64_t messages = members.size() - 1;

  std::uint64_t tokens = subsets(c.nodes, c.limit).size();
  for (std::uint32_t i = 0; i < c.limit; ++i) tokens *= subsets(c.gpus, c.choices / c.limit).size();
  Rows expected = counted(cluster, c), found;
  for (auto& [link, rows] : expected) rows *= members.size() * layout.channels;
  for (const Crossing& crossing : layout.crossings) found[crossing.link] += crossing.multiplicity * tokens * messages * c.choices;
  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Dispatch,
                         testing::Values(Case{2, 4, 4, 2, 1, 4}, Case{4, 2, 2, 2, 1, 4}, Case{4, 4, 4, 4, 2, 4},
                                         Case{4, 4, 4, 8, 4, 4}, Case{4, 4, 2, 4, 1, 2}, Case{4, 2, 1, 4, 2, 2},
                                         Case{3, 4, 4, 6, 2, 1}, Case{8, 2, 2, 4, 2, 2}, Case{4, 4, 4, 4, 2, 4, false}));

}  // namespace
}  // namespace tandem::topology::dispatch_test
