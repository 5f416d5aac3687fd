#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <optional>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/slurm_options.h"
#include "cli/terminal/points_progress.h"
#include "cli/text/explained_run_text.h"
#include "cli/text/validation_text.h"
#include "studies/report/validation_page.h"
#include "studies/runner/step_runner.h"
#include "studies/validate/validation.h"

namespace tandem::cli {
namespace {

struct ValidateCommand final : Command {
  std::string rows;  ///< a table of runs
  std::string json;  ///< a path, "-" for standard output, empty for none
  std::string csv;   ///< the same
  std::string report;
  std::optional<std::string> explained;  ///< the id of a run
  int jobs = 0;                          ///< 0 for the default
  bool core = false;
  bool memory = false;
  SlurmOptions slurm;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;

 private:
  std::unique_ptr<SlurmPool> slurm_pool() const;
  void validate(const RunsFile& file) const;
  void explain(const RunsFile& file) const;
};

CLI::App* ValidateCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("validate", "hold simulations against runs that were measured");
  command->add_option("rows", rows, "a comma-separated table with a run in each row; docs/commands/validate.md lists the columns")
      ->required()
      ->check(not_empty);
  command->add_option("--json", json, "write rows and scores as JSON (- for standard output)")->check(not_empty);
  command->add_option("--csv", csv, "write the table with columns for the predictions added (- for standard output)")
      ->check(not_empty);
  add_report_option(*command, report, "all of it");
  command->add_option("--explain", explained, "the id of one run: where its time goes, and the measured run that is most like it")
      ->excludes("--csv")
      ->excludes("--report");
  add_max_memory_option(*command);
  add_jobs_option(*command, jobs, "simulations");
  slurm.add_to(*command, "the runs");
  command->add_flag("--core", core, "only the rows whose column `core` is 1");
  command->add_flag("--memory", memory, "only the rows that state memory");
  return command;
}

ExitCode ValidateCommand::run() const {
  RunsFile file = load_runs(rows);
  for (const std::string& column : file.ignored)
    std::cerr << "tandem: warning: " << rows << ": the column " << column << " means nothing here\n";
  if (core) file.keep_core();
  if (file.rows.empty()) throw InputError({.file = rows}, "no row has core 1, expected some, or no --core");
  if (memory) file.keep_memory();
  if (file.rows.empty()) throw InputError({.file = rows}, "no row states memory, expected some, or no --memory");
  explained ? explain(file) : validate(file);
  return ExitCode::done;
}

/// There is no database, so what has come when the command is killed stays in the folder.
std::unique_ptr<SlurmPool> ValidateCommand::slurm_pool() const {
  const std::string stem = std::filesystem::path(rows).stem().string();
  return slurm.pool(stem, stem + ".validate.slurm", jobs);
}

void ValidateCommand::explain(const RunsFile& file) const {
  Output json_output(json);
  const auto pool = slurm_pool();
  PointsProgress line;
  const ExplainedRun run = explain_run(file.rows, *explained, {processes_at_once(jobs), pool.get()},
                                       [&line](const RunProgress& progress) { line.show(progress); });
  if (json_output) json_output.write(to_json(run));
  if (!json_output.is_standard_output()) std::cout << to_text(run, screen_on(STDOUT_FILENO));
}

void ValidateCommand::validate(const RunsFile& file) const {
  Output json_output(json), csv_output(csv), page(report);
  const auto pool = slurm_pool();
  PointsProgress line;
  const Validation validation =
      validation_of(file.rows, validate_rows(file.rows, {processes_at_once(jobs), pool.get()},
                                             [&line](const RunProgress& progress) { line.show(progress); }));
  if (json_output) json_output.write(to_json(validation));
  if (csv_output) csv_output.write(to_csv(validation, file.table));
  if (page) page.write(validation_page(std::filesystem::path(rows).filename().string(), validation, command_line));
  if (!json_output.is_standard_output() && !csv_output.is_standard_output())
    std::cout << to_text(validation, screen_on(STDOUT_FILENO));
}

}  // namespace

std::unique_ptr<Command> make_validate() { return std::make_unique<ValidateCommand>(); }

}  // namespace tandem::cli
