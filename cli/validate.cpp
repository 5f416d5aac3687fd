#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "cli/terminal/points_progress.h"
#include "cli/text/validation_text.h"
#include "studies/report/validation_page.h"
#include "studies/runner/worker_pool.h"
#include "studies/validate/validation_report.h"

namespace tandem::cli {

CLI::App* ValidateCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("validate", "hold simulations against runs that were measured");
  const auto not_empty = [](const std::string& path) { return path.empty() ? "is empty, expected a path" : ""; };
  command->add_option("rows", rows, "a table with commas, a run in each row; docs/commands/validate.md lists the columns")
      ->required()
      ->check(not_empty);
  command->add_option("--json", json, "write rows and scores as JSON (- for standard output)")->check(not_empty);
  command->add_option("--csv", csv, "write the table with columns for what was predicted (- for standard output)")
      ->check(not_empty);
  command->add_option("--report", report, "write an HTML page that shows all of it")->check(not_empty);
  command->add_option("--jobs", jobs, "simulations at once (default: this machine's hardware threads)")
      ->check(CLI::Range(1, 4096));
  command->add_flag("--core", core, "only the rows whose column `core` is 1");
  return command;
}

ExitCode ValidateCommand::run() const {
  RunsFile file = load_runs(rows);
  for (const std::string& column : file.ignored)
    std::cerr << "tandem: warning: " << rows << ": the column " << column << " means nothing here\n";
  if (core) file.keep_core();
  if (file.rows.empty()) throw InputError({.file = rows}, "no row has core 1, expected some, or no --core");
  std::unique_ptr<OutputFile> json_file;
  if (!json.empty() && json != "-") json_file = std::make_unique<OutputFile>(json);
  std::unique_ptr<OutputFile> csv_file;
  if (!csv.empty() && csv != "-") csv_file = std::make_unique<OutputFile>(csv);
  std::unique_ptr<OutputFile> page;
  if (!report.empty()) page = std::make_unique<OutputFile>(report);
  const std::size_t at_once = processes_at_once(jobs);
  PointsProgress line;
  const Validation validation =
      validation_of(file.rows, validate_rows(file.rows, at_once, [&line](const RunProgress& progress) { line.show(progress); }));
  if (json_file) {
    json_file->write(to_json(validation));
    json_file->commit();
  }
  if (csv_file) {
    csv_file->write(to_csv(validation, file.table));
    csv_file->commit();
  }
  if (page) {
    page->write(validation_page(std::filesystem::path(rows).filename().string(), validation));
    page->commit();
  }
  if (json == "-") std::cout << to_json(validation);
  if (csv == "-") std::cout << to_csv(validation, file.table);
  if (json != "-" && csv != "-") std::cout << to_text(validation, screen_on(STDOUT_FILENO));
  return ExitCode::done;
}

}  // namespace tandem::cli
