#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/backend_option.h"
#include "cli/program.h"
#include "cli/text/step_text.h"
#include "runtime/base/peak_rss.h"
#include "runtime/dag/dag.h"
#include "scenarios/spec/scenario.h"
#include "sim/simulate.h"
#include "studies/step/step_result.h"
#include "studies/trace/trace_output.h"

namespace CLI {
class App;
}

namespace tandem::cli {

/// What the subcommands that read a scenario take alike.
struct ScenarioOptions {
  std::string scenario;
  std::vector<std::string> overrides;
  std::string json;  ///< a path, "-" for standard output, empty for none

  void add_to(CLI::App& command);
};

/// What the subcommands that run a step take alike.
struct StepOptions : ScenarioOptions {
  std::string trace;
  std::string trace_ranks;  ///< empty for representative ones
  std::string report;
  bool allow_oom = false;

  void add_to(CLI::App& command);
};

/// The scenario that was asked for. Tells on standard error what of it is unwise.
Scenario load_with_warnings(const ScenarioOptions& options);

/// `--profile F`, for `--set cluster.profile=F`, F being a file from the current folder.
void add_profile_option(CLI::App& command, ScenarioOptions& options);

/// `--collectives fluid|steps`.
void add_collectives_option(CLI::App& command, Collectives& collectives);

/// The files a command was asked for, opened before the work begins, so that a wrong path does not cost a run.
class Outputs {
 public:
  /// `world`: how many ranks the scenario has.
  Outputs(const StepOptions& options, std::int64_t world);

  /// `steps`: those that a trace shows.
  void write(const StepResult& result, const std::vector<TracedStep>& steps);
  /// The HTML page, where one was asked for: what `page` makes (see report/).
  void write_report(const std::function<std::string()>& page);

 private:
  const StepOptions& options_;
  std::unique_ptr<OutputFile> json_;
  std::unique_ptr<TraceOutput> trace_;
  std::unique_ptr<OutputFile> report_;
};

/// Runs a step, and should that fail writes the page that says so before it passes the failure on.
ExitCode reporting_failure(const Scenario& scenario, Outputs& outputs, const std::function<ExitCode()>& run);

/// Says that and by how much the fullest stage exceeds the GPU, and what takes the room.
std::string out_of_memory_sentence(const std::string& place, const StepResult& result);

/// A subcommand: registers itself, and runs when it was chosen.
struct Command {
  virtual ~Command() = default;
  virtual CLI::App* add_to(CLI::App& app) = 0;
  virtual ExitCode run() const = 0;
};

struct SimulateCommand : Command {
  StepOptions options;
  bool no_fold = false;
  double fold_tolerance = 0;
  Collectives collectives = Collectives::fluid;
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;

 private:
  ExitCode run(const Scenario& scenario, Outputs& outputs, std::chrono::steady_clock::time_point began) const;
};

struct ExecuteCommand : Command {
  StepOptions options;
  BackendOptions backend;
  bool verify = false;
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;

 private:
  ExitCode run(const Scenario& scenario, Outputs& outputs) const;
};

struct CrosscheckCommand : Command {
  StepOptions options;
  BackendOptions backend;
  std::string measured;  ///< a timeline; empty: the step is executed on `backend`
  Collectives collectives = Collectives::fluid;
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;

 private:
  ExitCode run(const Scenario& scenario, Outputs& outputs) const;
};

struct CalibrateCommand : Command {
  std::string backend;
  std::string out;
  std::vector<std::string> scenarios;
  std::string shapes;  ///< a file; empty for none
  Seconds budget = 180;
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

struct LowerCommand : Command {
  std::string scenario;
  std::vector<std::string> overrides;
  std::string out;
  bool folded = false;
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

struct TopologyCommand : Command {
  ScenarioOptions options;
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

struct LintCommand : Command {
  ScenarioOptions options;
  int jobs = 0;           ///< 0 for the default
  bool no_costs = false;  ///< nothing is simulated
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

struct ExportCommand : Command {
  std::string scenario;
  std::vector<std::string> overrides;
  std::string to;
  std::string out;  ///< a path, empty for standard output
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

struct ImportCommand : Command {
  std::string file;
  std::string from;
  std::string cluster = "dgx-h100";
  std::int64_t gpus = 0;  ///< 0 where the file is to say
  std::vector<std::string> overrides;
  std::string out;  ///< a path, empty for standard output
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

struct ReportCommand : Command {
  std::string file;
  std::string out;  ///< empty for the default
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

struct SweepCommand : Command {
  std::string study;
  std::string out;  ///< empty for the default
  std::string shard = "0/1";
  int jobs = 0;  ///< 0 for the default
  std::string csv;
  std::string report;
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

struct CampaignCommand : Command {
  ScenarioOptions options;
  double fold_tolerance = 0;
  int jobs = 0;  ///< 0 for the default
  bool allow_oom = false;
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

struct ValidateCommand : Command {
  std::string rows;  ///< a table of runs
  std::string json;  ///< a path, "-" for standard output, empty for none
  std::string csv;   ///< the same
  std::string report;
  int jobs = 0;  ///< 0 for the default
  bool core = false;
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

struct SearchCommand : Command {
  ScenarioOptions options;
  std::string out;  ///< empty for the default
  int jobs = 0;     ///< 0 for the default
  std::string report;
  std::string explained;  ///< a plan; empty for none
  std::string folder;     ///< for the best plan; empty for none
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

struct PlaceCommand : Command {
  ScenarioOptions options;
  std::string nodes;  ///< a list or a file; empty for all
  std::string out = "placement.yaml";
  std::string study;  ///< empty for the default
  std::uint64_t seed = 1;
  std::int64_t moves = 20'000;
  int jobs = 0;  ///< 0 for the default
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

struct DiffCommand : Command {
  std::string a, b;
  std::string dag;   ///< a file; empty for none
  std::string json;  ///< a path, "-" for standard output, empty for none
  std::string report;
  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

}  // namespace tandem::cli
