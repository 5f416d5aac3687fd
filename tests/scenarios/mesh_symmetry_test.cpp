// The symmetry of a mesh saves work and nothing else: the world is that of a fold rank by rank.

#include "scenarios/mesh/mesh_symmetry.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <random>
#include <sstream>

#include "runtime/base/input_error.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::mesh_symmetry_test {
namespace {

/// All that a world says, to the last bit, but for which link of a class gave it its name.
std::string text_of(const World& world) {
  std::ostringstream text;
  text << std::hexfloat;
  for (const Device& device : world.devices) text << device.speed << ' ' << device.host_bandwidth << '\n';
  for (const Rank& r : world.ranks)
    text << r.world_rank << " x" << r.count << ": " << r.tp << ' ' << r.cp << ' ' << r.ep << ' ' << r.dp << ' ' << r.pp << " on "
         << r.device << '\n';
  for (const Link& link : world.links) text << name_of(link.tier) << ' ' << link.capacity << " x" << link.count << '\n';
  for (const Communicator& communicator : world.communicators) {
    text << communicator.name;
    for (const std::uint32_t member : communicator.members) text << ' ' << member;
    const Layout& layout = communicator.layout;
    text << " over " << layout.nodes << ' ' << layout.intra_latency << ' ' << layout.inter_latency << '\n';
    for (const Paths& paths : layout.paths) {
      text << name_of(paths.algorithm) << ' ' << paths.channels << ' ' << paths.bandwidth << ' ' << paths.in_node << ' '
           << paths.between_nodes << ' ' << paths.slowest;
      for (const Crossing& crossing : paths.crossings) text << ' ' << crossing.link << 'x' << crossing.multiplicity;
      text << '\n';
    }
  }
  for (const RankIndex rank : world.class_of) text << rank << ' ';
  for (const auto& of_slot : world.communicator_of)
    for (const CommunicatorId id : of_slot) text << id << ' ';
  return text.str();
}

/// A mesh on a cluster without faults, with all that rings, blocks and trees of communicators hang on.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}

  std::vector<std::string> overrides() {
    constexpr int most_ranks = 256;
    const bool experts = one_in(2), own_axis = experts && one_in(2);
    int ranks = 0, ep = 1, cp = 1;
    do {
      const int tp = number({1, 2, 4, 8}), pp = number({1, 2, 3}), dp = number({1, 2, 3, 4, 8, 16});
      cp = number({1, 2, 4});
      ep = experts ? number({2, 4, 8}) : 1;
      ranks = tp * pp * cp * dp * (own_axis ? ep : 1);
      list_ = {field("tp", tp), field("pp", pp), field("cp", cp), field("dp", dp)};
    } while (ranks < 16 || ranks > most_ranks);
    list_.push_back("parallelism.sp=true");
    set("parallelism.zero", {"0", "1", "2", "3"});
    set("parallelism.order",
        {"[tp,cp,ep,dp,pp]", "[dp,tp,pp,cp,ep]", "[tp,pp,dp,cp,ep]", "[cp,tp,dp,ep,pp]", "[tp,ep,cp,dp,pp]"});
    list_.push_back("model.layers=12");
    list_.push_back("training.global_batch=96");
    if (experts) add_experts(ep, own_axis);
    if (cp > 1) set("parallelism.cp_method", {"ring", "all-gather", "ulysses"});
    if (one_in(4)) set("parallelism.hsdp", {"2", "4"});
    if (one_in(4)) list_.push_back("model.tied_embeddings=true");
    if (one_in(4)) list_.push_back("model.kv_heads=2");
    add_cluster(ranks);
    return list_;
  }

 private:
  std::mt19937 random_;  // without the library's distributions, which differ between platforms
  std::vector<std::string> list_;

