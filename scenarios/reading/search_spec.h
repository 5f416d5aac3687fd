#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// What a search is free to choose.
enum class SearchAxis : std::uint8_t {
  tp,
  sp,
  pp,
  vpp,
  cp,
  ep,
  etp,
  dp,
  zero,
  micro_batch,
  schedule,
  recompute,
  order,
  placement
};
inline constexpr std::array search_axes{SearchAxis::tp,    SearchAxis::sp,          SearchAxis::pp,       SearchAxis::vpp,
                                        SearchAxis::cp,    SearchAxis::ep,          SearchAxis::etp,      SearchAxis::dp,
                                        SearchAxis::zero,  SearchAxis::micro_batch, SearchAxis::schedule, SearchAxis::recompute,
                                        SearchAxis::order, SearchAxis::placement};
inline constexpr std::size_t search_axis_count = search_axes.size();
std::string_view name_of(SearchAxis axis);
/// Returns the field of the scenario: "parallelism.tp".
std::string_view path_of(SearchAxis axis);
/// Returns whether the axis's values are sizes, which can be powers of two.
bool is_size(SearchAxis axis);

/// The values that an axis may take.
struct SearchAxisSpec {
  std::vector<YamlNode> values;  ///< none: as by default
  Place place = {};              ///< of the axis in the document; no file where it was left out
  bool is_stated() const { return !place.file.empty(); }
};

enum class SearchObjective : std::uint8_t {
  step_time,               ///< the shortest step
  tokens_per_s_per_gpu,    ///< the most of a GPU
  cost_per_million_tokens  ///< at a price of a GPU-hour
};

/// What a plan has to keep to.
struct SearchConstraints {
  double memory_share = 1;        ///< of the smallest GPU's memory that a plan may take
  std::optional<double> bubble;   ///< share of the step that ranks wait, at most
  std::optional<double> exposed;  ///< share of the step that communication is exposed, at most
  bool tp_in_node = false;        ///< no tensor-parallel group spans nodes
};

/// The `search` block of a scenario: which plans to compare, and by what.
///
///     search:
///       # all other axes as they are by default
///       axes: {tp: powers-of-two, pp: [1, 2, 4], recompute: [none, full]}
///       # or a range [256, 1024]: 256, and twice that as far as it goes; default: cluster.gpus
///       gpus: 512
///       constraints: {memory_share: 0.9, bubble: 0.1, exposed: 0.2, tp_in_node: true}
///       # or tokens-per-s-per-gpu, or {price_per_gpu_hour: 2.5}
///       objective: step-time
///
/// An axis that is left out has all powers of two that the model and the cluster admit (of cp those up to 64 that leave a rank
/// 128 tokens of a sequence); zero 0 to 3; every schedule; recompute none, selective and full; sp both; the scenario's order,
/// and where it matters that with dp and pp exchanged (on an oversubscribed fabric, or where one of them lies inside a node); the
/// scenario's placement.
struct SearchSpec {
  std::array<SearchAxisSpec, search_axis_count> axes;
  std::vector<std::int64_t> gpus;  ///< ascending
  SearchConstraints constraints;
  Place tp_in_node_place = {};
  Place gpus_place = {};
  SearchObjective objective = SearchObjective::step_time;
  double price_per_gpu_hour = 0;

  YamlNode document;  ///< the scenario, presets filled in, without `search`
  std::string file, name;
  Scenario scenario;  ///< what the document says, which is the plan that a search is held against

  const SearchAxisSpec& axis(SearchAxis which) const { return axes[static_cast<std::size_t>(which)]; }
};

/// Reads a `search` block by itself, without the scenario. Throws InputError.
SearchSpec read_search(const YamlNode& block);

/// Reads the scenario and its search. All axes are free where it has no such block. Throws InputError.
SearchSpec load_search(const std::string& path, const std::vector<std::string>& overrides);
/// The same of a document whose presets are filled in; `path` is the file that it stands for.
SearchSpec search_of(YamlNode document, const std::string& path);

}  // namespace tandem::scenarios
