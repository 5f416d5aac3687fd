#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/reading/overlay.h"
#include "scenarios/reading/search_spec.h"

namespace tandem::studies {

/// One way to run the scenario: what a search chooses. An axis whose values are no numbers has an index into them
/// (`PlanChoices::texts`). Plans are ordered by their fields from the first to the last, which decides between equally good ones.
struct Plan {
  std::int64_t gpus = 1;
  std::int64_t tp = 1, pp = 1, vpp = 1, cp = 1, ep = 1, etp = 1, dp = 1;
  std::int64_t micro_batch = 1;
  std::int64_t zero = 0;
  std::int64_t sp = 0;  ///< 0 or 1
  std::int64_t schedule = 0, recompute = 0, order = 0, placement = 0;
  /// Layers of the first and the last stage; 0 for both: as even as the scenario has it. They follow from the rest
  /// (`split_layers`).
  std::int64_t first_stage_layers = 0, last_stage_layers = 0;
  std::int64_t has_layout = 0;  ///< 1: the scenario's pipeline_layout, which follows likewise

  auto operator<=>(const Plan&) const = default;
};

/// Returns the field of a plan that holds the axis.
std::int64_t Plan::*field_of(SearchAxis axis);

/// The values of the axes that are no numbers.
struct PlanChoices {
  std::array<std::vector<YamlNode>, search_axis_count> texts;  ///< by axis, as they stand in a scenario; none of numbers
  std::array<bool, search_axis_count> is_stated{};             ///< whether the search lists values of the axis
  // As they are read there, in the order of `texts`.
  std::vector<ScheduleKind> schedules;
  std::vector<RecomputeSpec> recomputes;
  std::vector<std::vector<Axis>> orders;
  std::vector<RankPlacement> placements;

  std::vector<YamlNode>& of(SearchAxis axis) { return texts[static_cast<std::size_t>(axis)]; }
  const std::vector<YamlNode>& of(SearchAxis axis) const { return texts[static_cast<std::size_t>(axis)]; }
};

/// Returns what turns the scenario's document into the plan's, field by field.
Assignments assignments_of(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec);

/// Returns "tp=8 sp=true pp=8 dp=64 zero=1 micro_batch=1 schedule=1f1b recompute=none". Leaves out sizes of 1 (but for tp, pp, dp
/// and micro_batch), sp without tp, the schedule without a pipeline, and an order or a placement that is the only one, or the
/// scenario's where the search lists none.
std::string to_text(const Plan& plan, const PlanChoices& choices);

/// Returns the scenario's document with the plan in it.
YamlNode document_of(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec);

/// Returns the scenario with the plan in it, unchecked: for what is computed of it without a simulation.
Scenario scenario_of(const Plan& plan, const PlanChoices& choices, const Scenario& base);

}  // namespace tandem::studies