  bool one_in(unsigned n) { return random_() % n == 0; }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + random_() % values.size());
  }
  int number(std::initializer_list<int> values) { return one_of(values); }
  static std::string field(const std::string& name, int value) { return "parallelism." + name + "=" + std::to_string(value); }
  void set(const std::string& name, std::initializer_list<const char*> values) { list_.push_back(name + "=" + one_of(values)); }

  void add_experts(int ep, bool own_axis) {
    list_.push_back("model.moe={experts: 16, top_k: 4, ffn: 256}");
    list_.push_back(field("ep", ep));
    if (own_axis) list_.push_back("parallelism.expert_axis=own");
    if (one_in(3)) set("parallelism.etp", {"1", "2"});
    set("parallelism.dispatcher", {"nccl", "nccl", "deepep", "hybridep"});
  }

  void add_cluster(int ranks) {
    const int per_node = number({2, 4, 8, 8});
    list_.push_back("cluster.gpus=" + std::to_string(ranks));
    list_.push_back("cluster.gpus_per_node=" + std::to_string(per_node));
    list_.push_back("cluster.nics_per_node=" + std::to_string(one_in(4) ? per_node / 2 : per_node));
    set("cluster.fabric.leaf_ports", {"1", "2", "4", "8", "32"});
    set("cluster.fabric.pod_leaves", {"1", "2", "4", "8"});
    set("cluster.fabric.rail_optimized", {"true", "true", "false"});
    set("cluster.fabric.tiers", {"2", "3"});
    set("cluster.fabric.oversubscription", {"[1, 1, 1]", "[1, 2, 1]", "[1, 1, 2]"});
  }
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + '\n';
  return text;
}

bool is_that_of_each_rank(const Scenario& scenario) {
  return text_of(make_world(scenario, true)) == text_of(make_world(scenario, true, {.by_every_rank = true}));
}

std::size_t orbits_of(const Scenario& scenario) {
  const Mesh mesh(scenario.parallelism);
  return symmetry_of(scenario, mesh, Cluster(scenario.cluster), std::vector<std::uint32_t>(static_cast<std::size_t>(mesh.size())))
      .representatives()
      .size();
}

constexpr std::uint32_t parts = 8;
class SymmetryOfRandomMeshes : public testing::TestWithParam<std::uint32_t> {};

TEST_P(SymmetryOfRandomMeshes, LeavesTheWorldOfEachRank) {
  constexpr std::uint32_t seeds = 600;
  std::size_t compared = 0, symmetric = 0;
  for (std::uint32_t seed = GetParam(); seed < seeds; seed += parts) {
    const std::vector<std::string> overrides = Draw(seed).overrides();
    try {
      const Scenario scenario = parse_scenario(base_text(), "base", overrides);
      EXPECT_TRUE(is_that_of_each_rank(scenario)) << seed << '\n' << joined(overrides);
      ++compared;
      if (4 * orbits_of(scenario) <= static_cast<std::size_t>(scenario.parallelism.world_size())) ++symmetric;
    } catch (const InputError&) {  // drawn fields that do not go together
    }
  }
  EXPECT_GE(compared, 20U);
  EXPECT_GE(symmetric, 5U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SymmetryOfRandomMeshes, testing::Range<std::uint32_t>(0, parts));

const std::vector<std::string> own_axis{"model.moe={experts: 16, top_k: 2, ffn: 256}",
                                        "parallelism={tp: 8, sp: true, cp: 2, ep: 4, dp: 4, pp: 2, zero: 1, expert_axis: own}",
                                        "model.kv_heads=8",
                                        "cluster.gpus=512",
                                        "cluster.fabric.pod_leaves=1024",
                                        "training.global_batch=32"};

/// Of that mesh, where so many nodes hang on the same leaves.
Scenario on_leaves_of(int nodes) {
  std::vector<std::string> overrides = own_axis;
  overrides.push_back("cluster.fabric.leaf_ports=" + std::to_string(nodes));
  return parse_scenario(base_text(), "base", overrides);
}

// The ranks of a stage in a replica fill 8 nodes, one for each place along cp and ep. Where those hang on the same leaves, they
// are alike along every axis, though the ring of gradients goes on to the next replica; and so are replicas.
TEST(MeshSymmetry, RingsMayBeEnteredAnywhereBelowALeaf) {
  const Scenario scenario = on_leaves_of(8);
  EXPECT_EQ(orbits_of(scenario), 2U);
  EXPECT_TRUE(is_that_of_each_rank(scenario));
}

// With four nodes at a leaf the ring leaves a replica from half of its leaves, and enters the next at the other half. What lies
// along cp remains below one leaf, but no shift along ep does.
TEST(MeshSymmetry, RingsAreNotTurnedOverLeaves) {
  const Scenario scenario = on_leaves_of(4);
  EXPECT_EQ(orbits_of(scenario), 2U * 4U);
  EXPECT_TRUE(is_that_of_each_rank(scenario));
}

}  // namespace
}  // namespace tandem::scenarios::mesh_symmetry_test
