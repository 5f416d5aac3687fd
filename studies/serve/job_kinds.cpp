#include "studies/serve/job_kinds.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "runtime/base/stopwatch.h"
#include "scenarios/reading/document.h"
#include "studies/diff/difference.h"
#include "studies/lint/lint.h"
#include "studies/report/page.h"
#include "studies/report/step_report.h"
#include "studies/search/search_json.h"
#include "studies/search/search_study.h"
#include "studies/serve/form.h"
#include "studies/serve/pinned_study.h"
#include "studies/serve/served_scenario.h"
#include "studies/step/simulated_step.h"
#include "studies/step/simulation_limits.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* maker = "tandem serve";  // of pages; a page has no command line

ScenarioSource source_in(const Json& body, const JobSite& site) {
  return source_of(ServedScenario::from_json(body), site.folder);
}

Scenario scenario_in(const Json& body, const JobSite& site) {
  const ScenarioSource source = source_in(body, site);
  Scenario scenario = read_document(source.resolved(), source.name());
  refuse_beyond_limits(scenario, true, Collectives::fluid);
  return scenario;
}

Json form_job(const Json& body, const JobSite& site, const TellProgress& /*tell*/) {
  return to_json_object(form_of(source_in(body, site)));
}

Json step_job(const Json& body, const JobSite& site, const TellProgress& /*tell*/) {
  const Stopwatch stopwatch;
  const SimulationOptions of_result{.fold_time = true, .fold_mirrors = true, .ends_process = true};
  return to_json_object(simulate_in_full(scenario_in(body, site), true, of_result, stopwatch).result);
}

Json schedule_job(const Json& body, const JobSite& site, const TellProgress& /*tell*/) {
  const Scenario scenario = scenario_in(body, site);
  const SimulatedStep step =
      simulate_in_full(scenario, true, {.fold_time = true, .fold_mirrors = true, .memory_over_time = true, .ends_process = true});
  return step_report(scenario, step, maker);
}

Json report_job(const Json& body, const JobSite& site, const TellProgress& /*tell*/) {
  const Scenario scenario = scenario_in(body, site);
  BlameBeside blame;
  const auto begin_blame = [&](const FreshStep& fresh) { blame.begin(scenario, fresh); };
  const SimulatedStep step = simulate_in_full(
      scenario, true, {.fold_time = true, .fold_mirrors = true, .memory_over_time = true, .simulated = begin_blame});
  return {{"page", simulated_page(scenario, step, blame, maker)}};
}

Json lint_job(const Json& body, const JobSite& site, const TellProgress& /*tell*/) {
  return Json::parse(to_json(lint(source_in(body, site), {.jobs = site.processes})));
}

Json scenario_job(const Json& body, const JobSite& site, const TellProgress& /*tell*/) {
  return {{"text", text_of(ServedScenario::from_json(body), site.folder)}};
}

Json search_job(const Json& body, const JobSite& site, const TellProgress& tell) {
  const Stopwatch stopwatch;
  const ScenarioSource source = source_in(body, site);
  const SearchStudy study(search_of(source.resolved(), source.file().filename().string()));
  ResultsDatabase database(":memory:");
  constexpr Seconds between_words = 0.1;
  Seconds last = -between_words;
  const FoundPlans found = study.run(database, {site.processes, nullptr}, [&](const SearchProgress& progress) {
    if (!progress.best && stopwatch.elapsed() - last < between_words) return;
    last = stopwatch.elapsed();
    Json words = {{"doing", progress.doing}, {"done", progress.done}, {"of", progress.of}};
    if (progress.best) words["best"] = to_json_object(*progress.best, study.spec(), study.choices());
    tell(words);
  });
  return Json::parse(to_json(found.result, nullptr, study.spec(), study.choices(), stopwatch.elapsed()));
}

const Json& part_of(const Json& body, const char* key) {
  if (!body.is_object() || !body.contains(key)) throw InputError({"the request", 0, 0}, std::string(key) + " is missing");
  return body[key];
}

Json diff_job(const Json& body, const JobSite& /*site*/, const TellProgress& /*tell*/) {
  const auto side = [&](const char* key) { return NamedResult{key, step_result_from_json(part_of(body, key), key)}; };
  Json report = report_head("diff", "B against A", maker);
  report.update(to_json_object(difference_of(side("a"), side("b"))));
  return report;
}

Json study_job(const Json& body, const JobSite& site, const TellProgress& /*tell*/) {
  constexpr std::size_t most_points = 1000;
  const Json& points = part_of(body, "points");
  if (!points.is_array() || points.size() > most_points)
    throw InputError({"the request", 0, 0}, "points is no list, expected at most " + std::to_string(most_points) + " scenarios");
  std::vector<ServedScenario> pinned;
  for (const Json& point : points) pinned.push_back(ServedScenario::from_json(point));
  return {{"text", pinned_study(pinned, site.folder)}};
}

constexpr int at_rest = 5, beside_all = 10;

constexpr std::array kinds{
    JobKind{"form", false, 0, form_job},
    JobKind{"step", false, 0, step_job},
    JobKind{"schedule", false, at_rest, schedule_job},
    JobKind{"report", false, at_rest, report_job},
    JobKind{"lint", false, at_rest, lint_job},
    JobKind{"scenario", false, 0, scenario_job},
    JobKind{"search", true, beside_all, search_job},
    JobKind{"diff", false, 0, diff_job},
    JobKind{"study", false, 0, study_job},
};

}  // namespace

std::span<const JobKind> job_kinds() { return kinds; }

std::size_t job_kind_named(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kinds, name, &JobKind::name) - kinds.begin());
}

}  // namespace tandem::studies
