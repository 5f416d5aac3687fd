#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "scenarios/checks/warnings.h"
#include "scenarios/mesh/data_blocks.h"
#include "scenarios/mesh/mesh.h"
#include "scenarios/mesh/rank_placement.h"
#include "scenarios/reading/culprit.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/sections.h"
#include "studies/lint/rules.h"

namespace tandem::studies {
namespace {

/// An axis of that size cut to the `places` that a node has for it; data parallelism takes what it leaves.
std::vector<std::string> within_node(std::string_view axis, std::int64_t size, std::int64_t places) {
  return {fmt::format("parallelism.{}={}", axis, std::max<std::int64_t>(1, std::gcd(places, size))), "parallelism.dp="};
}

std::vector<std::string> fix_of(const Warning& warning, const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  const std::int64_t node = scenario.cluster.gpus_per_node;
  const bool laid_out_otherwise = p.order != ParallelismSpec{}.order || !p.placement.is_packed();
  if (warning.rule == "tp-beyond-node")
    return laid_out_otherwise ? std::vector<std::string>{"parallelism.order=", "parallelism.placement="}
                              : within_node(name_of(Axis::tp), p.tp, node);
  if (warning.rule == "cp-beyond-node")
    return laid_out_otherwise ? std::vector<std::string>{"parallelism.order=", "parallelism.placement="}
                              : within_node(name_of(Axis::cp), p.cp, node / std::min(p.tp, node));
  if (warning.rule == "many-expert-ranks") return {"model.moe.node_limit=4"};
  if (warning.rule == "selections-of-many-ranks")
    return {fmt::format("training.compressor.ratio={}", 10 * data_members(Mesh(p)))};
  if (warning.rule == "small-shard-group") return {"parallelism.zero=1"};
  return {};
}

/// Two nodes on which the group's ranks have different places, and these places.
struct Crossing {
  std::int64_t first_node = 0, other_node = 0;
  std::set<std::int64_t> first, other;
};

std::optional<Crossing> crossing_of(const std::vector<std::uint32_t>& group, const RankPlaces& places,
                                    std::int64_t gpus_per_node) {
  std::map<std::int64_t, std::set<std::int64_t>> on_node;
  for (const std::uint32_t rank : group) on_node[places.node(rank)].insert(places.gpu(rank) % gpus_per_node);
  for (const auto& [node, at] : on_node)
    if (at != on_node.begin()->second)
      return Crossing{.first_node = on_node.begin()->first, .other_node = node, .first = on_node.begin()->second, .other = at};
  return {};
}

std::string joined_places(const std::set<std::int64_t>& places) {
  std::string text;
  for (const std::int64_t place : places) text += (text.empty() ? "" : ", ") + std::to_string(place);
  return text;
}

}  // namespace

void known_warnings(LintContext& context) {
  for (const Warning& warning : unwise_in(context.scenario)) {
    context.findings_.push_back({.severity = warning.rule == "many-expert-ranks" ? Severity::advice : Severity::warning,
                                 .rule = warning.rule,
                                 .place = culprit(context.document, warning.fields),
                                 .sentence = warning.sentence,
                                 .fix = fix_of(warning, context.scenario)});
  }
}

/// On a rail-optimized fabric NICs of equal place share a leaf; traffic between others goes over spines (NVIDIA, DGX SuperPOD
/// reference architecture).
void crossed_rails(LintContext& context) {
  const ClusterSpec& cluster = context.scenario.cluster;
  if (!cluster.fabric.rail_optimized || cluster.gpus <= cluster.gpus_per_node || cluster.nics_per_node < 2 ||
      cluster.fabric.kind == FabricSpec::Kind::one_switch || cluster.fabric.kind == FabricSpec::Kind::custom)
    return;
  const ParallelismSpec& p = context.scenario.parallelism;
  const Mesh mesh(p);
  const RankPlaces places(context.scenario);
  for (const Axis axis : {Axis::cp, Axis::ep, Axis::dp, Axis::pp}) {
    if (mesh.extent(axis) < 2) continue;
    // Packed, groups lie alike in every block that they and the node divide; a few thousand ranks show them all.
    constexpr std::int64_t looked_at = 4096;
    const std::int64_t ranks = p.placement.is_packed() ? std::min(looked_at, mesh.size()) : mesh.size();
    for (std::uint32_t rank = 0; rank < static_cast<std::uint64_t>(ranks); ++rank) {
      const std::vector<std::uint32_t> group = mesh.members(rank, {axis});
      if (group.front() != rank) continue;
      const auto crossing = crossing_of(group, places, cluster.gpus_per_node);
      if (!crossing) continue;
      Finding& found = context.find(Severity::warning, "crossed-rails",
                                    {"parallelism.placement", "parallelism.order", "parallelism.tp", "parallelism.cp"},
                                    fmt::format("the {} group of rank {} has GPUs {} on node {} but {} on node {}, so that it "
                                                "crosses from rail to rail over the spines",
                                                name_of(axis), rank, joined_places(crossing->first), crossing->first_node,
                                                joined_places(crossing->other), crossing->other_node));
      if (!p.placement.is_packed())
        found.fix = {"parallelism.placement=packed"};
      else if (p.order != ParallelismSpec{}.order)
        found.fix = {"parallelism.order="};
      break;
    }
  }
}

/// Llama 3's order is tp, cp, pp, dp from the inside, so that what stages send stays near and gradients, which overlap with
/// compute, go far (arXiv 2407.21783, 3.3.2). Megatron-Core's default has pp outside.
void stages_across_fabric(LintContext& context) {
  const Scenario& scenario = context.scenario;
  const ParallelismSpec& p = scenario.parallelism;
  if (!scenario.cluster.fabric.is_oversubscribed() || !p.placement.is_packed()) return;
  const Mesh mesh(p);
  if (p.pp == 1 || p.dp == 1 || mesh.stride(Axis::pp) < mesh.stride(Axis::dp)) return;
  const std::string order = to_yaml(write_order(exchanged(p.order, Axis::dp, Axis::pp)));
  Finding& found = context.find(
      Severity::warning, "stages-across-fabric", {"parallelism.order", "cluster.fabric.oversubscription"},
      fmt::format(
          "the fabric is oversubscribed, and ranks of neighbouring stages are {} GPUs apart, so that activations compete for "
          "its uplinks while stages wait for them; the order {} brings them {} apart and sends gradients the long way",
          mesh.stride(Axis::pp), order, mesh.stride(Axis::dp)));
  found.fix = {"parallelism.order=" + order};
  found.only_if_faster = true;
}

}  // namespace tandem::studies
