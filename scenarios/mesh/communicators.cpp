#include "scenarios/mesh/communicators.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/base/parallel.h"
#include "scenarios/mesh/colours.h"
#include "scenarios/mesh/communicator_axes.h"
#include "scenarios/mesh/data_blocks.h"
#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/mesh/mirrored_stages.h"
#include "scenarios/mesh/rank_placement.h"
#include "scenarios/mesh/token_routing.h"
#include "scenarios/schedules/chunk_layout.h"
#include "scenarios/schedules/chunk_placement.h"
#include "topology/layouts.h"

namespace tandem::scenarios {
namespace {

constexpr std::size_t index(Slot slot) { return static_cast<std::size_t>(slot); }

bool is_pair(Slot slot) {
  switch (slot) {
    case Slot::send_tensor:
    case Slot::send_context:
    case Slot::send_forward:
    case Slot::send_backward:
    case Slot::send_forward_descending:
    case Slot::send_backward_descending:
      return true;
    default:
      return false;
  }
}

/// One, or one for each expert or cast: their bandwidth is nothing to anybody, latency alone.
bool carries_few_numbers(Slot slot) {
  switch (slot) {
    case Slot::gradient_norm:
    case Slot::amax:
    case Slot::expert_load:
    case Slot::sequence_load:
      return true;
    default:
      return false;
  }
}

/// In a node HybridEP's own kernel writes to all others (csrc/hybrid_ep/extension/allgather.cu); over nodes it has NCCL gather.
bool gathers_directly(const Cluster& cluster, const std::vector<std::uint32_t>& gpus) {
  return std::ranges::all_of(gpus, [&](std::uint32_t gpu) { return cluster.node_of(gpu) == cluster.node_of(gpus.front()); });
}

Layout lay_experts(const Scenario& scenario, const Cluster& cluster, const std::vector<std::uint32_t>& gpus, Detail detail) {
  const Dispatcher dispatcher = scenario.parallelism.dispatcher;
  const Algorithm kernels = dispatcher == Dispatcher::hybridep ? Algorithm::hybridep : Algorithm::deepep;
  if (sends_once(dispatcher)) return lay_token_dispatch(cluster, gpus, copies_of_token(scenario), kernels);
  const auto limit = static_cast<std::uint32_t>(most_nodes_of_token(scenario));
  return lay_dispatch(cluster, gpus, static_cast<std::uint32_t>(scenario.model.moe.top_k), limit, detail);
}

}  // namespace

Layout lay_communicator(const Scenario& scenario, const Cluster& cluster, Slot of_rank, const std::vector<std::uint32_t>& gpus,
                        Detail detail) {
  const Slot slot = context_group_of(of_rank).first;
  if (is_pair(slot)) return lay_pair(cluster, gpus.front(), gpus.back(), detail);
  if (slot == Slot::expert) return lay_experts(scenario, cluster, gpus, detail);
  if (slot == Slot::routing && gathers_directly(cluster, gpus)) return lay_exchange(cluster, gpus, detail);
  if (slot == Slot::data_exchange || slot == Slot::expert_data_exchange || slot == Slot::context_exchange ||
      slot == Slot::context_heads)
    return lay_exchange(cluster, gpus, detail);
  if (slot == Slot::context && scenario.parallelism.cp_method == CpMethod::ulysses) return lay_exchange(cluster, gpus, detail);
  if (slot == Slot::to_host || slot == Slot::from_host) return lay_host_copy(cluster, gpus.front(), slot == Slot::to_host);
  if (carries_few_numbers(slot)) return lay_latency(cluster, gpus);
  return lay_group(cluster, gpus, algorithms(scenario, slot), detail);
}

namespace {

class Surveyor {
 public:
  Surveyor(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster, const Symmetry& symmetry,
           const WorldOptions& options)
      : scenario_(scenario),
        mesh_(mesh),
        cluster_(cluster),
        symmetry_(symmetry),
        detail_(options.detail),
        without_trees_(options.without_trees),
        mirrors_(options.folds_mirrors ? MirroredStages(scenario) : MirroredStages()),
        gpu_of_rank_(gpus_of_ranks(scenario)),
        link_number_(cluster.link_count(), FoldInput::absent),
        times_(cluster.link_count(), 0) {
    found_.fold.slots.assign(slot_count, std::vector<std::uint32_t>(symmetry.representatives().size(), FoldInput::absent));
  }

