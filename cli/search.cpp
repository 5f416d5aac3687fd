#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/program.h"
#include "cli/slurm_options.h"
#include "cli/terminal/progress.h"
#include "cli/text/search_text.h"
#include "runtime/base/quantities.h"
#include "runtime/base/stopwatch.h"
#include "studies/report/study_report.h"
#include "studies/runner/step_runner.h"
#include "studies/search/search_json.h"
#include "studies/search/search_study.h"
#include "studies/search/write_plan.h"

namespace tandem::cli {
namespace {

struct SearchCommand final : Command {
  ResultOptions options;
  std::string out;  ///< empty for the default
  int jobs = 0;     ///< 0 for the default
  std::string report;
  std::string explained;  ///< a plan; empty for none
  std::optional<Seconds> within;
  std::string folder;  ///< for the best plan; empty for none
  SlurmOptions slurm;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

/// Turns "10s", "5 min" or "1h" into seconds. Returns a complaint where it is something else.
std::string to_seconds(std::string& text) {
  const std::map<std::string, double> units{{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const auto unit = units.find(end + std::strspn(end, " "));
  if (!(number > 0) || !std::isfinite(number) || unit == units.end())
    return "is '" + text + "', expected a duration such as 10s, 5min or 1h";
  text = fmt::format("{}", number * unit->second);
  return "";
}

void add_within_option(CLI::App& command, std::optional<Seconds>& within) {
  command
      .add_option_function<double>(
          "--within", [&within](const double& seconds) { within = seconds; },
          "end after this time with the best plan so far, and say by how much another may beat it: 10s, 5min, 1h")
      ->transform(CLI::Validator(to_seconds, "", "duration"))
      ->type_name("DURATION");
}

CLI::App* SearchCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("search", "find the best plans for a scenario: bounds first, then simulations");
  options.add_to(*command);
  add_max_memory_option(*command);
  command->add_option("--out", out, "the database (default: the scenario's name with .search.sqlite, in this folder)")
      ->check(not_empty);
  add_jobs_option(*command, jobs, "simulations");
  add_report_option(*command, report, "the plans that were simulated");
  command->add_option("--explain", explained, "say what rules a plan out, or by how much it loses: tp=4,pp=8,...")
      ->check([](const std::string& text) { return text.empty() ? "is empty, expected a plan such as tp=4,pp=8" : ""; });
  add_within_option(*command, within);
  command
      ->add_option("--write", folder,
                   "write the best plan into a folder: a scenario, Megatron-Core arguments, TorchTitan TOML, NCCL variables")
      ->check(not_empty);
  slurm.add_to(*command, "plans");
  return command;
}

ExitCode SearchCommand::run() const {
  const Stopwatch stopwatch;
  const SearchStudy study(options.scenario, options.overrides, explained);
  const SearchSpec& spec = study.spec();
  const PlanChoices& choices = study.choices();
  Output json(options.json), page(report);
  if (!folder.empty()) make_plan_folder(folder);

  const std::string stem = std::filesystem::path(options.scenario).stem().string();
  const std::string file = out.empty() ? stem + ".search.sqlite" : out;
  ResultsDatabase database(file);
  const auto pool = slurm.pool(spec.name, file + ".slurm", jobs);
  ProgressBar bar;
  const FoundPlans found = study.run(
      database, {processes_at_once(pool ? 0 : jobs), pool.get()},
      [&](const SearchProgress& progress) {
        bar.show(fmt::format("{} {}/{}", progress.doing, progress.done, progress.of),
                 static_cast<double>(progress.done) / static_cast<double>(std::max<std::size_t>(1, progress.of)), {});
      },
      within);
  bar.take_away();

  const SearchResult& result = found.result;
  const std::optional<Explanation>& explanation = found.explanation;
  const Seconds wall = stopwatch.elapsed();
  if (json) json.write(to_json(result, explanation ? &*explanation : nullptr, spec, choices, wall));
  if (page) page.write(study_page(spec.name, found.rows, command_line));
  if (!folder.empty() && !result.best.empty()) write_plan(result.best.front().plan, choices, spec, folder);
  if (!json.is_standard_output()) {
    const Screen screen = screen_on(STDOUT_FILENO);
    std::cout << to_text(result, spec, choices, wall, screen);
    if (explanation) std::cout << to_text(*explanation, result, spec, choices, screen);
  }
  std::cout.flush();
  if (result.counts.failed > 0)
    return complain("tandem",
                    result.counts.failed == 1
                        ? "one plan failed; the same command tries it again"
                        : fmt::format("{} plans failed; the same command tries them again", result.counts.failed),
                    ExitCode::failed);
  if (result.best.empty() && result.ended_early)
    return complain("tandem", fmt::format("no plan that may win was simulated within {}; expected more time", rounded(*within)),
                    ExitCode::failed);
  if (result.best.empty()) return complain("tandem", nothing_fits_sentence(result, spec, choices), ExitCode::does_not_fit);
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_search() { return std::make_unique<SearchCommand>(); }

}  // namespace tandem::cli
