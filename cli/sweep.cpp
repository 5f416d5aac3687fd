#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/program.h"
#include "cli/slurm_options.h"
#include "cli/terminal/points_progress.h"
#include "cli/text/sweep_text.h"
#include "studies/report/study_report.h"
#include "studies/runner/step_runner.h"
#include "studies/sweep/point.h"
#include "studies/sweep/points_csv.h"
#include "studies/sweep/run_points.h"
#include "studies/sweep/shard.h"

namespace tandem::cli {
namespace {

struct SweepCommand final : Command {
  std::string study;
  std::string out;  ///< empty for the default
  std::string shard = "0/1";
  int jobs = 0;  ///< 0 for the default
  std::string csv;
  std::string report;
  SlurmOptions slurm;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* SweepCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("sweep", "simulate the points of a study, each once, into a database");
  const auto is_shard = [](const std::string& text) {
    return parse_shard(text) ? "" : text + " is no shard, expected i/n with i from 0 to n - 1, such as 0/8";
  };
  command->add_option("study", study, "the study's file: a scenario with lists of values")->required()->check(not_empty);
  command->add_option("--out", out, "the database (default: the study's name with .sqlite, in this folder)")->check(not_empty);
  command->add_option("--shard", shard, "do every n-th point only, from the i-th: i/n with i from 0")->check(is_shard);
  add_max_memory_option(*command);
  add_jobs_option(*command, jobs, "points");
  command->add_option("--csv", csv, "write the points as a comma-separated table (- for standard output)")->check(not_empty);
  add_report_option(*command, report, "the points");
  slurm.add_to(*command, "the points");
  return command;
}

ExitCode SweepCommand::run() const {
  const Study loaded = load_study(study);
  const std::vector<PointId> all = validated_points(loaded);
  if (const auto sentences = refusals(loaded, all); !loaded.skip_invalid && !sentences.empty()) {
    std::cerr << refusals_text(sentences);
    return ExitCode::wrong_input;
  }
  const std::vector<PointId> points = points_of(*parse_shard(shard), all);

  Output csv_output(csv), page(report);
  const std::string file = out.empty() ? std::filesystem::path(study).stem().string() + ".sqlite" : out;
  ResultsDatabase database(file);
  const auto pool = slurm.pool(loaded.name, file + ".slurm", jobs);
  PointsProgress line;
  const SweptPoints swept = run_points(loaded, points, database, {processes_at_once(jobs), pool.get()},
                                       [&line](const RunProgress& progress) { line.show(progress); });

  if (csv_output) csv_output.write(to_csv(loaded.paths, swept.rows));
  if (page) page.write(study_page(loaded.name, swept.rows, command_line));
  if (!csv_output.is_standard_output())
    std::cout << to_table(loaded.paths, swept.rows, screen_on(STDOUT_FILENO)) << '\n'
              << summary_text(swept.rows, swept.kept, file);
  const auto failures = std::ranges::count(swept.rows, PointStatus::failed, &PointRow::status);
  if (failures == 0) return ExitCode::done;
  std::cout.flush();
  return complain("tandem", fmt::format("{} of {} points failed; the same command tries them again", failures, swept.rows.size()),
                  ExitCode::failed);
}

}  // namespace

std::unique_ptr<Command> make_sweep() { return std::make_unique<SweepCommand>(); }

}  // namespace tandem::cli
