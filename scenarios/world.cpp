#include "scenarios/world.h"

#include <bit>
#include <map>
#include <numeric>

#include "scenarios/communicators.h"

namespace tandem {
namespace {

Axis axis_of(Slot slot) {
  switch (slot) {
    case Slot::tp: return Axis::tp;
    case Slot::data:
    case Slot::gradient_norm: return Axis::dp;
    default: return Axis::pp;
  }
}

const char* family_of(Slot slot) {
  switch (slot) {
    case Slot::tp: return "tp";
    case Slot::data: return "dp";
    case Slot::gradient_norm: return "gradient norm";
    case Slot::embedding: return "embedding";
    case Slot::send_forward: return "pp forward";
    default: return "pp backward";
  }
}

/// By world rank; a slow GPU is a device of its own.
std::vector<std::uint32_t> assign_devices(const Scenario& scenario, World& world) {
  std::vector<std::uint32_t> device_of(static_cast<std::size_t>(scenario.parallelism.world()), 0);
  world.devices.push_back(scenario.cluster.gpu);
  for (const SlowGpu& slow : scenario.slow_gpus) {
    Device device = scenario.cluster.gpu;
    device.speed = slow.factor;
    device.name += " (slow)";
    device_of[static_cast<std::size_t>(slow.rank)] = static_cast<std::uint32_t>(world.devices.size());
    world.devices.push_back(std::move(device));
  }
  return device_of;
}

void add_communicators(const CommunicatorSurvey& survey, const Partition& partition, World& world) {
  for (const std::uint32_t original : partition.communicators.representative) {
    const CommunicatorInstance& instance = survey.instances[original];
    world.communicators.push_back({.name = family_of(instance.slot),
                                   .axis = axis_of(instance.slot),
                                   .members = survey.members(original),
                                   .ring = {.channels = instance.channels,
                                            .nodes = instance.nodes,
                                            .intra_latency = instance.intra_latency,
                                            .inter_latency = instance.inter_latency,
                                            .crossings = {}}});
  }
}

/// The crossings of the class representatives: how often the representative of a class of links is crossed by all communicators
/// of a class together. A common factor of all crossings of a link goes into its capacity.
void add_links(const CommunicatorSurvey& survey, const Partition& partition, const Cluster& cluster, World& world) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> multiplicity;  // (communicator class, link class)
  for (const FoldInput::Crossing& crossing : survey.fold.crossings) {
    const std::uint32_t link = partition.links.of[crossing.link];
    if (partition.links.representative[link] != crossing.link) continue;
    multiplicity[{partition.communicators.of[crossing.communicator], link}] += crossing.multiplicity;
  }
  std::vector<std::uint32_t> common(partition.links.count(), 0);
  for (const auto& [key, times] : multiplicity) common[key.second] = std::gcd(common[key.second], times);

  std::vector<LinkId> id_of(partition.links.count(), no_id);
  for (LinkId link = 0; link < partition.links.count(); ++link) {
    if (common[link] == 0) continue;
    id_of[link] = static_cast<LinkId>(world.links.size());
    Link laid = cluster.links()[partition.links.representative[link]];
    laid.capacity /= common[link];
    laid.count = partition.links.size[link];
    world.links.push_back(std::move(laid));
  }
  for (const auto& [key, times] : multiplicity) {
    world.communicators[key.first].ring.crossings.push_back({id_of[key.second], times / common[key.second]});
  }
}

void add_ranks(const CommunicatorSurvey& survey, const Partition& partition, const Mesh& mesh,
               const std::vector<std::uint32_t>& device_of, World& world) {
  world.class_of = partition.ranks.of;
  for (std::uint32_t id = 0; id < partition.ranks.count(); ++id) {
    const std::uint32_t rank = partition.ranks.representative[id];
    const Coordinates place = mesh.coordinates(rank);
    world.ranks.push_back({.world_rank = rank,
                           .count = partition.ranks.size[id],
                           .tp = place[MeshAxis::tp],
                           .cp = place[MeshAxis::cp],
                           .ep = place[MeshAxis::ep],
                           .dp = place[MeshAxis::dp],
                           .pp = place[MeshAxis::pp],
                           .device = device_of[rank]});
    auto& of_slot = world.communicator_of.emplace_back();
    for (std::size_t slot = 0; slot < slot_count; ++slot) {
      const std::uint32_t instance = survey.fold.slots[slot][rank];
      of_slot[slot] = instance == FoldInput::absent ? no_id : partition.communicators.of[instance];
    }
  }
}

}  // namespace

World make_world(const Scenario& scenario, bool folded) {
  const Mesh mesh(scenario.parallelism);
  const Cluster cluster(scenario.cluster);
  World world;
  const std::vector<std::uint32_t> device_of = assign_devices(scenario, world);
  CommunicatorSurvey survey = survey_communicators(scenario, mesh, cluster);

  // A rank's program is its pipeline stage's.
  for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) {
    const auto stage = static_cast<std::uint64_t>(mesh.coordinates(rank)[MeshAxis::pp]);
    survey.fold.rank_colours.push_back(stage << 32 | device_of[rank]);
  }
  for (const Link& link : cluster.links()) {
    survey.fold.link_colours.push_back(std::bit_cast<std::uint64_t>(link.capacity) + static_cast<std::uint64_t>(link.tier));
  }
  const Partition partition = folded ? fold(survey.fold) : unfolded(survey.fold);
  add_communicators(survey, partition, world);
  add_links(survey, partition, cluster, world);
  add_ranks(survey, partition, mesh, device_of, world);
  return world;
}

}  // namespace tandem
