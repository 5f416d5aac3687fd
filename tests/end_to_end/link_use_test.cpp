// What the links of a folded step carry is what they carry in the unfolded one.

#include "sim/link_use.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "scenarios/lowering/lower.h"
#include "sim/simulate.h"
#include "tests/end_to_end/random_clusters.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::link_use_test {
namespace {

struct Step {
  Dag dag;
  LinkUse use;
};

Step step_on(const Scenario& scenario, const World& world, std::size_t bins = 20) {
  Step step{.dag = lower(scenario, world), .use = {}};
  step.use = link_use(step.dag, simulate(step.dag).timeline, bins);
  return step;
}

bool are_close(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double tolerance = 1e-6;  // dates may differ by 1e-9 of the step, and with them what falls into a bin
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return std::abs(x - y) <= tolerance; });
}

/// The first link of the folded step that does not carry what the link of its name does in the unfolded one; or the first tier.
std::string difference_of_links(const Scenario& scenario, const World& folded) {
  const Step some = step_on(scenario, folded), all = step_on(scenario, make_world(scenario, false));
  std::map<std::string, LinkId> by_name;
  for (LinkId id = 0; id < all.dag.links.size(); ++id) by_name[all.dag.links[id].name] = id;
  for (LinkId id = 0; id < some.dag.links.size(); ++id) {
    const Link &one = some.dag.links[id], &same = all.dag.links[by_name.at(one.name)];
    const LinkUse::OfLink &of_one = some.use.links[id], &of_same = all.use.links[by_name.at(one.name)];
    const bool equal = one.capacity == same.capacity && std::abs(of_one.bytes - of_same.bytes) <= 1e-9 * of_same.bytes &&
                       of_one.users.size() == of_same.users.size() && are_close(of_one.utilisation, of_same.utilisation);
    if (equal) continue;
    std::ostringstream text;
    text << one.name << " carries " << of_one.bytes << " bytes folded and " << of_same.bytes << " unfolded, at "
         << testing::PrintToString(of_one.utilisation) << " and " << testing::PrintToString(of_same.utilisation);
    return text.str();
  }
  if (some.use.tiers.size() != all.use.tiers.size()) return "the tiers";
  for (std::size_t i = 0; i < some.use.tiers.size(); ++i) {
    const LinkUse::OfTier &a = some.use.tiers[i], &b = all.use.tiers[i];
    if (a.tier != b.tier || a.links != b.links || a.capacity != b.capacity || !are_close(a.utilisation, b.utilisation))
      return std::string("tier ") + name_of(a.tier);
  }
  return "";
}

TEST(LinkUseWhenFolded, IsThatOfTheLinksStoodFor) {
  for (const char* mesh : {"parallelism.tp=8 parallelism.pp=2 parallelism.dp=4 model.kv_heads=8",
                           "parallelism.tp=2 parallelism.pp=2 parallelism.dp=16 cluster.fabric.leaf_ports=2",
                           "parallelism.dp=16 model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.ep=8"}) {
    const Scenario scenario = tiny_cluster(words(std::string(mesh) + " training.global_batch=32 parallelism.zero=1"));
    EXPECT_EQ(difference_of_links(scenario, make_world(scenario, true)), "") << mesh;
  }
}

TEST(LinkUseWhenFolded, OnRandomClusters) {
  for (const RandomCluster& drawn : random_clusters(24, 1, 1))
    EXPECT_EQ(difference_of_links(drawn.scenario, drawn.folded), "") << drawn.text();
}

TEST(LinkUseWhenFolded, NoLinkIsAboveItsCapacity) {
  constexpr std::size_t bins = 1000;  // short enough for a transfer to fill some
  double highest = 0;
  for (const RandomCluster& drawn : random_clusters(24, 1, 1)) {
    for (const LinkUse::OfLink& link : step_on(drawn.scenario, drawn.folded, bins).use.links) {
      for (const double utilisation : link.utilisation) highest = std::max(highest, utilisation);
    }
  }
  EXPECT_LE(highest, 1 + 1e-9);
  EXPECT_GT(highest, 0.9);
}

/// What the comparison must notice: a class of links that differ.
TEST(LinkUseWhenFolded, MutationsShow) {
  const std::string mesh = "parallelism.tp=4 parallelism.pp=2 parallelism.dp=8 training.global_batch=16";
  const World blind = make_world(tiny_cluster(words(mesh)), true);
  EXPECT_EQ(difference_of_links(tiny_cluster(words(mesh)), blind), "");
  World other = blind;
  other.communicators.front().layout.paths.front().crossings.front().multiplicity *= 2;
  EXPECT_NE(difference_of_links(tiny_cluster(words(mesh)), other), "");
}

}  // namespace
}  // namespace tandem::studies::link_use_test
