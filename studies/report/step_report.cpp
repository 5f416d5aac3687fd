#include "studies/report/step_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/analysis/memory_over_time.h"
#include "runtime/base/parallel.h"
#include "scenarios/mesh/mesh.h"
#include "sim/bottleneck.h"
#include "sim/link_use.h"
#include "studies/crosscheck/comparison_json.h"
#include "studies/report/drawn_rows.h"
#include "studies/report/facts.h"
#include "studies/report/mesh_json.h"
#include "studies/report/page.h"
#include "studies/report/path_json.h"
#include "studies/report/task_pairs.h"
#include "studies/report/timeline_json.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

/// Shares with so many digits as a chart can show.
std::vector<double> to_thousandths(const std::vector<double>& shares) {
  std::vector<double> rounded;
  for (const double share : shares) rounded.push_back(std::round(share * 1e3) / 1e3);
  return rounded;
}

/// By rank of the DAG, the first of the world on its mirrored stage; empty where none has one.
std::vector<std::uint32_t> first_mirrored(const Scenario& scenario, const Dag& dag, const std::vector<RankIndex>& class_of) {
  if (std::ranges::all_of(dag.ranks, [](const Rank& rank) { return rank.mirrored == 0; })) return {};
  const scenarios::Mesh mesh(scenario.parallelism);
  std::vector<std::uint32_t> first(dag.ranks.size(), no_id);
  scenarios::Coordinates place;
  for (std::uint32_t rank = 0; rank < class_of.size(); ++rank, mesh.advance(place)) {
    const RankIndex index = class_of[rank];
    if (place[Axis::pp] != dag.ranks[index].pp && first[index] == no_id) first[index] = rank;
  }
  return first;
}

Json memory_json(const Dag& dag, const std::vector<MemoryOverTime>& memories, const std::vector<std::uint32_t>& mirrored) {
  Json stages = Json::array();
  for (const MemoryOverTime& memory : memories) {
    std::vector<Seconds> at;
    std::vector<Bytes> activations, buffers;
    for (const MemoryPoint& point : memory.points) {
      at.push_back(point.at);
      activations.push_back(point.activations);
      buffers.push_back(point.buffers);
    }
    Json largest = Json::array();
    for (const MemoryHolder& holder : memory.largest) largest.push_back({{"what", holder.name}, {"bytes", holder.bytes}});
    const Rank& rank = dag.ranks[memory.use.rank];
    stages.push_back({{"stage", memory.stage},
                      {"rank", memory.stage == rank.pp ? rank.world_rank : mirrored.at(memory.use.rank)},
                      {"gpu_bytes", dag.devices[rank.device].memory},
                      {"parameters", memory.use.parameters},
                      {"gradients", memory.use.gradients},
                      {"optimizer", memory.use.optimizer},
                      {"peak_at_s", memory.use.peak_at},
                      {"peak_bytes", memory.use.peak()},
                      {"peak_task", memory.peak_task == no_id ? "" : std::string(dag.name_of_task(memory.peak_task))},
                      {"largest", largest},
                      {"t_s", at},
                      {"activations", activations},
                      {"buffers", buffers}});
  }
  return stages;
}

Json link_json(const Link& link, const LinkUse::OfLink& use) {
  constexpr std::size_t most_users = 6;
  Json users = Json::array();
  for (std::size_t u = 0; u < std::min(most_users, use.users.size()); ++u)
    users.push_back(
        {{"communicator", use.users[u].communicator}, {"axis", name_of(use.users[u].axis)}, {"bytes", use.users[u].bytes}});
  return {{"name", link.name},
          {"tier", name_of(link.tier)},
          {"stands_for", link.count},
          {"capacity", link.capacity},
          {"bytes", use.bytes},
          {"utilisation", to_thousandths(use.utilisation)},
          {"users", users}};
}

Json links_json(const Dag& dag, const Timeline& timeline) {
  constexpr std::size_t bins = 200, most_links = 64;
  const LinkUse use = link_use(dag, timeline, bins);
  Json tiers = Json::array();
  for (const LinkUse::OfTier& tier : use.tiers)
    tiers.push_back({{"tier", name_of(tier.tier)},
                     {"links", tier.links},
                     {"capacity", tier.capacity},
                     {"utilisation", to_thousandths(tier.utilisation)}});

  std::vector<std::size_t> busiest(use.links.size());
  for (std::size_t i = 0; i < busiest.size(); ++i) busiest[i] = i;
  std::ranges::stable_sort(busiest, std::greater<>(), [&](std::size_t i) { return use.links[i].bytes / dag.links[i].capacity; });
  busiest.resize(std::min(busiest.size(), most_links));
  Json links = Json::array();
  for (const std::size_t i : busiest) links.push_back(link_json(dag.links[i], use.links[i]));
  return {{"edges_s", use.edges}, {"tiers", tiers}, {"links", links}};
}

Json blame_json(const std::vector<sim::Blame>& blame) {
  Json list = Json::array();
  for (const sim::Blame& of : blame)
    list.push_back({{"group", of.speedup.group()},
                    {"name", of.speedup.name()},
                    {"factor", of.speedup.factor},
                    {"step_time_s", of.step_time},
                    {"gained_s", of.gained}});
  return list;
}