  CommunicatorSurvey survey() {
    groups(Slot::tp, tp_axes);
    if (scenario_.overlaps_tp()) ring(Axis::tp, Slot::send_tensor, Slot::receive_tensor);
    if (scenario_.kv_replicas() > 1) kv_replica_groups();
    if (const std::int64_t block = data_block(scenario_, mesh_); block > 0) {
      data_blocks(block);
    } else {
      groups(Slot::data, data_axes(scenario_));
      if (exchanges_gradients()) groups(Slot::data_exchange, data_axes(scenario_));
    }
    if (scenario_.training.local_steps()) groups(Slot::replicas, replica_axes);
    if (scenario_.training.offload.any()) host_copies();
    if (scenario_.parallelism.cp > 1) context();
    if (scenario_.model.moe.experts > 0) expert_groups();
    if (scenario_.parallelism.zero >= 1 || scenario_.model.moe.experts > 0) {
      groups(Slot::gradient_norm, norm_axes(scenario_));
    } else {
      groups(Slot::gradient_norm, {Axis::tp, Axis::pp});
    }
    if (scenario_.model.moe.balances_sequences() && scenario_.parallelism.cp > 1) groups(Slot::sequence_load, sequence_axes);
    if (scenario_.reduces_amax()) groups(Slot::amax, amax_axes(scenario_));
    if (scenario_.model.moe.expert_bias) groups(Slot::expert_load, stage_axes(scenario_));
    if (scenario_.parallelism.pp > 1) {
      const ChunkPlacement placement(scenario_);
      tie_token_tables(placement);
      pairs(placement.wraps());
      if (placement.descends()) descending_pairs();
      if (placement.copies() > 1) mirrors();
    }
    lay_all();
    std::size_t crossings = 0;
    for (const CommunicatorInstance& instance : found_.instances) {
      const Slot slot = seen(instance.slot, instance.members.front());
      found_.fold.communicator_colours.push_back(colour_of(slot, instance.size, instance.layout));
      for (const Paths& paths : instance.layout.paths) crossings += paths.crossings.size();
    }
    found_.fold.crossings.reserve(crossings);
    for (std::uint32_t id = 0; id < found_.instances.size(); ++id) add_crossings(id);
    return std::move(found_);
  }

 private:
  const Scenario& scenario_;
  const Mesh& mesh_;
  const Cluster& cluster_;
  const Symmetry& symmetry_;
  const Detail detail_;
  const SlotSet without_trees_;
  const MirroredStages mirrors_;
  const std::vector<std::uint32_t> gpu_of_rank_;
  CommunicatorSurvey found_;
  std::vector<std::uint32_t> link_number_;  ///< by physical link: its number in the fold
  std::vector<std::uint32_t> times_;        ///< by physical link, zero between uses
  std::vector<LinkId> touched_;
  Colours colours_;
  std::vector<std::uint64_t> colour_parts_;

  std::vector<std::uint32_t> gpus_of(const std::vector<std::uint32_t>& ranks) const {
    if (gpu_of_rank_.empty()) return ranks;
    std::vector<std::uint32_t> gpus;
    for (const std::uint32_t rank : ranks) gpus.push_back(gpu_of_rank_[rank]);
    return gpus;
  }

  Slot seen(Slot slot, std::uint32_t rank) const { return mirrors_.seen(slot, mesh_.coordinate(rank, Axis::pp)); }

