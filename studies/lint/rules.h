#pragma once

#include <span>
#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/scenario.h"
#include "studies/lint/finding.h"

namespace tandem::studies {

/// The scenario that a rule looks at, and the findings of the rules so far.
class LintContext {
 public:
  LintContext(const Scenario& of, const YamlNode& read_from) : scenario(of), document(read_from) {}

  const Scenario& scenario;
  const YamlNode& document;

  /// Adds a finding. Its place is that of the field among `fields` that the user changed last.
  Finding& find(Severity severity, std::string rule, const std::vector<std::string>& fields, std::string sentence);
  std::vector<Finding> take() { return std::move(findings_); }

 private:
  friend void known_warnings(LintContext& context);
  std::vector<Finding> findings_;
};

/// A rule looks at a scenario that was read, before anything is simulated.
using LintRule = void (*)(LintContext& context);

/// Returns all rules. A rule finds one kind of thing, at most once for each field.
std::span<const LintRule> lint_rules();

// rules_layout.cpp: ranks on the cluster
void known_warnings(LintContext& context);  ///< what every subcommand warns of (scenarios/checks/warnings.h), with fixes
void crossed_rails(LintContext& context);
void stages_across_fabric(LintContext& context);
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

/// Memory of a GPU without what fragments and NCCL's buffers take.
Bytes comfortable_memory(const StepResult& step);

/// Finds that a simulated step does not fit into memory, or hardly does.
void memory_left(LintContext& context, const StepResult& step);

}  // namespace tandem::studies
