#pragma once

#include <span>
#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/scenario.h"
#include "studies/lint/finding.h"

namespace tandem::studies {

/// What a rule looks at, and where it tells what it finds.
class LintContext {
 public:
  LintContext(const Scenario& of, const YamlNode& read_from) : scenario(of), document(read_from) {}

  const Scenario& scenario;
  const YamlNode& document;

  /// The place is that of the one of `fields` that the user changed last.
  Finding& find(Severity severity, std::string rule, const std::vector<std::string>& fields, std::string sentence);
  std::vector<Finding> take() { return std::move(findings_); }

 private:
  friend void known_warnings(LintContext& context);
  std::vector<Finding> findings_;
};

/// Looks at a scenario that was read, before anything is simulated.
using LintRule = void (*)(LintContext& context);

/// All of them. A rule finds one kind of thing, at most once for each field.
std::span<const LintRule> lint_rules();

// rules_layout.cpp: ranks on the cluster
void known_warnings(LintContext& context);  ///< what every subcommand warns of (scenarios/checks/warnings.h), with fixes
void crossed_rails(LintContext& context);
// rules_pipeline.cpp
void few_micro_batches(LintContext& context);
void sharded_weights_in_pipeline(LintContext& context);
void circular_transfers(LintContext& context);
// rules_shapes.cpp: products and tables
void vocabulary_padding(LintContext& context);
void uneven_products(LintContext& context);
void thin_shards(LintContext& context);
// rules_training.cpp
void unusual_batch(LintContext& context);
void uneven_experts(LintContext& context);
void idle_options(LintContext& context);

/// Of a step that was simulated: does not fit, or hardly does.
void memory_left(LintContext& context, const LintedStep& step);

}  // namespace tandem::studies
