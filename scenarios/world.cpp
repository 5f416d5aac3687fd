#include "scenarios/world.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

#include "scenarios/communicators.h"
#include "scenarios/data_blocks.h"
#include "scenarios/expert_mesh.h"
#include "scenarios/routing.h"

namespace tandem {
namespace {

Axis axis_of(Slot slot) {
  switch (slot) {
    case Slot::tp:
    case Slot::kv_replicas:
      return Axis::tp;
    case Slot::context:
    case Slot::send_context:
    case Slot::receive_context:
      return Axis::cp;
    case Slot::expert:
      return Axis::ep;
    case Slot::expert_tensor:
      return Axis::tp;
    case Slot::data:
    case Slot::data_block:
    case Slot::data_across:
    case Slot::expert_data:
    case Slot::gradient_norm:
    case Slot::replicas:
      return Axis::dp;
    default:
      return Axis::pp;
  }
}

const char* family_of(Slot slot) {
  switch (slot) {
    case Slot::tp:
      return "tp";
    case Slot::kv_replicas:
      return "kv replicas";
    case Slot::data:
      return "dp";
    case Slot::context:
      return "cp";
    case Slot::send_context:
    case Slot::receive_context:
      return "cp ring";
    case Slot::data_block:
      return "dp block";
    case Slot::data_across:
      return "dp across blocks";
    case Slot::expert:
      return "ep";
    case Slot::expert_tensor:
      return "etp";
    case Slot::expert_data:
      return "expert dp";
    case Slot::gradient_norm:
      return "gradient norm";
    case Slot::embedding:
      return "embedding";
    case Slot::replicas:
      return "dp replicas";
    case Slot::mirror:
      return "mirror";
    case Slot::send_forward:
    case Slot::send_forward_descending:
      return "pp forward";
    default:
      return "pp backward";
  }
}

/// By world rank; GPUs of one speed share a device.
std::vector<std::uint32_t> assign_devices(const Scenario& scenario, World& world) {
  std::vector<std::uint32_t> device_of(static_cast<std::size_t>(scenario.parallelism.world()), 0);
  world.devices.push_back(scenario.cluster.gpu);
  for (const SlowGpu& slow : scenario.slow_gpus) {
    const auto known = std::ranges::find(world.devices, slow.factor, &Device::speed);
    device_of[static_cast<std::size_t>(slow.rank)] = static_cast<std::uint32_t>(known - world.devices.begin());
    if (known != world.devices.end()) continue;
    Device device = scenario.cluster.gpu;
    device.speed = slow.factor;
    device.name += " (slow)";
    world.devices.push_back(std::move(device));
  }
  return device_of;
}

/// By world rank: equal where program and device are. A program is its pipeline stage's; with contiguous runs of positions,
/// later context-parallel ranks see more keys than earlier ones. Zigzag chunks give all of them equal work, in every hop of a
/// ring. Under uneven load, ranks of other experts have other numbers of tokens to compute.
std::vector<std::uint32_t> colour_ranks(const Scenario& scenario, const Mesh& mesh, const std::vector<std::uint32_t>& device_of,
                                        const World& world) {
  const ParallelismSpec& p = scenario.parallelism;
  const bool uneven = p.cp_layout == CpLayout::contiguous && p.cp_method != CpMethod::ulysses;
  const std::vector<std::uint32_t> alike = scenario.model.moe.experts > 0 ? alike_parts(scenario) : std::vector<std::uint32_t>{};
  const ExpertMesh experts(p, mesh);
  std::vector<std::uint32_t> colours;
  for (std::uint32_t rank = 0; rank < device_of.size(); ++rank) {
    const Coordinates place = mesh.coordinates(rank);
    auto program = static_cast<std::size_t>(place[MeshAxis::pp] * p.cp + (uneven ? place[MeshAxis::cp] : 0));
    if (!alike.empty()) program = program * alike.size() + alike[static_cast<std::size_t>(experts.place(rank).ep)];
    colours.push_back(static_cast<std::uint32_t>(program * world.devices.size() + device_of[rank]));
  }
  return colours;
}

void add_communicators(const CommunicatorSurvey& survey, const Partition& partition, World& world) {
  for (const std::uint32_t original : partition.communicators.representative) {
    const CommunicatorInstance& instance = survey.instances[original];
    world.communicators.push_back({.name = family_of(instance.slot),
                                   .axis = axis_of(instance.slot),
                                   .members = instance.members,
                                   .layout = {.nodes = instance.layout.nodes,
                                              .intra_latency = instance.layout.intra_latency,
                                              .inter_latency = instance.layout.inter_latency,
                                              .paths = {}}});
    for (const Paths& paths : instance.layout.paths)
      world.communicators.back().layout.paths.push_back({.algorithm = paths.algorithm, .channels = paths.channels});
  }
}

template <typename Visit>
void for_each_hop_crossing(World& world, const Visit& visit) {
  for (Communicator& communicator : world.communicators) {
    for (Paths& paths : communicator.layout.paths) {
      for (Hop& hop : paths.hops) std::ranges::for_each(hop.crossings, visit);
    }
  }
}

/// Of a world that is not folded: its communicators and links are the survey's.
void add_hops(const CommunicatorSurvey& survey, World& world) {
  std::unordered_map<LinkId, LinkId> number;
  for (LinkId id = 0; id < survey.links.size(); ++id) number.emplace(survey.links[id], id);
  for (std::size_t c = 0; c < world.communicators.size(); ++c) {
    const std::vector<Paths>& laid = survey.instances[c].layout.paths;
    for (std::size_t p = 0; p < laid.size(); ++p) world.communicators[c].layout.paths[p].hops = laid[p].hops;
  }
  for_each_hop_crossing(world, [&](Crossing& crossing) { crossing.link = number.at(crossing.link); });
}

/// The crossings of the class representatives: how often the representative of a class of links is crossed by all communicators
/// of a class together. A common factor of all crossings of a link goes into its capacity.
void add_links(const CommunicatorSurvey& survey, const Partition& partition, const Cluster& cluster, const Symmetry& symmetry,
               World& world) {
  std::map<std::array<std::uint32_t, 3>, std::uint32_t> multiplicity;  // by communicator class, path, link class
  for (const FoldInput::Crossing& crossing : survey.fold.crossings) {
    const std::uint32_t link = partition.links.of[crossing.link];
    if (partition.links.representative[link] != crossing.link) continue;
    multiplicity[{partition.communicators.of[crossing.communicator], crossing.path, link}] += crossing.of_link;
  }
  std::vector<std::uint32_t> common(partition.links.count(), 0);
  for (const auto& [key, times] : multiplicity) common[key[2]] = std::gcd(common[key[2]], times);
  for_each_hop_crossing(
      world, [&](const Crossing& crossing) { common[crossing.link] = std::gcd(common[crossing.link], crossing.multiplicity); });

  for (LinkId id = 0; id < partition.links.count(); ++id) {
    Link link = cluster.link(survey.links[partition.links.representative[id]]);
    link.capacity /= common[id];
    link.count = 0;
    world.links.push_back(std::move(link));
  }
  for (std::uint32_t orbit = 0; orbit < survey.links.size(); ++orbit) {
    world.links[partition.links.of[orbit]].count += symmetry.link_orbit_size(survey.links[orbit]);
  }
  for (const auto& [key, times] : multiplicity) {
    world.communicators[key[0]].layout.paths[key[1]].crossings.push_back({key[2], times / common[key[2]]});
  }
  for_each_hop_crossing(world, [&](Crossing& crossing) { crossing.multiplicity /= common[crossing.link]; });
}

void add_ranks(const CommunicatorSurvey& survey, const Partition& partition, const ParallelismSpec& parallelism, const Mesh& mesh,
               const Symmetry& symmetry, const std::vector<std::uint32_t>& device_of, World& world) {
  const ExpertMesh experts(parallelism, mesh);
  for (std::uint32_t id = 0; id < partition.ranks.count(); ++id) {
    const std::uint32_t orbit = partition.ranks.representative[id];
    const std::uint32_t rank = symmetry.representatives()[orbit];
    const Coordinates place = mesh.coordinates(rank);
    world.ranks.push_back({.world_rank = rank,
                           .count = partition.ranks.size[id] * symmetry.orbit_size(),
                           .tp = place[MeshAxis::tp],
                           .cp = place[MeshAxis::cp],
                           .ep = experts.place(rank).ep,
                           .dp = place[MeshAxis::dp],
                           .pp = place[MeshAxis::pp],
                           .device = device_of[rank]});
    auto& of_slot = world.communicator_of.emplace_back();
    for (std::size_t slot = 0; slot < slot_count; ++slot) {
      const std::uint32_t instance = survey.fold.slots[slot][orbit];
      of_slot[slot] = instance == FoldInput::absent ? no_id : partition.communicators.of[instance];
    }
  }
  world.class_of.resize(static_cast<std::size_t>(mesh.size()));
  for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) world.class_of[rank] = partition.ranks.of[symmetry.orbit_of(rank)];
}

}  // namespace

