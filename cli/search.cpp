#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "cli/terminal/progress.h"
#include "cli/text/search_text.h"
#include "studies/report/study_report.h"
#include "studies/runner/worker_pool.h"
#include "studies/search/search_json.h"
#include "studies/search/write_plan.h"

namespace tandem::cli {

CLI::App* SearchCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("search", "find the best plans for a scenario: bounds first, then simulations");
  const auto not_empty = [](const std::string& path) { return path.empty() ? "is empty, expected a path" : ""; };
  options.add_to(*command);
  command->add_option("--out", out, "the database (default: the scenario's name with .search.sqlite, in this folder)")
      ->check(not_empty);
  command->add_option("--jobs", jobs, "simulations at once (default: this machine's hardware threads)")
      ->check(CLI::Range(1, 4096));
  command->add_option("--report", report, "write an HTML page that shows the plans that were simulated")->check(not_empty);
  command->add_option("--explain", explained, "say what rules a plan out, or by how much it loses: tp=4,pp=8,...")
      ->check([](const std::string& text) { return text.empty() ? "is empty, expected a plan such as tp=4,pp=8" : ""; });
  command
      ->add_option("--write", folder,
                   "write the best plan into a folder: a scenario, Megatron-Core arguments, TorchTitan TOML, NCCL variables")
      ->check(not_empty);
  return command;
}

ExitCode SearchCommand::run() const {
  const auto began = std::chrono::steady_clock::now();
  const SearchSpec spec = load_search(options.scenario, options.overrides);
  const PlanSpace space(spec);
  std::optional<Plan> asked;
  if (!explained.empty()) asked = space.parse(explained);
  std::unique_ptr<OutputFile> json, page;
  if (!options.json.empty() && options.json != "-") json = std::make_unique<OutputFile>(options.json);
  if (!report.empty()) page = std::make_unique<OutputFile>(report);
  bool any = false;
  space.for_each([&](const Plan&) { return !(any = true); });
  if (!any) refuse_contradiction(spec);

  const std::string stem = std::filesystem::path(options.scenario).stem().string();
  ResultsDatabase database(out.empty() ? stem + ".search.sqlite" : out);
  const std::size_t at_once = processes_at_once(jobs);
  PlanRuns runs(spec, space.choices(), database, at_once);
  Search search(spec, space, runs);
  ProgressBar bar;
  const SearchResult result = search.run([&](const SearchProgress& progress) {
    bar.show(fmt::format("{} {}/{}", progress.doing, progress.done, progress.of),
             static_cast<double>(progress.done) / static_cast<double>(std::max<std::size_t>(1, progress.of)), {});
  });
  std::optional<Explanation> explanation;
  if (asked) explanation = explain(*asked, spec, space, search, runs);
  bar.take_away();

  const Seconds wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const std::string as_json =
      options.json.empty() ? "" : to_json(result, explanation ? &*explanation : nullptr, spec, space.choices(), wall);
  if (json) {
    json->write(as_json);
    json->commit();
  }
  if (page) {
    page->write(study_page(spec.name, runs.rows()));
    page->commit();
  }
  if (!folder.empty() && !result.best.empty()) write_plan(result.best.front().plan, space.choices(), spec, folder);
  const Screen screen = screen_on(STDOUT_FILENO);
  if (options.json == "-") {
    std::cout << as_json;
  } else {
    std::cout << to_text(result, spec, space.choices(), wall, screen);
    if (explanation) std::cout << to_text(*explanation, result, spec, space.choices(), screen);
  }
  std::cout.flush();
  if (result.counts.failed > 0)
    return complain("tandem", fmt::format("{} plans failed; the same command tries them again", result.counts.failed),
                    ExitCode::failed);
  if (result.best.empty())
    return complain("tandem", nothing_fits_sentence(result, spec, space.choices()), ExitCode::does_not_fit);
  return ExitCode::done;
}

}  // namespace tandem::cli
