#include "studies/lint/lint.h"

#include <algorithm>
#include <optional>

#include "scenarios/reading/document.h"
#include "studies/lint/rules.h"
#include "studies/relief/relief.h"
#include "studies/runner/distinct_steps.h"

namespace tandem::studies {
namespace {

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
  Linter(ScenarioSource source, const LintOptions& options)
      : source_(std::move(source)), options_(options), document_(source_.resolved()), steps_(options.jobs) {
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
  ScenarioSource source_;
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
    for (Finding& finding : context.take()) {
      find_memory(finding, context.scenario);
      result_.findings.push_back(std::move(finding));
    }
  }

  /// Looks for a plan that lint would find no fault with; where there is none, the one with the least memory may still fit.
  void find_memory(Finding& finding, const Scenario& scenario) {
    const StepResult& step = *result_.step;
    ReliefResult relief = find_relief(source_, scenario, step, comfortable_memory(step), {options_.jobs, options_.told});
    std::optional<Relief> plan = relief.plan;
    if (!plan && !step.fits() && relief.least && relief.least->peak <= step.gpu_memory) plan = relief.least;
    if (plan) {
      finding.fix = plan->change;
      finding.fixed = FixedStep{.step_time = plan->step_time, .peak = plan->peak, .fits = true};
      finding.cost = std::max(0.0, step.step_time - plan->step_time);
    }
    finding.relief = std::move(relief);
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
      findings[i].fixed = FixedStep{.step_time = fixed->step_time, .peak = fixed->peak_memory(), .fits = fixed->fits()};
      findings[i].cost = std::max(0.0, result_.step->step_time - fixed->step_time);
    }
  }
};

}  // namespace

LintResult lint(const std::string& path, const std::vector<std::string>& overrides, const LintOptions& options) {
  return lint(ScenarioSource(path, overrides), options);
}

LintResult lint(const ScenarioSource& source, const LintOptions& options) { return Linter(source, options).run(); }

}  // namespace tandem::studies
