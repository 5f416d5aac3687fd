#include "cli/options.h"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <map>

#include "scenarios/reading/document.h"
#include "scenarios/reading/load.h"
#include "traces/formats.h"

namespace tandem::cli {

void ScenarioOptions::add_to(CLI::App& command) {
  command.add_option("scenario", scenario, "the scenario file")->required()->check(not_empty);
  add_overrides_option(command, overrides);
}

void ResultOptions::add_to(CLI::App& command) {
  ScenarioOptions::add_to(command);
  command.add_option("--json", json, "write the result as JSON (- for standard output)")->check(not_empty);
}

void StepOptions::add_to(CLI::App& command) {
  ResultOptions::add_to(command);
  CLI::Option* option = command.add_option("--trace", trace, "write the timeline: " + trace_formats_text());
  option->check(not_empty);
  command
      .add_option(
          "--trace-ranks", trace_ranks,
          "the ranks that --trace shows, such as 0,5,16-31; ranks that behave alike are shown once (default: every rank that was "
          "simulated or executed if there are at most 64, otherwise the most common and the slowest of each pipeline stage)")
      ->needs(option)
      ->check([](const std::string& list) { return list.empty() ? "is empty, expected ranks such as 0,5,16-31" : ""; });
  add_report_option(command, report, "all of it");
  command.add_flag("--allow-oom", allow_oom, "go on when the scenario does not fit in memory");
  command.add_flag_callback(
      "--verbose", [] { spdlog::set_level(spdlog::level::debug); }, "say on standard error what is done");
}

Scenario load_with_warnings(const ScenarioOptions& options) {
  Scenario scenario = load_scenario(options.scenario, options.overrides);
  tell_warnings(scenario.warnings);
  return scenario;
}

void tell_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) std::cerr << "tandem: warning: " << warning << '\n';
}

void add_profile_option(CLI::App& command, ScenarioOptions& options) {
  command
      .add_option_function<std::string>(
          "--profile",
          [&options](const std::string& name) {
            const std::string path = std::filesystem::exists(name) ? std::filesystem::absolute(name).string() : name;
            options.overrides.push_back("cluster.profile=" + quoted_yaml(path));
          },
          "take kernel times from what `tandem calibrate` measured")
      ->check(not_empty);
}

void add_collectives_option(CLI::App& command, Collectives& collectives) {
  std::map<std::string, Collectives> names;
  for (const Collectives kind : {Collectives::fluid, Collectives::steps}) names.emplace(name_of(kind), kind);
  command
      .add_option_function<std::string>(
          "--collectives", [&collectives, names](const std::string& name) { collectives = names.at(name); },
          "fluid: each collective is one flow; steps: each of its messages is played, which takes every rank and more time")
      ->check(CLI::IsMember(names))
      ->type_name(std::string(name_of(Collectives::fluid)) + "|" + name_of(Collectives::steps));
}

void add_report_option(CLI::App& command, std::string& path, const std::string& what) {
  const auto is_file = [](const std::string& text) { return text == "-" ? "is standard output, expected a file" : ""; };
  command.add_option("--report", path, "write an HTML page that shows " + what)->check(not_empty)->check(is_file);
}

void add_markdown_option(CLI::App& command, std::string& path, const std::string& what) {
  command.add_option("--markdown", path, "write " + what + " as Markdown (- for standard output)")->check(not_empty);
}

void add_jobs_option(CLI::App& command, int& jobs, const std::string& what) {
  command.add_option("--jobs", jobs, "how many " + what + " run at once (default: this machine's hardware threads)")
      ->check(CLI::Range(1, 4096));
}

void add_overrides_option(CLI::App& command, std::vector<std::string>& overrides, const std::string& help) {
  command.add_option("--set", overrides, help)->allow_extra_args(false)->take_all();
}

void add_fold_tolerance_option(CLI::App& command, double& tolerance) {
  command
      .add_option("--fold-tolerance", tolerance,
                  "under ECMP, merge links whose loads differ by a factor of up to 1 + this; 0 folds exactly")
      ->check(CLI::Range(0.0, 1e6));
}

}  // namespace tandem::cli