  std::uint32_t& at(Slot slot, std::uint32_t rank) {
    return found_.fold.slots[index(seen(slot, rank))][symmetry_.orbit_of(rank)];
  }

  void groups(Slot slot, const std::vector<Axis>& axes) {
    groups(slot, [&](std::uint32_t rank) { return mesh_.members(rank, axes); });
  }

  void kv_replica_groups() {
    for (const std::uint32_t rank : symmetry_.representatives()) {
      if (at(Slot::kv_replicas, rank) == FoldInput::absent) add_group(Slot::kv_replicas, kv_replicas(scenario_, mesh_, rank));
    }
  }

  void expert_groups() {
    const ExpertMesh experts(scenario_.parallelism, mesh_);
    for (const auto& [slot, axis] : expert_slots) {
      const auto members = [&](std::uint32_t rank) { return expert_members(scenario_, mesh_, experts, rank, axis); };
      groups(slot, members);
      if (slot == Slot::expert && scenario_.parallelism.dispatcher == Dispatcher::hybridep) groups(Slot::routing, members);
      if (slot == Slot::expert_data && exchanges_gradients()) groups(Slot::expert_data_exchange, members);
    }
  }

  bool exchanges_gradients() const { return scenario_.training.compressor.method == CompressionMethod::one_bit; }

  template <typename Members>
  void groups(Slot slot, const Members& members_of) {
    for (const std::uint32_t rank : symmetry_.representatives()) {
      if (at(slot, rank) != FoldInput::absent) continue;
      std::vector<std::uint32_t> members = members_of(rank);
      if (members.size() < 2) return;
      add_group(slot, std::move(members));
    }
  }

  void host_copies() {
    for (const Slot slot : {Slot::to_host, Slot::from_host})
      for (const std::uint32_t rank : symmetry_.representatives()) add_group(slot, {rank});
  }

  /// Under dynamic context parallelism: neighbours of the context-parallel ranks, of each power of two.
  void context_groups() {
    const ParallelismSpec& p = scenario_.parallelism;
    for (std::int64_t size = 2; size < p.cp; size *= 2) {
      const auto members = [&](std::uint32_t rank) {
        const std::vector<std::uint32_t> all = mesh_.members(rank, context_axes);
        const auto ranks = static_cast<std::int32_t>(size), first = mesh_.coordinate(rank, Axis::cp) / ranks * ranks;
        return std::vector<std::uint32_t>(all.begin() + first, all.begin() + first + ranks);
      };
      if (scenario_.model.keeps_states()) groups(slot_of_context_group(Slot::context_exchange, size), members);
      if (p.cp_method == CpMethod::all_gather) {
        groups(slot_of_context_group(Slot::context, size), members);
        continue;
      }
      for (const std::uint32_t rank : symmetry_.representatives()) {
        const std::vector<std::uint32_t> group = members(rank);
        const auto place = static_cast<std::size_t>(std::ranges::find(group, rank) - group.begin());
        add_pair(slot_of_context_group(Slot::send_context, size), slot_of_context_group(Slot::receive_context, size), rank,
                 group[(place + 1) % group.size()]);
      }
    }
  }

  void context() {
    if (scenario_.parallelism.dynamic_cp) context_groups();
    if (scenario_.model.keeps_states()) groups(Slot::context_exchange, context_axes);
    const CpMethod method = scenario_.parallelism.cp_method;
    if (method == CpMethod::all_gather || method == CpMethod::ulysses) return groups(Slot::context, context_axes);
    const auto dealt = static_cast<std::int32_t>(scenario_.parallelism.heads_ranks());
    groups(Slot::context_heads, [&](std::uint32_t rank) {
      const std::vector<std::uint32_t> all = mesh_.members(rank, context_axes);
      const std::int32_t first = mesh_.coordinate(rank, Axis::cp) / dealt * dealt;
      return std::vector<std::uint32_t>(all.begin() + first, all.begin() + first + dealt);
    });
    ring(Axis::cp, Slot::send_context, Slot::receive_context, dealt);
  }

