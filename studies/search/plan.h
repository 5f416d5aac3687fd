#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "scenarios/reading/overlay.h"
#include "scenarios/reading/search_spec.h"

namespace tandem::studies {

/// One way to run the scenario: what a search chooses. What has no number is an index into the values of its axis
/// (`PlanSpace::choices`). Plans are ordered by their fields from the first to the last, which decides between equally good ones.
struct Plan {
  std::int64_t gpus = 1;
  std::int64_t tp = 1, pp = 1, vpp = 1, cp = 1, ep = 1, etp = 1, dp = 1;
  std::int64_t micro_batch = 1;
  std::int32_t zero = 0;
  std::int32_t sp = 0;  ///< 0 or 1
  std::int32_t schedule = 0, recompute = 0, order = 0, placement = 0;
  /// How the layers lie on the stages; 0 for both: as even as the scenario has it. They follow from the rest (`split_layers`).
  std::int64_t first_stage_layers = 0, last_stage_layers = 0;

  auto operator<=>(const Plan&) const = default;
};

/// The values of the axes that are no numbers, as they stand in a scenario, and as they are read there.
struct PlanChoices {
  std::vector<YamlNode> schedule, recompute, order, placement;
  std::vector<ScheduleKind> schedules;
  std::vector<RecomputeSpec> recomputes;
  std::vector<std::vector<Axis>> orders;
  std::vector<RankPlacement> placements;
};

/// What makes the scenario's document the plan's, field by field.
Assignments assignments_of(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec);

/// "tp=8 pp=8 dp=64 zero=1 micro_batch=1 schedule=1f1b recompute=none sp=true": sizes of 1 are left out, but for tp, pp, dp and
/// micro_batch; order and placement where they are not the only ones.
std::string to_text(const Plan& plan, const PlanChoices& choices);

/// The document with the plan in it.
YamlNode document_of(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec);

/// The scenario with the plan in it, not validated: for what is computed of it without a simulation.
Scenario scenario_of(const Plan& plan, const PlanChoices& choices, const Scenario& base);

}  // namespace tandem::studies
