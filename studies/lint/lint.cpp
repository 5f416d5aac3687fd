#include "studies/lint/lint.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "runtime/base/text_file.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"
#include "studies/lint/rules.h"
#include "studies/runner/distinct_steps.h"

namespace tandem::studies {
namespace {

/// The scenario as far as it can be changed further: names tidied, options applied, presets not yet looked up.
class Source {
 public:
  Source(const std::string& path, const std::vector<std::string>& overrides)
      : document_(parse_yaml(read_text_file(path, a_scenario), path)), file_(path) {
    tidy_names(document_);
    for (const std::string& option : overrides) apply_override(document_, option);
  }

  std::string name() const { return file_.stem().string(); }

  YamlNode resolved(const std::vector<std::string>& changes = {}) const {
    YamlNode document = document_;
    for (const std::string& change : changes) apply_override(document, change);
    resolve_presets(document, file_.parent_path().string());
    give_name(document, name());
    return document;
  }

  /// Nothing where these changes make no scenario.
  std::optional<StepJob> changed(const std::vector<std::string>& changes) const {
    try {
      StepJob job = job_of(resolved(changes), name());
      if (std::holds_alternative<Scenario>(job.scenario)) return job;
    } catch (const InputError&) {
      // Options and presets are refused before there is a job.
    }
    return {};  // the fix cannot be had with these sizes, for reasons that are not the reader's concern here
  }

 private:
  YamlNode document_;
  std::filesystem::path file_;
};

Finding refused(const InputError& error) {
  return {.severity = Severity::error, .rule = "refused", .place = error.place(), .sentence = error.sentence()};
}

/// Errors first, then by cost, then what has none by severity; else in the order of the rules.
void sort_findings(std::vector<Finding>& findings) {
  const auto key = [](const Finding& finding) {
    return std::make_tuple(finding.severity != Severity::error, -finding.cost.value_or(0.0), finding.severity);
  };
  std::ranges::stable_sort(findings, {}, key);
}

bool worthless(const Finding& finding) {
  return finding.only_if_faster && finding.fixed && (!finding.fixed->fits || *finding.cost <= 0);
}

class Linter {
 public:
  Linter(const std::string& path, const std::vector<std::string>& overrides, const LintOptions& options)
      : source_(path, overrides), options_(options), document_(source_.resolved()), steps_(options.jobs) {
    result_.scenario = source_.name();
  }

  LintResult run() {
    for (const InputError& error : refusals_of(document_, source_.name())) result_.findings.push_back(refused(error));
    if (!result_.findings.empty()) return std::move(result_);
    const Scenario scenario = read_document(document_, source_.name());
    result_.scenario = scenario.name;
    LintContext context(scenario, document_);
    for (const LintRule rule : lint_rules()) rule(context);
    result_.findings = context.take();
    if (options_.with_costs) {
      simulate_all();
      if (result_.step) add_memory(context);
    }
    std::erase_if(result_.findings, worthless);
    // What is only worth telling for its gain has none that is known.
    std::erase_if(result_.findings, [&](const Finding& finding) { return finding.only_if_faster && !finding.cost; });
    sort_findings(result_.findings);
    return std::move(result_);
  }

 private:
  Source source_;
  LintOptions options_;
  YamlNode document_;
  LintResult result_;
  DistinctSteps steps_;

  void simulate_all() {
    const StepJob as_it_is = job_of(document_, source_.name());
    steps_.want(as_it_is);
    const std::vector<std::string> fixes = want_fixes(result_.findings);
    steps_.run(options_.told);
    if (const StepResult* step = steps_.of(as_it_is.text).result()) result_.step = *step;
    judge(result_.findings, fixes);
  }

  /// The fullest stage is known only now.
  void add_memory(LintContext& context) {
    memory_left(context, *result_.step);
    std::vector<Finding> found = context.take();
    const std::vector<std::string> fixes = want_fixes(found);
    steps_.run(options_.told);
    judge(found, fixes);
    result_.findings.insert(result_.findings.end(), found.begin(), found.end());
  }

  /// By finding: the scenario with its fix, empty where there is none. A fix that makes no scenario is none.
  std::vector<std::string> want_fixes(std::vector<Finding>& findings) {
    std::vector<std::string> fixes;
    for (Finding& finding : findings) {
      std::optional<StepJob> job = finding.fix.empty() ? std::nullopt : source_.changed(finding.fix);
      fixes.push_back(job ? job->text : "");
      if (job)
        steps_.want(std::move(*job));
      else
        finding.fix.clear();
    }
    return fixes;
  }

  void judge(std::vector<Finding>& findings, const std::vector<std::string>& fixes) const {
    for (std::size_t i = 0; i < findings.size(); ++i) {
      if (fixes[i].empty() || !result_.step) continue;
      const StepResult* fixed = steps_.of(fixes[i]).result();
      if (fixed == nullptr) continue;  // failed: there is no cost to tell
      findings[i].fixed = FixedStep{.step_time = fixed->step_time, .fits = fixed->fits()};
      findings[i].cost = std::max(0.0, result_.step->step_time - fixed->step_time);
    }
  }
};

}  // namespace

LintResult lint(const std::string& path, const std::vector<std::string>& overrides, const LintOptions& options) {
  return Linter(path, overrides, options).run();
}

}  // namespace tandem::studies