  /// From each rank to that `step` further along the axis, and from the last ones to the first.
  void ring(Axis axis, Slot send, Slot receive, std::int32_t step = 1) {
    for (const std::uint32_t rank : symmetry_.representatives()) {
      Coordinates place = mesh_.coordinates(rank);
      place[axis] = static_cast<std::int32_t>((place[axis] + step) % mesh_.extent(axis));
      const std::uint32_t next = mesh_.rank(place);
      add_pair(send, receive, rank, next);
    }
  }

  void data_blocks(std::int64_t block) {
    for (const std::uint32_t rank : symmetry_.representatives()) {
      const std::vector<std::uint32_t> all = mesh_.members(rank, data_axes(scenario_));
      if (at(Slot::data_block, rank) == FoldInput::absent) add_group(Slot::data_block, in_block(all, rank, block));
      if (at(Slot::data_across, rank) == FoldInput::absent) add_group(Slot::data_across, across_blocks(all, rank, block));
    }
  }

  void add_group(Slot slot, std::vector<std::uint32_t> members) { add(slot, slot, std::move(members)); }

  void add_pair(Slot send, Slot receive, std::uint32_t from, std::uint32_t to) { add(send, receive, {from, to}); }

  /// The first stage and those others that look tokens up or multiply with the same table.
  void tie_token_tables(const ChunkPlacement& placement) {
    if (placement.ends_meet()) return;
    const std::vector<std::int32_t> parts = parts_with_token_table(scenario_);
    if (parts.size() < 2) return;
    for (const std::uint32_t rank : symmetry_.representatives()) {
      Coordinates place = mesh_.coordinates(rank);
      if (place[Axis::pp] != 0) continue;
      std::vector<std::uint32_t> members;
      for (const std::int32_t part : parts) {
        place[Axis::pp] = placement.stage(part);
        members.push_back(mesh_.rank(place));
      }
      add_group(Slot::embedding, std::move(members));
    }
  }

  /// From each stage to the next, and with several model chunks from the last stage on to the first.
  void pairs(bool wraps) {
    const auto stages = static_cast<std::int32_t>(scenario_.parallelism.pp);
    for (const std::uint32_t rank : symmetry_.representatives()) {
      Coordinates place = mesh_.coordinates(rank);
      if (place[Axis::pp] == stages - 1 && !wraps) continue;
      place[Axis::pp] = (place[Axis::pp] + 1) % stages;
      const std::uint32_t next = mesh_.rank(place);
      add_pair(Slot::send_forward, Slot::receive_forward, rank, next);
      add_pair(Slot::send_backward, Slot::receive_backward, next, rank);
    }
  }

  void descending_pairs() {
    for (const std::uint32_t rank : symmetry_.representatives()) {
      Coordinates place = mesh_.coordinates(rank);
      if (place[Axis::pp] == 0) continue;
      --place[Axis::pp];
      const std::uint32_t next = mesh_.rank(place);
      add_pair(Slot::send_forward_descending, Slot::receive_forward_descending, rank, next);
      add_pair(Slot::send_backward_descending, Slot::receive_backward_descending, next, rank);
    }
  }

  void mirrors() {
    const auto stages = static_cast<std::int32_t>(scenario_.parallelism.pp);
    for (const std::uint32_t rank : symmetry_.representatives()) {
      Coordinates place = mesh_.coordinates(rank);
      if (2 * place[Axis::pp] >= stages) continue;
      place[Axis::pp] = stages - 1 - place[Axis::pp];
      const std::vector members{rank, mesh_.rank(place)};
      add_group(Slot::mirror, members);
    }
  }