World make_world(const Scenario& scenario, bool folded, bool hops) {
  if (folded && hops) throw std::logic_error("hops are laid for a world that is not folded alone");
  const Mesh mesh(scenario.parallelism);
  const Cluster cluster(scenario.cluster);
  World world;
  const std::vector<std::uint32_t> device_of = assign_devices(scenario, world);
  const std::vector<std::uint32_t> colours = colour_ranks(scenario, mesh, device_of, world);
  const Symmetry symmetry =
      folded && cluster.is_regular() && scenario.parallelism.placement.is_packed()
          ? Symmetry(mesh, cluster, colours,
                     {.rings = ring_axes(scenario),
                      .trees = tree_axes(scenario, mesh, cluster),
                      .data_block = data_block(scenario, mesh),
                      .successors = other_rings(scenario, mesh)})
          : Symmetry(mesh, cluster);
  CommunicatorSurvey survey = survey_communicators(scenario, mesh, cluster, symmetry, hops ? Detail::hops : Detail::sums);

  for (const std::uint32_t rank : symmetry.representatives()) survey.fold.rank_colours.push_back(colours[rank]);
  for (const LinkId id : survey.links) {
    const Link link = cluster.link(id);
    survey.fold.link_colours.push_back(std::bit_cast<std::uint64_t>(link.capacity) + static_cast<std::uint64_t>(link.tier));
  }
  const Partition partition = folded ? fold(survey.fold) : unfolded(survey.fold);
  add_communicators(survey, partition, world);
  if (hops) add_hops(survey, world);
  add_links(survey, partition, cluster, symmetry, world);
  add_ranks(survey, partition, scenario.parallelism, mesh, symmetry, device_of, world);
  return world;
}

}  // namespace tandem
