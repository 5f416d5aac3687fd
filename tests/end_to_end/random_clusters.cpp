#include "tests/end_to_end/random_clusters.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <random>

#include "scenarios/reading/load.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies {
namespace {

class ClusterDraw {
 public:
  explicit ClusterDraw(std::uint32_t seed) : random_(seed) { drawn_.seed = seed; }

  RandomCluster draw() {
    mesh();
    training();
    nodes();
    fabric();
    placement();
    faults();
    overlap();
    node_links();
    return std::move(drawn_);
  }

  std::vector<std::string> draw_network(int ranks) {
    world_ = ranks;
    nodes();
    fabric();
    placement();
    faults();
    node_links();
    return std::move(drawn_.overrides);
  }

 private:
  std::mt19937 random_;  // without the library's distributions, which differ between platforms
  RandomCluster drawn_;
  int tp_ = 1, pp_ = 1, cp_ = 1, dp_ = 1, ep_ = 1, world_ = 1, per_node_ = 1, nics_ = 0, nodes_ = 1;
  bool experts_ = false, sp_ = false;

  bool one_in(unsigned n) { return random_() % n == 0; }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  int number(std::initializer_list<int> values) { return *(values.begin() + below(static_cast<int>(values.size()))); }
  std::string text(std::initializer_list<const char*> values) {
    return *(values.begin() + below(static_cast<int>(values.size())));
  }
  void set(const std::string& field, const std::string& value) { drawn_.overrides.push_back(field + "=" + value); }
  void set(const std::string& field, int value) { set(field, std::to_string(value)); }
  void count(const std::string& feature) { drawn_.features.insert(feature); }

  void mesh() {
    constexpr int most_ranks = 64;
    bool own_axis = false;
    do {
      experts_ = one_in(3);
      own_axis = experts_ && one_in(2);
      tp_ = number({1, 2, 4, 8});
      pp_ = number({1, 2, 4});
      cp_ = number({1, 1, 2});
      dp_ = number({1, 2, 4, 8});
      ep_ = experts_ ? number({2, 4}) : 1;
      world_ = tp_ * pp_ * cp_ * dp_ * (own_axis ? ep_ : 1);
    } while (world_ < 4 || world_ > most_ranks);
    set("parallelism.tp", tp_);
    set("parallelism.pp", pp_);
    set("parallelism.cp", cp_);
    set("parallelism.dp", dp_);
    const std::string sp = experts_ ? "true" : text({"true", "false"});
    set("parallelism.sp", sp);
    sp_ = sp == "true";
    set("parallelism.zero", text({"0", "0", "1", "2", "3"}));
    set("parallelism.order", text({"[tp,cp,ep,dp,pp]", "[dp,tp,pp,cp,ep]", "[pp,dp,tp,cp,ep]", "[tp,pp,dp,cp,ep]",
                                   "[dp,pp,tp,cp,ep]", "[cp,ep,pp,tp,dp]"}));
    if (!experts_) return;
    set("parallelism.ep", ep_);
    set("parallelism.expert_axis", own_axis ? "own" : "folded");
    if (own_axis) count("own expert axis");
    set("model.moe", "{experts: 8, top_k: 2, ffn: 24}");
    if (one_in(3)) return;
    set("model.moe.load", "{zipf: 1.2}");
    count("hot expert");
  }

  void training() {
    const bool interleaved = pp_ > 1 && one_in(3);
    set("training.schedule", interleaved ? "interleaved-1f1b" : text({"1f1b", "gpipe"}));
    if (interleaved) set("parallelism.vpp", 2);
    set("model.layers", interleaved ? 2 * pp_ : std::max(2, pp_));
    set("model.hidden", text({"32", "256"}));
    set("model.kv_heads", text({"2", "8"}));
    set("training.global_batch", 32);
    set("training.overlap.dp", text({"true", "false"}));
    set("training.overlap.pp", text({"true", "false"}));
    set("training.bucket_MB", text({"0.002", "0.02", "1"}));
  }

  void nodes() {
    per_node_ = number({2, 4, 8});
    nodes_ = (world_ + per_node_ - 1) / per_node_;
    nics_ = number({per_node_, per_node_, per_node_ / 2, 2 * per_node_});
    set("cluster.gpus_per_node", per_node_);
    set("cluster.nics_per_node", nics_);
    if (one_in(4)) {
      set("cluster.pcie", "{ports: [{name: pcie, GBps: 30, gpus: 0-1}]}");
      count("PCIe port");
    }
    if (one_in(5)) {
      set("cluster.other_gpus", "[{nodes: " + std::to_string(below(nodes_)) + ", gpu: a100-80gb}]");
      count("other GPUs");
    }
  }

  void fabric() {
    const std::string kind = text({"fat-tree", "fat-tree", "fat-tree", "dragonfly+", "switch", "custom"});
    count(kind);
    if (one_in(3)) {
      set("cluster.fabric.routing", "ecmp");
      set("cluster.fabric.ecmp_seed", below(1000));
      set("cluster.fabric.flows", number({1, 2, 3, 4}));
      count("ECMP");
    }
    set("cluster.fabric.kind", kind);
    set("cluster.fabric.leaf_ports", text({"2", "4"}));
    set("cluster.fabric.pod_leaves", text({"2", "4", "8"}));
    set("cluster.fabric.rail_optimized", text({"true", "false"}));
    set("cluster.fabric.oversubscription", text({"[1,1,1]", "[1,2,4]", "[1,1,7]", "[2,3,1]"}));
    if (kind == "custom") set("cluster.fabric.switches", switches());
  }

