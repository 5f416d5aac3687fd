#include <algorithm>
#include <filesystem>

#include "runtime/base/nearest.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/search_spec.h"
#include "scenarios/reading/sections.h"

namespace tandem::scenarios {
namespace {

struct AxisFacts {
  std::string_view path;
  bool size;

  /// The axis is called as its field is.
  constexpr std::string_view name() const { return path.substr(path.find('.') + 1); }
};
constexpr std::array<AxisFacts, search_axis_count> facts{{{"parallelism.tp", true},
                                                          {"parallelism.sp", false},
                                                          {"parallelism.pp", true},
                                                          {"parallelism.vpp", true},
                                                          {"parallelism.cp", true},
                                                          {"parallelism.ep", true},
                                                          {"parallelism.etp", true},
                                                          {"parallelism.dp", true},
                                                          {"parallelism.zero", false},
                                                          {"training.micro_batch", true},
                                                          {"training.schedule", false},
                                                          {"training.recompute", false},
                                                          {"parallelism.order", false},
                                                          {"parallelism.placement", false}}};

/// Reads the value where a scenario would have it, which refuses it as there.
void check_value(const AxisFacts& axis, const YamlNode& value) {
  const std::string field(axis.name());
  YamlNode section = make_node(YamlNode::Kind::mapping, value.place);
  const auto add = [&](const std::string& key, const YamlNode& node) { section.entries.push_back({key, key, node.place, node}); };
  add(field, value);
  if (!axis.path.starts_with("training")) {
    read_parallelism(section);
    return;
  }
  for (const char* needed : {"sequence", "global_batch"}) add(needed, make_scalar("1", value.place));
  read_training(section);
}

SearchAxisSpec read_axis(const AxisFacts& axis, const YamlNode& node) {
  SearchAxisSpec spec{.values = {}, .place = node.place};
  const std::string name = "search.axes." + std::string(axis.name());
  if (axis.size && node.kind == YamlNode::Kind::scalar && node.text == "powers-of-two") return spec;
  if (node.kind != YamlNode::Kind::sequence || node.items.empty())
    throw InputError(node.place, name + " is " + (node.kind == YamlNode::Kind::sequence ? "empty" : describe(node)) +
                                     ", expected a list of values" + (axis.size ? ", or powers-of-two" : ""));
  std::vector<std::string> seen;
  for (const YamlNode& value : node.items) {
    check_value(axis, value);
    const std::string text = to_yaml(value);
    if (std::ranges::find(seen, text) != seen.end())
      throw InputError(value.place, name + " lists " + excerpt(text) + " twice, expected distinct values");
    seen.push_back(text);
    spec.values.push_back(value);
  }
  return spec;
}

void read_axes(const YamlNode& node, SearchSpec& spec) {
  std::vector<std::string_view> names;
  for (const AxisFacts& axis : facts) names.push_back(axis.name());
  const Reader axes(node, "search.axes", names);
  for (std::size_t i = 0; i < search_axis_count; ++i)
    if (axes.has(names[i])) spec.axes[i] = read_axis(facts[i], axes.child(names[i]));
}

/// A number, or a range [lowest, highest].
void read_gpus(const Reader& search, SearchSpec& spec) {
  if (!search.has("gpus")) return;
  const YamlNode& node = search.child("gpus");
  spec.gpus_place = node.place;
  if (node.kind != YamlNode::Kind::sequence) {
    spec.gpus = {search.integer("gpus", {1, max_gpus})};
    return;
  }
  const std::vector<std::int64_t> ends = search.integers("gpus", {1, max_gpus});
  if (ends.size() != 2 || ends[0] > ends[1])
    throw InputError(node.place, "search.gpus is " + to_yaml(node) + ", expected a number, or a range [lowest, highest]");
  for (std::int64_t gpus = ends[0]; gpus <= ends[1]; gpus *= 2) spec.gpus.push_back(gpus);
}

SearchConstraints read_constraints(const YamlNode& node, SearchSpec& spec) {
  const Reader reader(node, "search.constraints", {"memory_share", "bubble", "exposed", "tp_in_node"});
  SearchConstraints constraints;
  const Range<double> share{0, 1};
  constraints.memory_share = reader.number("memory_share", {1e-6, 1}, 1);
  if (reader.has("bubble")) constraints.bubble = reader.number("bubble", share);
  if (reader.has("exposed")) constraints.exposed = reader.number("exposed", share);
  constraints.tp_in_node = reader.boolean("tp_in_node", false);
  if (reader.has("tp_in_node")) spec.tp_in_node_place = reader.child("tp_in_node").place;
  return constraints;
}

void read_objective(const Reader& search, SearchSpec& spec) {
  if (!search.has("objective")) return;
  const YamlNode& node = search.child("objective");
  if (node.kind != YamlNode::Kind::mapping) {
    spec.objective = search.choice<SearchObjective>(
        "objective",
        {{"step-time", SearchObjective::step_time}, {"tokens-per-s-per-gpu", SearchObjective::tokens_per_s_per_gpu}});
    return;
  }
  const Reader objective(node, "search.objective", {"price_per_gpu_hour"});
  spec.objective = SearchObjective::cost_per_million_tokens;
  spec.price_per_gpu_hour = objective.number("price_per_gpu_hour", {1e-6, 1e6});
}

}  // namespace

std::string_view name_of(SearchAxis axis) { return facts[static_cast<std::size_t>(axis)].name(); }
std::string_view path_of(SearchAxis axis) { return facts[static_cast<std::size_t>(axis)].path; }
bool is_size(SearchAxis axis) { return facts[static_cast<std::size_t>(axis)].size; }

SearchSpec read_search(const YamlNode& block) {
  const Reader search(block, "search", {"axes", "gpus", "constraints", "objective"});
  SearchSpec spec;
  read_axes(search.child("axes"), spec);
  read_gpus(search, spec);
  spec.constraints = read_constraints(search.child("constraints"), spec);
  read_objective(search, spec);
  return spec;
}

SearchSpec load_search(const std::string& path, const std::vector<std::string>& overrides) {
  return search_of(load_document(path, overrides), path);
}

SearchSpec search_of(YamlNode document, const std::string& path) {
  const std::string name = std::filesystem::path(path).stem().string();
  const Scenario scenario = read_document(document, name);  // refuses a wrong block, too

  static const YamlNode everything = make_node(YamlNode::Kind::mapping, {});
  const YamlNode* block = document.find("search");
  SearchSpec spec = read_search(block == nullptr ? everything : *block);
  document.erase("search");
  if (spec.gpus.empty()) spec.gpus = {scenario.cluster.gpus};
  give_name(document, scenario.name);
  spec.document = std::move(document);
  spec.file = path;
  spec.name = scenario.name;
  spec.scenario = scenario;
  return spec;
}

}  // namespace tandem::scenarios
