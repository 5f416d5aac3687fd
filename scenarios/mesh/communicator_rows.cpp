#include "scenarios/mesh/communicator_rows.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "scenarios/mesh/communicators.h"
#include "scenarios/mesh/families.h"
#include "scenarios/mesh/mesh_symmetry.h"
#include "scenarios/mesh/rank_placement.h"
#include "topology/layouts.h"

namespace tandem::scenarios {
namespace {

using LinkCounts = std::array<std::uint32_t, tier_count>;

LinkCounts count_links(const Cluster& cluster, const Layout& layout) {
  LinkCounts counts{};
  for (const Crossing& crossing : layout.paths.front().crossings)
    ++counts[static_cast<std::size_t>(cluster.unnamed_link(crossing.link).tier)];
  return counts;
}

Reach reach_of(const Cluster& cluster, const LinkCounts& links) {
  const auto crosses = [&](Tier tier) { return links[static_cast<std::size_t>(tier)] > 0; };
  if (crosses(Tier::spine)) return Reach::core;
  if (crosses(Tier::leaf)) return Reach::pod;
  if (!crosses(Tier::nic)) return Reach::node;
  const FabricSpec& fabric = cluster.spec().fabric;
  const bool has_rails =
      fabric.rail_optimized && fabric.kind != FabricSpec::Kind::one_switch && fabric.kind != FabricSpec::Kind::custom;
  return has_rails ? Reach::rail : Reach::leaf;
}

template <typename T>
void include(CommunicatorRow::Span<T>& span, bool first, T value) {
  span = first ? CommunicatorRow::Span<T>{value, value}
               : CommunicatorRow::Span<T>{std::min(span.least, value), std::max(span.most, value)};
}

/// Where instances of a survey lie.
class InstanceLayouts {
 public:
  InstanceLayouts(const Scenario& scenario, const Cluster& cluster) : cluster_(cluster), gpu_of_rank_(gpus_of_ranks(scenario)) {}

  /// What carries but one number was laid on no links; its ranks still are somewhere.
  Layout of(const CommunicatorInstance& instance) const {
    if (!instance.layout.paths.front().crossings.empty()) return instance.layout;
    std::vector<std::uint32_t> gpus = instance.members;
    if (!gpu_of_rank_.empty()) std::ranges::transform(gpus, gpus.begin(), [&](std::uint32_t rank) { return gpu_of_rank_[rank]; });
    return lay_group(cluster_, gpus);
  }

 private:
  const Cluster& cluster_;
  const std::vector<std::uint32_t> gpu_of_rank_;
};

/// The ranks of a step that are alike in all but where they are.
Symmetry symmetry_of_places(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster) {
  return symmetry_of(scenario, mesh, cluster, std::vector<std::uint32_t>(static_cast<std::size_t>(mesh.size()), 0));
}

class RowCounter {
 public:
  RowCounter(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster, const Symmetry& symmetry)
      : cluster_(cluster), layouts_(scenario, cluster), survey_(survey_communicators(scenario, mesh, cluster, symmetry)) {
    for (const FoldInput::Crossing& crossing : survey_.fold.crossings) {
      if (crossing.path > 0) continue;
      const std::string family(family_of(survey_.instances[crossing.communicator].slot));
      load_[family][crossing.link] += crossing.of_link;
    }
    rates_together_.assign(survey_.instances.size(), std::numeric_limits<double>::infinity());
    for (const FoldInput::Crossing& crossing : survey_.fold.crossings) {
      if (crossing.path > 0) continue;
      const std::string family(family_of(survey_.instances[crossing.communicator].slot));
      double& rate = rates_together_[crossing.communicator];
      rate = std::min(rate, cluster.unnamed_link(survey_.links[crossing.link]).capacity / load_[family][crossing.link]);
    }
  }