  /// Leaves of neighbouring NICs or of every so-manieth, each below one or two spines by cables of different speeds.
  std::string switches() {
    const int nics = nodes_ * nics_, leaves = std::max(1, std::min(nics, number({2, 3, 4})));
    const bool neighbours = one_in(2);
    std::string list = "[{name: left}, {name: right, up: {to: left, gbps: 800}}";
    for (int leaf = 0; leaf < leaves; ++leaf) {
      std::string own;
      for (int nic = 0; nic < nics; ++nic) {
        if ((neighbours ? nic * leaves / nics : nic % leaves) == leaf) own += (own.empty() ? "" : ", ") + std::to_string(nic);
      }
      const auto uplink = [&](const char* to) {
        // One after the other: compilers differ in the order of operands.
        const std::string cables = text({"1", "2", "4"});
        const std::string gbps = text({"200", "400"});
        return std::string("{to: ") + to + ", cables: " + cables + ", gbps: " + gbps + "}";
      };
      list += ", {name: leaf" + std::to_string(leaf) + ", nics: [" + own + "], up: [" + uplink("left");
      if (one_in(2)) list += ", " + uplink("right");
      list += "]}";
    }
    return list + "]";
  }

  void placement() {
    if (one_in(5)) {
      set("parallelism.placement", "round-robin");
      count("round-robin");
    } else if (one_in(5)) {
      std::vector<int> gpus(static_cast<std::size_t>(world_));
      std::iota(gpus.begin(), gpus.end(), 0);
      for (int i = world_ - 1; i > 0; --i)
        std::swap(gpus[static_cast<std::size_t>(i)], gpus[static_cast<std::size_t>(below(i + 1))]);
      std::string list;
      for (const int gpu : gpus) list += (list.empty() ? "" : ",") + std::to_string(gpu);
      set("parallelism.placement", "[" + list + "]");
      count("shuffled");
    }
  }

  void faults() {
    const auto fault = [&](const std::string& kind, const std::string& where) {
      set("faults." + kind, "{" + where + (kind == "slow_link" ? ", factor: " + text({"0.3", "0.5", "0.8"}) + "}" : "}"));
    };
    const auto broken = [&](const std::string& feature, const std::string& where) {
      const std::string kind = text({"dead_link", "dead_link", "slow_link"});  // dead ones are refused more often
      fault(kind, where);
      count((kind == "dead_link" ? "dead " : "slow ") + feature);
    };
    const auto at = [](const std::string& what, int index) { return what + ": " + std::to_string(index); };
    const auto one_cable = [&](const std::string& bundle) {
      const std::string place = at(bundle, below(2));
      return place + ", " + at("cable", below(2));
    };
    if (one_in(5)) {
      set("faults.slow_gpu", "{rank: " + std::to_string(below(world_)) + ", factor: 0.8}");
      count("slow GPU");
    }
    switch (below(13)) {
      case 0:
      case 9:
        return broken("NIC", at("nic", below(nodes_ * nics_)));
      case 1:
      case 10:
        return broken("rail", at("rail", below(nics_)));
      case 2:
      case 3:
        return broken("leaf cable", one_cable("leaf"));
      case 4:
      case 5:
      case 6:
      case 7:
        return broken("pod cable", one_cable("pod"));
      case 8:
        fault("slow_link", at("gpu", below(world_)));
        return count("slow NVLink");
      default:
        return;
    }
  }

  void overlap() {
    if (tp_ == 1 || !sp_ || one_in(2)) return;
    set("training.overlap.tp", "true");
    count("tp overlap");
  }

  void node_links() {
    if (!one_in(4)) return;
    set("cluster.node_links", "mesh");
    set("cluster.nvls", "false");
    count("mesh in nodes");
  }
};

void count_layouts(RandomCluster& drawn) {
  for (const Communicator& communicator : drawn.folded.communicators) {
    if (communicator.axis == Axis::tp && communicator.layout.nodes > 1) drawn.features.insert("tp over nodes");
    if (communicator.layout.find(Algorithm::tree) != nullptr) drawn.features.insert("tree");
    if (communicator.layout.find(Algorithm::nvls) != nullptr) drawn.features.insert("NVLS");
  }
}

}  // namespace

std::string RandomCluster::text() const {
  return std::accumulate(overrides.begin(), overrides.end(), "seed " + std::to_string(seed) + ":",
                         [](const std::string& all, const std::string& one) { return all + " '" + one + "'"; });
}

std::vector<std::string> random_network(std::uint32_t seed, int ranks) { return ClusterDraw(seed).draw_network(ranks); }

std::vector<RandomCluster> random_clusters(std::size_t count, std::uint32_t first, std::uint32_t stride) {
  std::vector<RandomCluster> valid;
  for (std::size_t tries = 0; tries < 3 * count && valid.size() < count; ++tries) {
    RandomCluster drawn = ClusterDraw(first + static_cast<std::uint32_t>(tries) * stride).draw();
    try {
      drawn.scenario = tiny_cluster(drawn.overrides);
      drawn.folded = make_world(drawn.scenario, true);
    } catch (const InputError&) {
      continue;
    }
    count_layouts(drawn);
    valid.push_back(std::move(drawn));
  }
  return valid;
}

}  // namespace tandem::studies
