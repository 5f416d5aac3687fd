#include "studies/lint/rules.h"

#include <utility>

#include "scenarios/reading/culprit.h"

namespace tandem::studies {

Finding& LintContext::find(Severity severity, std::string rule, const std::vector<std::string>& fields, std::string sentence) {
  return findings_.emplace_back(Finding{
      .severity = severity, .rule = std::move(rule), .place = culprit(document, fields), .sentence = std::move(sentence)});
}

std::span<const LintRule> lint_rules() {
  static constexpr LintRule rules[] = {
      known_warnings,     crossed_rails,      stages_across_fabric, few_micro_batches, sharded_weights_in_pipeline,
      circular_transfers, vocabulary_padding, uneven_products,      thin_shards,       unusual_batch,
      uneven_experts,     idle_options};
  return rules;
}

}  // namespace tandem::studies