std::vector<MemoryOverTime> memory_of_stages(const Dag& dag, const Timeline& timeline, const StepResult& result) {
  std::vector<RankIndex> ranks;
  for (const MemoryUse& use : result.stages)
    if (use.rank != no_id) ranks.push_back(use.rank);
  return memory_over_time(dag, timeline, ranks);
}

Json no_timeline() { return timeline_json(Dag(), Timeline(), {}, {}); }

/// `memory`: of the fullest rank of each stage. `mirrored`: see `first_mirrored`.
Json report_of(const Scenario& scenario, const Dag& dag, const Timeline& timeline, const StepResult& result,
               const std::vector<MemoryOverTime>& memory, const std::vector<std::uint32_t>& mirrored,
               const std::string& command) {
  const std::vector<DrawnRow> drawn = drawn_rows(dag, timeline, mirrored);
  Json of_mesh, of_timeline, of_memory, of_links, of_path;
  // What takes longest comes first.
  const std::function<void()> parts[] = {
      [&] {
        Bottlenecks bottlenecks(dag);
        of_timeline = timeline_json(dag, timeline, drawn, [&](TaskId id) { return std::string(bottlenecks.of(id)); });
      },
      [&] { of_mesh = mesh_json(scenario); },
      [&] { of_memory = memory_json(dag, memory, mirrored); },
      [&] { of_path = path_json(dag, timeline, drawn); },
      [&] { of_links = links_json(dag, timeline); },
  };
  in_parallel(std::size(parts), [&](std::size_t part) { parts[part](); });
  Json report = report_head("step", scenario.name, command);
  report["result"] = to_json_object(result);
  report["facts"] = facts_of(scenario);
  report["mesh"] = std::move(of_mesh);
  report["timeline"] = std::move(of_timeline);
  report["memory"] = std::move(of_memory);
  report["links"] = std::move(of_links);
  report["critical_path"] = std::move(of_path);
  report["blame"] = Json::array();
  return report;
}

}  // namespace

Json step_report(const Scenario& scenario, const SimulatedStep& step, const std::string& command) {
  const std::vector<std::uint32_t> mirrored = first_mirrored(scenario, step.dag, step.class_of);
  return report_of(scenario, step.dag, step.timeline, step.result, step.memory, mirrored, command);
}

std::string simulated_page(const Scenario& scenario, const SimulatedStep& step, BlameBeside& blame, const std::string& command) {
  Json report = step_report(scenario, step, command);
  report["blame"] = blame_json(blame.found());
  return report_page(report);
}

std::string executed_page(const Scenario& scenario, const Dag& dag, const Timeline& timeline, const StepResult& result,
                          const std::string& command) {
  return report_page(report_of(scenario, dag, timeline, result, memory_of_stages(dag, timeline, result), {}, command));
}

std::string result_page(std::string_view json, const std::string& command) {
  const Json result = Json::parse(json);
  const bool is_crosscheck = result.contains("crosscheck");
  Json report = report_head(is_crosscheck ? "crosscheck" : "step", result.at("scenario").get<std::string>(), command);
  const Json none = Json::array();
  report["result"] = result;
  report["facts"] = none;
  if (is_crosscheck) {
    report["tasks"] = {{"kind", none}, {"simulated_s", none}, {"measured_s", none}, {"kinds", none}};
    report["simulated"] = no_timeline();
    report["measured"] = no_timeline();
    return report_page(report);
  }
  report["mesh"] = {{"gpus", result.at("gpus")}, {"gpus_per_node", 0}, {"nodes", 0}, {"axes", none}, {"gpus_drawn", none}};
  report["timeline"] = no_timeline();
  report["memory"] = none;
  report["links"] = {{"edges_s", none}, {"tiers", none}, {"links", none}};
  report["critical_path"] = path_json(Dag(), Timeline(), {});
  report["blame"] = none;
  return report_page(report);
}

std::string crosscheck_page(const Scenario& scenario, const Dag& dag, const Timeline& simulated, const Timeline& measured,
                            const StepResult& result, const Comparison& comparison, const std::string& command) {
  const std::vector<DrawnRow> drawn = drawn_rows(dag, measured);
  Bottlenecks bottlenecks(dag);
  const BoundOf bound_of = [&](TaskId id) { return std::string(bottlenecks.of(id)); };
  Json report = report_head("crosscheck", scenario.name, command);
  report["result"] = to_json_object(result, comparison);
  report["facts"] = facts_of(scenario);
  report["tasks"] = task_pairs(dag, simulated, measured);
  report["simulated"] = timeline_json(dag, simulated, drawn, bound_of);
  report["measured"] = timeline_json(dag, measured, drawn, bound_of);
  return report_page(report);
}

std::string failure_page(const Scenario& scenario, const std::string& sentence, const std::string& command) {
  Json report = report_head("failure", scenario.name, command);
  report["sentence"] = sentence;
  report["exit_code"] = 1;
  report["facts"] = facts_of(scenario);
  return report_page(report);
}

}  // namespace tandem::studies
