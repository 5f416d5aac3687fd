#include "studies/lint/lint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/base/text_file.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/yaml_mapping.h"
#include "studies/lint/rules.h"
#include "studies/runner/outcome.h"
#include "studies/runner/worker_pool.h"

namespace tandem::studies {
namespace {

/// The scenario as far as it can be changed further: names tidied, options applied, presets not yet looked up.
class Source {
 public:
  Source(const std::string& path, const std::vector<std::string>& overrides)
      : document_(parse_yaml(read_text_file(path), path)), file_(path) {
    tidy_names(document_);
    for (const std::string& option : overrides) apply_override(document_, option);
  }

  std::string name() const { return file_.stem().string(); }

  YamlNode resolved(const std::vector<std::string>& changes = {}) const {
    YamlNode document = document_;
    for (const std::string& change : changes) apply_override(document, change);
    resolve_presets(document, file_.parent_path().string());
    if (document.find("name") == nullptr) put(document, "name", name());
    return document;
  }

  /// Complete and in one line; nothing where these changes make no scenario.
  std::optional<std::string> changed(const std::vector<std::string>& changes) const {
    try {
      const YamlNode document = resolved(changes);
      read_document(document, name());
      return to_yaml(document);
    } catch (const InputError&) {
      return {};  // the fix cannot be had with these sizes, for reasons that are not the reader's concern here
    }
  }

 private:
  YamlNode document_;
  std::filesystem::path file_;
};

/// "file:line:column: sentence", taken apart again.
Finding refused(const std::string& what) {
  const std::size_t colon = what.find(": ");
  Finding finding{.severity = Severity::error,
                  .rule = "refused",
                  .place = {},
                  .sentence = what.substr(colon == std::string::npos ? 0 : colon + 2)};
  std::string place = colon == std::string::npos ? "" : what.substr(0, colon);
  for (int* number : {&finding.place.column, &finding.place.line}) {
    const std::size_t at = place.rfind(':');
    if (at == std::string::npos) break;
    if (std::from_chars(place.data() + at + 1, place.data() + place.size(), *number).ptr != place.data() + place.size()) break;
    place.erase(at);
  }
  finding.place.file = place;
  return finding;
}

/// Scenarios and what became of them, each simulated once.
class Steps {
 public:
  void want(const std::string& yaml) { steps_.try_emplace(yaml); }
  const std::optional<LintedStep>& step(const std::string& yaml) const { return steps_.at(yaml); }

  void simulate(std::size_t jobs, const OnRunProgress& told) {
    std::vector<std::pair<const std::string, std::optional<LintedStep>>*> waiting;
    for (auto& entry : steps_)
      if (!entry.second) waiting.push_back(&entry);
    WorkerPool pool(jobs);
    for (std::size_t next = 0; next < waiting.size() || pool.running() > 0;) {
      for (; next < waiting.size() && !pool.full(); ++next) pool.start(next, waiting[next]->first);
      if (told) told({.total = waiting.size(), .done_before = 0, .done = next - pool.running(), .running = pool.running()});
      constexpr Seconds between_updates = 1;
      for (const FinishedWorker& worker : pool.wait(between_updates)) waiting[worker.point]->second = step_of(worker);
    }
  }

 private:
  std::map<std::string, std::optional<LintedStep>> steps_;

  static std::optional<LintedStep> step_of(const FinishedWorker& worker) {
    const Outcome outcome = outcome_of(worker, "the scenario");
    if (outcome.json.empty()) return {};  // failed: there is no cost to tell
    const nlohmann::json result = nlohmann::json::parse(outcome.json);
    return LintedStep{.step_time = result["step_time_s"],
                      .peak = result["memory"]["peak_bytes"],
                      .gpu_memory = result["memory"]["gpu_bytes"],
                      .fits = result["memory"]["fits"]};
  }
};

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
      : source_(path, overrides), options_(options), document_(source_.resolved()) {
    report_.scenario = source_.name();
  }

  LintReport run() {
    for (const std::string& sentence : refusals_of(document_, source_.name())) report_.findings.push_back(refused(sentence));
    if (!report_.findings.empty()) return std::move(report_);
    const Scenario scenario = read_document(document_, source_.name());
    report_.scenario = scenario.name;
    LintContext context(scenario, document_);
    for (const LintRule rule : lint_rules()) rule(context);
    report_.findings = context.take();
    if (options_.with_costs) {
      simulate_all();
      if (report_.step) add_memory(context);
    }
    std::erase_if(report_.findings, worthless);
    // What is only worth telling for its gain has none that is known.
    std::erase_if(report_.findings, [&](const Finding& finding) { return finding.only_if_faster && !finding.cost; });
    sort_findings(report_.findings);
    return std::move(report_);
  }

 private:
  Source source_;
  LintOptions options_;
  YamlNode document_;
  LintReport report_;
  Steps steps_;

  void simulate_all() {
    const std::string as_it_is = to_yaml(document_);
    steps_.want(as_it_is);
    const std::vector<std::optional<std::string>> fixes = want_fixes(report_.findings);
    steps_.simulate(options_.jobs, options_.told);
    report_.step = steps_.step(as_it_is);
    judge(report_.findings, fixes);
  }

  /// The fullest stage is known only now.
  void add_memory(LintContext& context) {
    memory_left(context, *report_.step);
    std::vector<Finding> found = context.take();
    const std::vector<std::optional<std::string>> fixes = want_fixes(found);
    steps_.simulate(options_.jobs, options_.told);
    judge(found, fixes);
    report_.findings.insert(report_.findings.end(), found.begin(), found.end());
  }

  /// By finding: the scenario with its fix. A fix that makes no scenario is none.
  std::vector<std::optional<std::string>> want_fixes(std::vector<Finding>& findings) {
    std::vector<std::optional<std::string>> fixes;
    for (Finding& finding : findings) {
      fixes.push_back(finding.fix.empty() ? std::nullopt : source_.changed(finding.fix));
      if (!fixes.back()) finding.fix.clear();
      if (fixes.back()) steps_.want(*fixes.back());
    }
    return fixes;
  }

  void judge(std::vector<Finding>& findings, const std::vector<std::optional<std::string>>& fixes) const {
    for (std::size_t i = 0; i < findings.size(); ++i) {
      if (!fixes[i] || !report_.step) continue;
      const std::optional<LintedStep>& fixed = steps_.step(*fixes[i]);
      if (!fixed) continue;
      findings[i].fixed = FixedStep{.step_time = fixed->step_time, .fits = fixed->fits};
      findings[i].cost = std::max(0.0, report_.step->step_time - fixed->step_time);
    }
  }
};

}  // namespace

LintReport lint(const std::string& path, const std::vector<std::string>& overrides, const LintOptions& options) {
  return Linter(path, overrides, options).run();
}

}  // namespace tandem::studies
