#pragma once

#include <string>
#include <vector>

#include "cli/shared_options.h"
#include "scenarios/spec/scenario.h"
#include "sim/simulate.h"

namespace tandem::cli {

/// What the subcommands that read a scenario take alike.
struct ScenarioOptions {
  std::string scenario;
  std::vector<std::string> overrides;

  void add_to(CLI::App& command);
};

/// What the subcommands that read a scenario and have a result take alike.
struct ResultOptions : ScenarioOptions {
  std::string json;  ///< a path, "-" for standard output, empty for none

  void add_to(CLI::App& command);
};

/// What the subcommands that run a step take alike.
struct StepOptions : ResultOptions {
  std::string trace;
  std::string trace_ranks;  ///< empty for representative ones
  std::string report;
  bool allow_oom = false;

  void add_to(CLI::App& command);
};

/// The scenario that was asked for. Tells on standard error what of it is unwise.
Scenario load_with_warnings(const ScenarioOptions& options);
/// Tells them on standard error.
void tell_warnings(const std::vector<std::string>& warnings);

/// `--profile F`, for `--set cluster.profile=F`, F being a file from the current folder.
void add_profile_option(CLI::App& command, ScenarioOptions& options);

/// `--collectives fluid|steps`.
void add_collectives_option(CLI::App& command, Collectives& collectives);

/// `--report F`: an HTML page that shows `what`.
void add_report_option(CLI::App& command, std::string& path, const std::string& what);

/// `--jobs N`: how many of `what` ("simulations") go on at once; 0, the default, is as many as this machine has threads.
void add_jobs_option(CLI::App& command, int& jobs, const std::string& what);

/// `--set PATH=VALUE`, as often as one likes.
void add_overrides_option(CLI::App& command, std::vector<std::string>& overrides,
                          const std::string& help = "override a field: parallelism.tp=4");

/// `--fold-tolerance X`.
void add_fold_tolerance_option(CLI::App& command, double& tolerance);

}  // namespace tandem::cli
