#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// What stands against a scenario.
struct Objection {
  /// The fields at fault, by their paths: "parallelism.tp". Whoever knows where they stand blames the one that was changed last,
  /// among equals the first (reading/culprit.h).
  std::vector<std::string> fields;
  std::string sentence;  ///< what was found, what was expected, the nearest valid value
};

/// The sizes that a rule looks at beside the model's. The search asks such a rule of each plan, as soon as these are chosen.
enum class Sizes : std::uint8_t {
  none,      ///< or further fields: asked of whole scenarios alone
  gpus,      ///< cluster.gpus
  split,     ///< tp, cp and sp
  experts,   ///< ep and etp, given tp, cp and dp
  schedule,  ///< the schedule, pp and vpp
  layers,    ///< pp and vpp, with the layers of the first and the last stage
  batch      ///< micro_batch, given the schedule, pp and dp
};
inline constexpr std::size_t size_kinds = 7;

/// One thing that a scenario must meet.
struct Rule {
  Sizes sizes = Sizes::none;
  bool (*holds)(const Scenario&);           ///< of sizes alone: a few divisions, as it is asked of millions of plans
  Objection (*objection)(const Scenario&);  ///< only where it does not hold
};

/// The first rule that a scenario breaks, in the order of the rules; none where it can be lowered. To be asked of scenarios that
/// are complete (complete.h).
std::optional<Objection> first_objection(const Scenario& scenario);

/// As many objections as one can make in spite of another: the first of each subject (rules.h), in the order of the rules.
std::vector<Objection> objections(const Scenario& scenario);

/// All rules that look at these sizes, in their order.
std::vector<const Rule*> rules_about(Sizes sizes);

}  // namespace tandem::scenarios
