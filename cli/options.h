#pragma once

#include <string>
#include <vector>

#include "cli/shared_options.h"
#include "scenarios/spec/scenario.h"
#include "sim/simulate.h"

namespace tandem::cli {

/// The options of a subcommand that reads a scenario.
struct ScenarioOptions {
  std::string scenario;
  std::vector<std::string> overrides;

  void add_to(CLI::App& command);
};

/// The options of a subcommand that reads a scenario and has a result.
struct ResultOptions : ScenarioOptions {
  std::string json;  ///< a path, "-" for standard output, empty for none

  void add_to(CLI::App& command);
};

/// The options of a subcommand that runs a step.
struct StepOptions : ResultOptions {
  std::string trace;
  std::string trace_ranks;  ///< as `parse_ranks` takes them; empty for representative ones
  std::string report;
  bool allow_oom = false;

  void add_to(CLI::App& command);
};

/// Reads the scenario, and prints its warnings on standard error. Throws InputError as `load_scenario` does.
Scenario load_with_warnings(const ScenarioOptions& options);
/// Prints each as a line on standard error.
void tell_warnings(const std::vector<std::string>& warnings);

/// Adds `--profile F`, which stands for `--set cluster.profile=F` where F counts from the current folder.
void add_profile_option(CLI::App& command, ScenarioOptions& options);

/// Adds `--collectives fluid|steps`.
void add_collectives_option(CLI::App& command, Collectives& collectives);

/// Adds `--report F`, an HTML page that shows `what` ("all of it").
void add_report_option(CLI::App& command, std::string& path, const std::string& what);

/// Adds `--markdown F`, which writes `what` ("the findings") as Markdown.
void add_markdown_option(CLI::App& command, std::string& path, const std::string& what);

/// Adds `--jobs N`, how many of `what` ("simulations") run at once; 0 stands for the hardware threads of this machine.
void add_jobs_option(CLI::App& command, int& jobs, const std::string& what);

/// Adds `--set PATH=VALUE`, which may be given several times.
void add_overrides_option(CLI::App& command, std::vector<std::string>& overrides,
                          const std::string& help = "override a field: parallelism.tp=4");

/// Adds `--fold-tolerance X`.
void add_fold_tolerance_option(CLI::App& command, double& tolerance);

}  // namespace tandem::cli
