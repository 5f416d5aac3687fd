#include "scenarios/mesh/world.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "runtime/base/input_error.h"
#include "runtime/base/si.h"
#include "runtime/dag/nonbinding_links.h"
#include "scenarios/mesh/attended_keys.h"
#include "scenarios/mesh/cable_shares.h"
#include "scenarios/mesh/colours.h"
#include "scenarios/mesh/communicator_axes.h"
#include "scenarios/mesh/communicators.h"
#include "scenarios/mesh/even_trees.h"
#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/mesh/families.h"
#include "scenarios/mesh/mesh_symmetry.h"
#include "scenarios/mesh/mirrored_stages.h"
#include "scenarios/mesh/owners.h"
#include "scenarios/mesh/rank_placement.h"
#include "scenarios/mesh/slowest_gpu.h"
#include "scenarios/mesh/token_routing.h"

namespace tandem::scenarios {
namespace {

/// By GPU of the cluster: 0 for its own model, n + 1 for the n-th of the others.
std::vector<std::uint32_t> models_of_gpus(const ClusterSpec& cluster) {
  std::vector<std::uint32_t> models(static_cast<std::size_t>(cluster.gpus), 0);
  for (std::uint32_t other = 0; other < cluster.other_gpus.size(); ++other) {
    for (const IndexRange& nodes : cluster.other_gpus[other].nodes) {
      const std::int64_t end = std::min((nodes.last + 1) * cluster.gpus_per_node, cluster.gpus);
      for (std::int64_t gpu = nodes.first * cluster.gpus_per_node; gpu < end; ++gpu)
        models[static_cast<std::size_t>(gpu)] = other + 1;
    }
  }
  return models;
}

/// By world rank; GPUs of one model and speed share a device.
std::vector<std::uint32_t> assign_devices(const Scenario& scenario, World& world) {
  const ClusterSpec& cluster = scenario.cluster;
  const RankPlaces places(scenario);
  const std::vector<std::uint32_t> models = models_of_gpus(cluster);
  std::vector<double> speeds(static_cast<std::size_t>(scenario.parallelism.world_size()), 1);
  for (const SlowGpu& slow : scenario.slow_gpus) speeds[static_cast<std::size_t>(slow.rank)] = slow.factor;
  std::vector<std::uint32_t> device_of;
  std::vector<std::pair<std::uint32_t, double>> known;  // model and speed of each device
  for (std::uint32_t rank = 0; rank < speeds.size(); ++rank) {
    const std::pair kind{models[places.gpu(rank)], speeds[rank]};
    const auto found = std::ranges::find(known, kind);
    device_of.push_back(static_cast<std::uint32_t>(found - known.begin()));
    if (found != known.end()) continue;
    known.push_back(kind);
    world.devices.push_back(kind.first == 0 ? cluster.gpu : cluster.other_gpus[kind.first - 1].gpu);
    // Where speeds are drawn, the slowest one's is among them.
    const double spread = scenario.jitter.rank > 0 ? 0 : world.devices.back().efficiency.spread;
    world.devices.back().host_bandwidth = cluster.host.memory_GBps * giga / static_cast<double>(cluster.gpus_per_node);
    world.devices.back().speed = kind.second * slowest_of(speeds.size(), spread) / world.devices.back().site.kernels;
  }
  return device_of;
}

/// By world rank: equal where program and device are. A program is its pipeline stage's or its mirror's, and attends to as many
/// keys as its context-parallel rank's positions see; replicas that read other documents have other work. Under uneven load,
/// ranks of other experts have other numbers of tokens to compute. Where Muon's matrices are dealt out to data-parallel ranks,
/// each has its own to update.
std::vector<std::uint32_t> colour_ranks(const Scenario& scenario, const Mesh& mesh, const std::vector<std::uint32_t>& device_of,
                                        const MirroredStages& mirrors, const World& world) {
  const ParallelismSpec& p = scenario.parallelism;
  const std::int64_t streams = scenario.training.documents.any() ? scenario.training.documents.streams : 1;
  const std::vector<std::uint32_t> attention = work_of_context_ranks(scenario);
  const std::vector<std::uint32_t> alike = scenario.model.moe.experts > 0 ? alike_parts(scenario) : std::vector<std::uint32_t>{};
  const bool parts_differ = std::ranges::any_of(alike, [](std::uint32_t first_like_it) { return first_like_it > 0; });
  const ExpertMesh experts(p, mesh);
  const bool owners_differ = scenario.training.optimizer == OptimizerKind::muon && p.zero > 0;
  const std::vector<std::uint32_t> shares = owners_differ ? muon_shares(scenario, mesh) : std::vector<std::uint32_t>{};
  const std::size_t different_shares = owners_differ ? std::ranges::max(shares) + std::size_t{1} : 1;
  std::vector<std::uint32_t> colours;
  colours.reserve(device_of.size());
  Coordinates place;
  for (std::uint32_t rank = 0; rank < device_of.size(); ++rank, mesh.advance(place)) {
    auto program =
        static_cast<std::size_t>(mirrors.program(place[Axis::pp]) * p.cp + attention[static_cast<std::size_t>(place[Axis::cp])]);
    const std::int64_t replica = p.own_expert_axis ? place[Axis::dp] * p.ep + place[Axis::ep] : place[Axis::dp];
    program = program * static_cast<std::size_t>(streams) + static_cast<std::size_t>(replica % streams);
    if (parts_differ) program = program * alike.size() + alike[static_cast<std::size_t>(experts.place(rank).ep)];
    if (owners_differ) program = program * different_shares + shares[rank];
    colours.push_back(static_cast<std::uint32_t>(program * world.devices.size() + device_of[rank]));
  }
  return colours;
}

void add_communicators(const CommunicatorSurvey& survey, const Partition& partition, World& world) {
  for (const std::uint32_t original : partition.communicators.representative) {
    const CommunicatorInstance& instance = survey.instances[original];
    world.communicators.push_back({.name = std::string(family_of(instance.slot)),
                                   .axis = axis_of(instance.slot),
                                   .members = instance.members,
                                   .layout = {.nodes = instance.layout.nodes,
                                              .intra_latency = instance.layout.intra_latency,
                                              .inter_latency = instance.layout.inter_latency,
                                              .paths = {}}});
    for (const Paths& paths : instance.layout.paths)
      world.communicators.back().layout.paths.push_back({.algorithm = paths.algorithm,
                                                         .channels = paths.channels,
                                                         .bandwidth = paths.bandwidth,
                                                         .in_node = paths.in_node,
                                                         .between_nodes = paths.between_nodes,
                                                         .slowest = paths.slowest});
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

using ClassCrossings = std::map<std::array<std::uint32_t, 3>, std::uint32_t>;  ///< by communicator class, path, link class

/// How often the representative of a class of links is crossed by all communicators of a class together.
ClassCrossings crossings_of_classes(const CommunicatorSurvey& survey, const Partition& partition) {
  ClassCrossings times;
  for (const FoldInput::Crossing& crossing : survey.fold.crossings) {
    const std::uint32_t link = partition.links.of[crossing.link];
    if (partition.links.representative[link] != crossing.link) continue;
    times[{partition.communicators.of[crossing.communicator], crossing.path, link}] += crossing.of_link;
  }
  return times;
}

void add_links(const CommunicatorSurvey& survey, const Partition& partition, const Cluster& cluster, const Symmetry& symmetry,
               const ClassCrossings& of_even_trees, World& world) {
  ClassCrossings multiplicity = crossings_of_classes(survey, partition);
  for (const auto& [key, times] : of_even_trees) multiplicity[key] = times;
  for (LinkId id = 0; id < partition.links.count(); ++id) {
    Link link = cluster.link(survey.links[partition.links.representative[id]]);
    link.count = 0;
    world.links.push_back(std::move(link));
  }
  for (std::uint32_t orbit = 0; orbit < survey.links.size(); ++orbit) {
    world.links[partition.links.of[orbit]].count += symmetry.link_orbit_size(survey.links[orbit]);
  }
  for (const auto& [key, times] : multiplicity) {
    world.communicators[key[0]].layout.paths[key[1]].crossings.push_back({key[2], times});
  }
}

/// By class: how many ranks of it are on another stage than its representative, the mirrored one.
std::vector<std::uint32_t> count_mirrored(const Partition& partition, const Mesh& mesh, const Symmetry& symmetry) {
  const auto stage = [&](std::uint32_t orbit) { return mesh.coordinate(symmetry.representatives()[orbit], Axis::pp); };
  std::vector<std::uint32_t> mirrored(partition.ranks.count(), 0);
  for (std::uint32_t orbit = 0; orbit < symmetry.representatives().size(); ++orbit) {
    const std::uint32_t id = partition.ranks.of[orbit];
    if (stage(orbit) != stage(partition.ranks.representative[id])) mirrored[id] += symmetry.orbit_size();
  }
  return mirrored;
}

void add_ranks(const CommunicatorSurvey& survey, const Partition& partition, const ParallelismSpec& parallelism, const Mesh& mesh,
               const Symmetry& symmetry, const std::vector<std::uint32_t>& colours, const std::vector<std::uint32_t>& device_of,
               const MirroredStages& mirrors, World& world) {
  const ExpertMesh experts(parallelism, mesh);
  const std::vector<std::uint32_t> mirrored = count_mirrored(partition, mesh, symmetry);
  for (std::uint32_t id = 0; id < partition.ranks.count(); ++id) {
    const std::uint32_t orbit = partition.ranks.representative[id];
    const std::uint32_t rank = symmetry.representatives()[orbit];
    const Coordinates place = mesh.coordinates(rank);
    world.ranks.push_back({.world_rank = rank,
                           .count = partition.ranks.size[id] * symmetry.orbit_size(),
                           .mirrored = mirrored[id],
                           .tp = place[Axis::tp],
                           .cp = place[Axis::cp],
                           .ep = experts.place(rank).ep,
                           .dp = place[Axis::dp],
                           .pp = place[Axis::pp],
                           .device = device_of[rank]});
    // A stage and its mirror have one colour, and exchange the copies of the model.
    world.program.push_back(2 * colours[rank] + (mirrors.is_mirror(place[Axis::pp]) ? 1 : 0));
    auto& of_slot = world.communicator_of.emplace_back();
    for (std::size_t slot = 0; slot < slot_count; ++slot) {
      const auto seen = static_cast<std::size_t>(mirrors.seen(static_cast<Slot>(slot), place[Axis::pp]));
      const std::uint32_t instance = survey.fold.slots[seen][orbit];
      of_slot[slot] = instance == FoldInput::absent ? no_id : partition.communicators.of[instance];
    }
  }
  world.class_of.resize(static_cast<std::size_t>(mesh.size()));
  for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) world.class_of[rank] = partition.ranks.of[symmetry.orbit_of(rank)];
}

/// What a merged communicator's worst cable leaves to it, as a link of its own. Of a class, the smallest share counts.
void add_worst_cables(const CommunicatorSurvey& survey, const Partition& partition, World& world) {
  constexpr double none = std::numeric_limits<double>::infinity();
  std::vector<std::vector<BytesPerSecond>> shares(world.communicators.size());
  for (std::size_t i = 0; i < survey.instances.size(); ++i) {
    const std::vector<BytesPerSecond>& of_instance = survey.instances[i].cable_shares;
    std::vector<BytesPerSecond>& least = shares[partition.communicators.of[i]];
    least.resize(of_instance.size(), none);
    for (std::size_t path = 0; path < of_instance.size(); ++path) least[path] = std::min(least[path], of_instance[path]);
  }
  for (CommunicatorId id = 0; id < world.communicators.size(); ++id) {
    for (std::size_t path = 0; path < shares[id].size(); ++path) {
      if (shares[id][path] == none) continue;
      Paths& paths = world.communicators[id].layout.paths[path];
      paths.crossings.push_back({static_cast<LinkId>(world.links.size()), 1});
      world.links.push_back({"worst cable of " + world.communicators[id].name, Tier::leaf, shares[id][path] / paths.channels,
                             partition.communicators.size[id]});
    }
  }
}

/// By link of the fold: those that hold nobody back. If so of the representatives of classes, then of all, as flows of a class
/// have one rate.
std::vector<bool> nonbinding_links_of(const CommunicatorSurvey& survey, const Partition& partition, const Cluster& cluster) {
  std::vector<PathUse> uses;
  std::pair<std::uint32_t, std::uint32_t> last{FoldInput::absent, 0};  // class of communicators and path
  std::uint32_t paths = 0;
  for (const auto& [key, times] : crossings_of_classes(survey, partition)) {
    if (std::exchange(last, std::pair{key[0], key[1]}) != std::pair{key[0], key[1]}) ++paths;
    uses.push_back({paths - 1, key[2], times});
  }
  std::vector<BytesPerSecond> capacities;
  for (const std::uint32_t link : partition.links.representative)
    capacities.push_back(cluster.unnamed_link(survey.links[link]).capacity);
  const std::vector<bool> of_class = nonbinding_links(capacities, uses);
  std::vector<bool> of_link;
  for (const std::uint32_t link_class : partition.links.of) of_link.push_back(of_class[link_class]);
  return of_link;
}

ClusterSpec spread_evenly(ClusterSpec spec) {
  spec.fabric.routing = FlowRouting::adaptive;
  return spec;
}

bool are_as_many(const Partition& a, const Partition& b) {
  return a.ranks.count() == b.ranks.count() && a.communicators.count() == b.communicators.count() &&
         a.links.count() == b.links.count();
}

/// Leaves `survey.fold.nonbinding` empty where every link was looked at, or where not to look at some makes no difference.
EvenFold fold_survey(CommunicatorSurvey& survey, const Cluster& cluster, const WorldOptions& options) {
  Partition partition = fold(survey.fold);
  const std::set<std::uint64_t> programs(survey.fold.rank_colours.begin(), survey.fold.rank_colours.end());
  if (!options.by_every_link && partition.ranks.count() > programs.size()) {
    survey.fold.nonbinding = nonbinding_links_of(survey, partition, cluster);
    Partition coarser = fold(survey.fold);
    if (are_as_many(coarser, partition) && options.even_trees.none()) survey.fold.nonbinding.clear();
    partition = std::move(coarser);
  }
  return options.even_trees.any() ? fold_evenly(survey, options.even_trees) : EvenFold{std::move(partition), {}};
}

World lay_and_fold(const Scenario& scenario, bool folded, const WorldOptions& options) {
  if (folded && options.detail == Detail::hops) throw std::logic_error("hops are laid for a world that is not folded alone");
  const Mesh mesh(scenario.parallelism);
  const bool merged = folded && options.merge.tolerance > 0 && scenario.cluster.fabric.routing == FlowRouting::ecmp;
  const Cluster cluster(merged ? spread_evenly(scenario.cluster) : scenario.cluster);
  World world;
  const std::vector<std::uint32_t> device_of = assign_devices(scenario, world);
  const MirroredStages mirrors = options.folds_mirrors ? MirroredStages(scenario) : MirroredStages();
  const std::vector<std::uint32_t> colours = colour_ranks(scenario, mesh, device_of, mirrors, world);
  const Symmetry symmetry = folded && !merged && !options.by_every_rank
                                ? symmetry_of(scenario, mesh, cluster, colours, options.without_trees)
                                : Symmetry(mesh, cluster);
  CommunicatorSurvey survey = survey_communicators(scenario, mesh, cluster, symmetry, options);
  if (merged) {
    const Cluster hashed(scenario.cluster);
    merge_cables(cable_shares(survey_communicators(scenario, mesh, hashed, Symmetry(mesh, hashed)), hashed, options.merge.among),
                 options.merge.tolerance, survey);
  }

  for (const std::uint32_t rank : symmetry.representatives()) survey.fold.rank_colours.push_back(colours[rank]);
  Colours link_colours;
  for (const LinkId id : survey.links) {
    const Link link = cluster.unnamed_link(id);
    const std::array parts{std::bit_cast<std::uint64_t>(link.capacity), static_cast<std::uint64_t>(link.tier)};
    survey.fold.link_colours.push_back(link_colours.of(parts));
  }
  const auto [partition, tree_loads] = folded ? fold_survey(survey, cluster, options) : EvenFold{unfolded(survey.fold), {}};
  add_communicators(survey, partition, world);
  if (options.detail == Detail::hops) add_hops(survey, world);
  add_links(survey, partition, cluster, symmetry, tree_loads, world);
  if (merged) add_worst_cables(survey, partition, world);
  add_ranks(survey, partition, scenario.parallelism, mesh, symmetry, colours, device_of, mirrors, world);
  world.options = options;
  world.options.by_every_link = survey.fold.nonbinding.empty();
  return world;
}

}  // namespace

SlotSet trees_in_question(const Scenario& scenario) {
  SlotSet slots;
  if (!reduces_whole_gradients(scenario)) return slots;
  slots.set(static_cast<std::size_t>(Slot::data));
  if (scenario.model.moe.experts > 0) slots.set(static_cast<std::size_t>(Slot::expert_data));
  return slots;
}

SlotSet slots_of(const World& world, const Dag& dag, const std::function<bool(TaskId)>& is_on_tree) {
  SlotSet slots;
  for (GroupId group = 0; group < dag.groups.size(); ++group) {
    const TaskId first = dag.members_of(group).front();
    const CommunicatorId communicator = dag.groups[group].communicator;
    for (std::size_t slot = 0; slot < slot_count; ++slot) {
      if (slots.test(slot) || world.communicator(dag.tasks[first].rank, static_cast<Slot>(slot)) != communicator) continue;
      if (is_on_tree(first)) slots.set(slot);
    }
  }
  return slots;
}

World make_world(const Scenario& scenario, bool folded, const WorldOptions& options) {
  try {
    return lay_and_fold(scenario, folded, options);
  } catch (const TopologyError& error) {
    throw InputError({.file = scenario.name}, error.what());
  }
}

}  // namespace tandem::scenarios
