#include "studies/place/placement_result.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenarios/mesh/communicators.h"
#include "scenarios/mesh/families.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array all_reaches{Reach::node, Reach::rail, Reach::leaf, Reach::pod, Reach::core};

std::vector<CommunicatorInstance> communicators(const Scenario& scenario, const Cluster& cluster) {
  const Mesh mesh(scenario.parallelism);
  return survey_communicators(scenario, mesh, cluster, Symmetry(mesh, cluster)).instances;
}

std::vector<PlacementResult::Family> families(const Scenario& packed, const Scenario& found) {
  const Cluster cluster(packed.cluster);
  const std::vector<CommunicatorInstance> before = communicators(packed, cluster), after = communicators(found, cluster);
  std::vector<PlacementResult::Family> families;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].layout.nodes < 2 || before[i].layout.paths.front().crossings.empty()) continue;
    const std::string name(family_of(before[i].slot));
    auto family = std::ranges::find(families, name, &PlacementResult::Family::name);
    if (family == families.end()) family = families.insert(family, {.name = name, .packed = {}, .found = {}});
    const Reach from = reach_of(cluster, before[i].layout), to = reach_of(cluster, after[i].layout);
    ++family->packed[from];
    ++family->found[to];
    family->lower += to < from;
    family->higher += to > from;
  }
  return families;
}

Json reaches_json(const std::map<Reach, std::int64_t>& counts) {
  Json json = Json::object();
  for (const Reach reach : all_reaches) {
    if (counts.contains(reach)) json[name_of(reach)] = counts.at(reach);
  }
  return json;
}

Json of_tiers(const std::array<TierLoad, 3>& tiers) {
  Json json = Json::array();
  for (const TierLoad& tier : tiers) {
    if (tier.links > 0)
      json.push_back(
          {{"tier", name_of(tier.tier)}, {"links", tier.links}, {"bytes", tier.bytes}, {"slowest_link_s", tier.slowest}});
  }
  return json;
}

Json of_candidate(const PlacementCandidate& candidate) {
  const StepResult* step = candidate.step();
  const std::string message = candidate.message();
  return {{"name", candidate.name},
          {"slowest_link_s", candidate.load.slowest},
          {"spread_s", candidate.load.spread},
          {"step_time_s", step != nullptr ? Json(step->step_time) : Json(nullptr)},
          {"message", message.empty() ? Json(nullptr) : Json(message)},
          {"nodes", candidate.nodes}};
}

}  // namespace

PlacementResult placement_result(const PlacedJob& job, const StepTraffic& traffic, PlacementSearch search) {
  const Scenario& packed = job.packed_scenario();
  PlacementResult result{.scenario = packed.name,
                         .ranks = job.ranks(),
                         .gpus_per_node = packed.cluster.gpus_per_node,
                         .blocks = job.blocks(),
                         .free = std::ssize(job.free()),
                         .nodes = job.nodes(),
                         .search = std::move(search),
                         .hosts = {},
                         .families = {},
                         .warnings = packed.warnings};
  LinkLoad load(packed, traffic, result.search.packed().nodes);
  result.packed = load.by_tier();
  load.place(result.search.found().nodes);
  result.found = load.by_tier();
  result.hosts = job.hosts(result.search.found().nodes);
  result.families = families(packed, job.scenario(result.search.found().nodes));
  return result;
}

std::string to_json(const PlacementResult& result) {
  const PlacementSearch& search = result.search;
  Json candidates = Json::array(), communicators = Json::array(), hosts = Json::array();
  for (const PlacedJob::HostSlots& host : result.hosts) hosts.push_back({{"host", host.host}, {"ranks", host.slots}});
  for (const PlacementCandidate& candidate : search.candidates) candidates.push_back(of_candidate(candidate));
  for (const PlacementResult::Family& family : result.families)
    communicators.push_back({{"family", family.name},
                             {"packed", reaches_json(family.packed)},
                             {"found", reaches_json(family.found)},
                             {"lower", family.lower},
                             {"higher", family.higher}});
  const Json json = {{"scenario", result.scenario},
                     {"ranks", result.ranks},
                     {"gpus_per_node", result.gpus_per_node},
                     {"nodes", {{"needed", result.blocks}, {"free", result.free}, {"cluster", result.nodes}}},
                     {"step_time_packed_s", search.packed_time()},
                     {"step_time_found_s", search.found_time()},
                     {"gain", result.gain()},
                     {"placement", search.found().name},
                     {"nodes_of_blocks", search.found().nodes},
                     {"hosts", hosts},
                     {"links", {{"packed", of_tiers(result.packed)}, {"found", of_tiers(result.found)}}},
                     {"communicators", communicators},
                     {"candidates", candidates},
                     {"warnings", result.warnings}};
  return json.dump(1) + "\n";
}

std::string placement_file_text(const PlacedJob& job, const PlacementSearch& search) {
  std::string text =
      fmt::format("# GPUs of the {} ranks of {} in their order, {} ({}). For\n#   parallelism: {{placement: {{file: ..}}}}\n",
                  job.ranks(), job.packed_scenario().name, search.best == 0 ? "packed" : "placed", search.found().name);
  for (const std::uint32_t gpu : job.gpus(search.found().nodes)) text += "- " + std::to_string(gpu) + "\n";
  return text;
}

std::string hostfile_text(const PlacementResult& result) {
  std::string text;
  for (const PlacedJob::HostSlots& host : result.hosts) text += fmt::format("{} slots={}\n", host.host, host.slots);
  return text;
}

}  // namespace tandem::studies