  /// `first` is the slot of the first member, `others` that of the rest.
  void add(Slot first, Slot others, std::vector<std::uint32_t> members) {
    const auto id = static_cast<std::uint32_t>(found_.instances.size());
    const bool pair = first != others;
    std::uint32_t orbits = 0;
    for (std::size_t m = 0; m < members.size(); ++m) {
      std::uint32_t& communicator = at(m == 0 ? first : others, members[m]);
      if (communicator != id) ++orbits;
      communicator = id;
    }
    // Each rank of the orbits that take part is in exactly one communicator of this orbit, through this slot.
    const auto size = static_cast<std::uint32_t>(members.size());
    const std::uint32_t orbit = pair ? symmetry_.orbit_size() : orbits * symmetry_.orbit_size() / size;
    found_.fold.members_per_rank.push_back(symmetry_.orbit_size() / orbit);
    found_.instances.push_back({first, size, orbit, std::move(members), {}});
  }

  /// Lays all communicators, several at a time: none looks at another.
  void lay_all() {
    constexpr std::size_t members_of_piece = 4096;  // fewer are not worth a thread
    std::vector<std::size_t> begin{0};
    std::size_t members = 0;
    for (std::size_t id = 0; id < found_.instances.size(); ++id) {
      members += found_.instances[id].size;
      if (members < members_of_piece && id + 1 < found_.instances.size()) continue;
      begin.push_back(id + 1);
      members = 0;
    }
    in_parallel(begin.size() - 1, [&](std::size_t piece) {
      for (std::size_t id = begin[piece]; id < begin[piece + 1]; ++id) {
        CommunicatorInstance& instance = found_.instances[id];
        instance.layout = lay_communicator(scenario_, cluster_, instance.slot, gpus_of(instance.members), detail_);
      }
    });
  }

  /// All that its collectives' times depend on, but for the links.
  std::uint64_t colour_of(Slot slot, std::uint32_t size, const Layout& layout) {
    colour_parts_ = {index(slot), size, layout.nodes};
    for (const Seconds latency : {layout.intra_latency, layout.inter_latency})
      colour_parts_.push_back(std::bit_cast<std::uint64_t>(latency));
    for (const Paths& paths : layout.paths) {
      colour_parts_.push_back(std::uint64_t{paths.channels} << 8 | static_cast<std::uint64_t>(paths.algorithm));
      for (const BytesPerSecond rate : {paths.bandwidth, paths.in_node, paths.between_nodes, paths.slowest})
        colour_parts_.push_back(std::bit_cast<std::uint64_t>(rate));
    }
    return colours_.of(colour_parts_);
  }

  void add_crossings(std::uint32_t id) {
    const CommunicatorInstance& instance = found_.instances[id];
    const bool without_trees = without_trees_.test(index(instance.slot));
    for (std::uint32_t path = 0; path < instance.layout.paths.size(); ++path) {
      if (without_trees && is_of_trees(instance.layout.paths[path].algorithm)) continue;
      for (const Crossing& crossing : instance.layout.paths[path].crossings) {
        const LinkId link = symmetry_.representative_link(crossing.link);
        if (times_[link] == 0) touched_.push_back(link);
        times_[link] += crossing.multiplicity;
      }
      for (const LinkId link : touched_) {
        const std::uint32_t of_communicator = std::exchange(times_[link], 0);
        std::uint32_t& number = link_number_[link];
        if (number == FoldInput::absent) {
          number = static_cast<std::uint32_t>(found_.links.size());
          found_.links.push_back(link);
        }
        const auto of_link =
            static_cast<std::uint32_t>(std::uint64_t{of_communicator} * instance.orbit / symmetry_.link_orbit_size(link));
        found_.fold.crossings.push_back({id, number, of_communicator, of_link, path});
      }
      touched_.clear();
    }
  }
};

}  // namespace

CommunicatorSurvey survey_communicators(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster,
                                        const Symmetry& symmetry, const WorldOptions& options) {
  return Surveyor(scenario, mesh, cluster, symmetry, options).survey();
}

}  // namespace tandem::scenarios
