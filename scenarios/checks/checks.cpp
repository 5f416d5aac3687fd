#include "scenarios/checks/checks.h"

#include <algorithm>

#include "scenarios/checks/rules.h"

namespace tandem::scenarios {
namespace {

/// What the rules of a subject take for granted.
enum class CountsOn : std::uint8_t {
  nothing,
  world,   ///< a complete mesh
  cluster  ///< on whole nodes
};

struct Subject {
  std::span<const Rule> (*rules)();
  CountsOn counts_on;
};

constexpr Subject subjects[] = {
    {model_rules, CountsOn::nothing},       {sharding_rules, CountsOn::nothing},  {world_rules, CountsOn::nothing},
    {cluster_rules, CountsOn::world},       {placement_rules, CountsOn::cluster}, {fabric_rules, CountsOn::cluster},
    {fault_rules, CountsOn::cluster},       {layout_rules, CountsOn::world},      {pipeline_rules, CountsOn::world},
    {data_parallel_rules, CountsOn::world}, {expert_rules, CountsOn::cluster},    {training_rules, CountsOn::world}};

std::optional<Objection> first_of(const Subject& subject, const Scenario& scenario) {
  const std::span<const Rule> rules = subject.rules();
  const auto broken = std::ranges::find_if(rules, [&](const Rule& rule) { return !rule.holds(scenario); });
  if (broken == rules.end()) return {};
  return broken->objection(scenario);
}

}  // namespace

std::optional<Objection> first_objection(const Scenario& scenario) {
  for (const Subject& subject : subjects)
    if (auto objection = first_of(subject, scenario)) return objection;
  return {};
}

std::vector<Objection> objections(const Scenario& scenario) {
  std::vector<Objection> found;
  bool has_world = true, has_cluster = true;
  for (const Subject& subject : subjects) {
    if (subject.counts_on != CountsOn::nothing && !has_world) continue;
    if (subject.counts_on == CountsOn::cluster && !has_cluster) continue;
    const auto objection = first_of(subject, scenario);
    if (!objection) continue;
    found.push_back(*objection);
    if (subject.rules == world_rules) has_world = false;
    if (subject.rules == cluster_rules) has_cluster = false;
  }
  return found;
}

std::vector<const Rule*> rules_about(Sizes sizes) {
  std::vector<const Rule*> found;
  for (const Subject& subject : subjects)
    for (const Rule& rule : subject.rules())
      if (rule.sizes == sizes) found.push_back(&rule);
  return found;
}

}  // namespace tandem::scenarios
