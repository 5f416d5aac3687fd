#include "scenarios/checks/warnings.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "scenarios/mesh/data_blocks.h"
#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/mesh/mesh.h"
#include "scenarios/mesh/rank_placement.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

class Warnings {
 public:
  explicit Warnings(const Scenario& scenario) : scenario_(scenario), p_(scenario.parallelism), mesh_(scenario.parallelism) {}

  std::vector<Warning> all() {
    communicators_beyond_the_node();
    small_shard_group();
    many_expert_ranks();
    hierarchy_of_one_level();
    selections_of_many_ranks();
    return std::move(found_);
  }

 private:
  const Scenario& scenario_;
  const ParallelismSpec& p_;
  const Mesh mesh_;
  std::vector<Warning> found_;

  void warn(std::string rule, std::vector<std::string> fields, std::string sentence) {
    found_.push_back({.rule = std::move(rule), .fields = std::move(fields), .sentence = std::move(sentence)});
  }

  /// Whether some group of ranks along these axes has members on several nodes.
  bool beyond_the_node(const std::vector<Axis>& axes) const {
    if (!p_.placement.is_packed()) return placed_beyond_the_node(axes);
    const std::int64_t node = scenario_.cluster.gpus_per_node;
    std::int64_t block = 1;  // of consecutive ranks, into which the mesh divides the world's; groups lie inside
    for (const Axis axis : axes)
      if (mesh_.extent(axis) > 1) block = std::max(block, mesh_.stride(axis) * mesh_.extent(axis));
    return scenario_.cluster.gpus > node && node % block != 0;
  }

  bool placed_beyond_the_node(const std::vector<Axis>& axes) const {
    const RankPlaces places(scenario_);
    for (std::uint32_t rank = 0; rank < mesh_.size(); ++rank) {
      const std::vector<std::uint32_t> group = mesh_.members(rank, axes);
      if (group.front() == rank &&
          std::ranges::any_of(group, [&](std::uint32_t r) { return places.node(r) != places.node(rank); }))
        return true;
    }
    return false;
  }

  /// Of the first group, which all others are like.
  bool experts_within_a_node() const {
    const RankPlaces places(scenario_);
    return std::ranges::all_of(ExpertMesh(p_, mesh_).members(0, ExpertAxis::expert),
                               [&](std::uint32_t rank) { return places.node(rank) == places.node(0); });
  }

  /// What a GPU has to other nodes, and inside its own.
  std::string slower_links() const {
    const ClusterSpec& cluster = scenario_.cluster;
    const double nics_per_gpu = static_cast<double>(cluster.nics_per_node) / static_cast<double>(cluster.gpus_per_node);
    const double nic_GBps = nics_per_gpu * cluster.nic_gbps / 8 * cluster.nic_efficiency;
    return fmt::format("at {:.0f} GB/s per GPU instead of NVLink's {:.0f}", nic_GBps,
                       cluster.nvlink_GBps * cluster.nvlink_efficiency);
  }

  void communicators_beyond_the_node() {
    const std::int64_t node = scenario_.cluster.gpus_per_node;
    if (p_.tp > 1 && beyond_the_node({Axis::tp})) {
      warn("tp-beyond-node", {"parallelism.tp", "parallelism.order", "cluster.gpus_per_node"},
           fmt::format("{} reaches beyond the node of {} GPUs: its collectives, which every layer waits for, cross the NICs {}",
                       named(Axis::tp, p_.tp), node, slower_links()));
    } else if (p_.cp > 1 && beyond_the_node({Axis::tp, Axis::cp})) {
      warn("cp-beyond-node", {"parallelism.cp", "parallelism.tp", "parallelism.order", "cluster.gpus_per_node"},
           fmt::format("{} * {} reaches beyond the node of {} GPUs: keys and values cross the NICs {}, which hides behind "
                       "attention only when sequences are long",
                       named(Axis::cp, p_.cp), named(Axis::tp, p_.tp), node, slower_links()));
    }
  }

  /// DeepSeek-V3 trains with ep 64 and at most 4 nodes per token (arXiv 2412.19437, sections 2.1.2 and 3.2.2).
  void many_expert_ranks() {
    constexpr std::int64_t manageable = 32;
    if (p_.ep <= manageable || scenario_.model.moe.node_limit > 0 || experts_within_a_node()) return;
    warn("many-expert-ranks", {"parallelism.ep", "model.moe.node_limit"},
         fmt::format("{} without a node limit: each token's {} choices may cross the NICs one by one; expected {} or less, or "
                     "model.moe.node_limit",
                     named(Axis::ep, p_.ep), scenario_.model.moe.top_k, named(Axis::ep, manageable)));
  }

  void hierarchy_of_one_level() {
    if (!scenario_.training.hierarchical_all_reduce || data_block(scenario_, mesh_) > 0) return;
    const std::int64_t members = data_members(mesh_);
    const bool one_node = members > 1 && data_members_by_node(scenario_, mesh_).first == members;
    warn("hierarchy-of-one-level", {"training.hierarchical_all_reduce", "parallelism.order", "cluster.gpus_per_node"},
         one_node
             ? fmt::format("hierarchical_all_reduce with all {} members of a data-parallel group on one node: gradients are "
                           "reduced in one level, as without it",
                           members)
             : std::string("hierarchical_all_reduce with one member of a data-parallel group on a node: gradients are reduced "
                           "in one level, as without it; expected several, with dp or cp further in in parallelism.order"));
  }

  /// See lowering/compress_top_k.cpp.
  void selections_of_many_ranks() {
    const CompressorSpec& compressor = scenario_.training.compressor;
    if (compressor.method != CompressionMethod::top_k) return;
    const auto members = static_cast<double>(data_members(mesh_));
    const auto gradient = static_cast<double>(size_of(scenario_.training.grad_dtype)),
               index = static_cast<double>(size_of(DType::i32));
    const double least_ratio = members * (gradient + index) / (2 * gradient);
    if (members < 2 || compressor.ratio > least_ratio) return;
    warn(
        "selections-of-many-ranks", {"training.compressor.ratio", "training.compressor.method", "parallelism.dp"},
        fmt::format("compressor.ratio {:g} among {:g} data-parallel ranks: each gathers the selections of all, {:.1f} times what "
                    "an all-reduce of whole gradients sends; expected a ratio well above {:g}",
                    compressor.ratio, members, least_ratio / compressor.ratio, least_ratio));
  }

  void small_shard_group() {
    constexpr std::int64_t worthwhile = 8;
    const std::int64_t shards = p_.hsdp > 0 ? p_.hsdp : p_.data_replicas() * p_.cp;
    if (p_.zero < 3 || shards == 1 || shards >= worthwhile) return;
    warn("small-shard-group", {"parallelism.zero", "parallelism.dp", "cluster.gpus"},
         fmt::format(
             "zero 3 over {} data-parallel ranks: weights are gathered for each forward and backward, and a GPU still keeps "
             "1/{} of them; expected {} or more, or zero 1",
             shards, shards, named(Axis::dp, worthwhile)));
  }
};

}  // namespace

std::vector<Warning> unwise_in(const Scenario& scenario) { return Warnings(scenario).all(); }

}  // namespace tandem::scenarios