  std::vector<CommunicatorRow> rows() const {
    std::vector<CommunicatorRow> rows;
    for (std::size_t i = 0; i < survey_.instances.size(); ++i) add(i, rows);
    return rows;
  }

 private:
  const Cluster& cluster_;
  const InstanceLayouts layouts_;
  const CommunicatorSurvey survey_;
  std::unordered_map<std::string, std::unordered_map<std::uint32_t, std::uint64_t>> load_;  ///< by family and link of the survey
  std::vector<double> rates_together_;                                                      ///< of a channel, by instance

  void add(std::size_t i, std::vector<CommunicatorRow>& rows) const {
    const CommunicatorInstance& instance = survey_.instances[i];
    const Layout layout = layouts_.of(instance);
    const LinkCounts links = count_links(cluster_, layout);
    const CommunicatorRow wanted{.family = std::string(family_of(instance.slot)),
                                 .axis = axis_of(instance.slot),
                                 .ranks = instance.size,
                                 .nodes = instance.layout.nodes,
                                 .reach = reach_of(cluster_, links)};
    auto row = std::ranges::find_if(rows, [&](const CommunicatorRow& r) {
      return r.family == wanted.family && r.ranks == wanted.ranks && r.nodes == wanted.nodes && r.reach == wanted.reach;
    });
    const bool first = row == rows.end();
    if (first) row = rows.insert(last_of(wanted.family, rows), wanted);
    row->communicators += instance.orbit;
    for (std::size_t tier = 0; tier < tier_count; ++tier) include(row->links[tier], first, links[tier]);
    include(row->hop, first, layout.nodes == 1 ? layout.intra_latency : layout.inter_latency);
    if (instance.layout.paths.front().crossings.empty()) return;

    const double channels = layout.paths.front().channels;
    double rate = std::numeric_limits<double>::infinity();
    for (const Crossing& crossing : layout.paths.front().crossings)
      rate = std::min(rate, cluster_.unnamed_link(crossing.link).capacity / crossing.multiplicity);
    if (first) row->alone = row->together = CommunicatorRow::Span<BytesPerSecond>{0, 0};
    include(*row->alone, first, channels * rate);
    include(*row->together, first, channels * rates_together_[i]);
  }

  /// Behind the family's rows, so that they stay together.
  static std::vector<CommunicatorRow>::iterator last_of(const std::string& family, std::vector<CommunicatorRow>& rows) {
    const auto last = std::find_if(rows.rbegin(), rows.rend(), [&](const CommunicatorRow& r) { return r.family == family; });
    return last == rows.rend() ? rows.end() : last.base();
  }
};

}  // namespace

Reach reach_of(const Cluster& cluster, const Layout& layout) { return reach_of(cluster, count_links(cluster, layout)); }

std::vector<CommunicatorRow> communicator_rows(const Scenario& scenario, bool folded) {
  const Mesh mesh(scenario.parallelism);
  const Cluster cluster(scenario.cluster);
  const Symmetry symmetry = folded ? symmetry_of_places(scenario, mesh, cluster) : Symmetry(mesh, cluster);
  return RowCounter(scenario, mesh, cluster, symmetry).rows();
}

std::map<Axis, Reach> farthest_reaches(const Scenario& scenario) {
  const Mesh mesh(scenario.parallelism);
  const Cluster cluster(scenario.cluster);
  const InstanceLayouts layouts(scenario, cluster);
  SlotSet without_trees;
  without_trees.set();  // the first path is none
  const CommunicatorSurvey survey = survey_communicators(scenario, mesh, cluster, symmetry_of_places(scenario, mesh, cluster),
                                                         {.without_trees = without_trees});
  std::map<Axis, Reach> farthest;
  for (const CommunicatorInstance& instance : survey.instances) {
    Reach& reach = farthest[axis_of(instance.slot)];
    if (reach < Reach::core) reach = std::max(reach, reach_of(cluster, layouts.of(instance)));
  }
  return farthest;
}

}  // namespace tandem::scenarios
