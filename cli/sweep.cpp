#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "cli/terminal/points_progress.h"
#include "cli/text/sweep_text.h"
#include "studies/report/study_report.h"
#include "studies/runner/worker_pool.h"
#include "studies/sweep/point.h"
#include "studies/sweep/report.h"
#include "studies/sweep/run_points.h"

namespace tandem::cli {
namespace {

struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;
};

/// "i/n", i from 0 as Slurm numbers an array's tasks. A count of 0 where the text is something else.
Shard parse_shard(const std::string& text) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  if (index.ec != std::errc{} || index.ptr == end || *index.ptr != '/') return {0, 0};
  const auto count = std::from_chars(index.ptr + 1, end, shard.count);
  return count.ec == std::errc{} && count.ptr == end && shard.index < shard.count ? shard : Shard{0, 0};
}

/// Every n-th point, so that neighbours, which tend to take equally long, go to different shards.
std::vector<PointId> points_of(const Shard& shard, std::vector<PointId> points) {
  std::erase_if(points, [&](const PointId& point) { return point.index % shard.count != shard.index; });
  return points;
}

/// Whether there was any.
bool tell_refusals(const Study& study, const std::vector<PointId>& points) {
  constexpr std::size_t most = 20;
  const std::vector<std::string> sentences = refusals(study, points);
  for (std::size_t i = 0; i < std::min(sentences.size(), most); ++i) std::cerr << "tandem: " << sentences[i] << '\n';
  if (sentences.size() > most) std::cerr << "tandem: " << sentences.size() - most << " more like these\n";
  return !sentences.empty();
}

std::string summary(const std::vector<PointRow>& rows, std::size_t kept, const std::string& file) {
  std::string text = fmt::format("{} points", rows.size());
  for (const PointStatus status : {PointStatus::done, PointStatus::oom, PointStatus::refused, PointStatus::failed}) {
    const auto count = std::ranges::count(rows, status, &PointRow::status);
    if (count > 0) text += fmt::format(", {} {}", count, name_of(status));
  }
  return fmt::format("{}; {} of them from before; in {}\n", text, kept, file);
}

}  // namespace

CLI::App* SweepCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("sweep", "simulate the points of a study, each once, into a database");
  const auto not_empty = [](const std::string& path) { return path.empty() ? "is empty, expected a path" : ""; };
  const auto is_shard = [](const std::string& text) {
    return parse_shard(text).count > 0 ? "" : text + " is no shard, expected i/n with i from 0 to n - 1, such as 0/8";
  };
  command->add_option("study", study, "the study's file: a scenario with lists of values")->required()->check(not_empty);
  command->add_option("--out", out, "the database (default: the study's name with .sqlite, in this folder)")->check(not_empty);
  command->add_option("--shard", shard, "do every n-th point only, from the i-th: i/n with i from 0")->check(is_shard);
  command->add_option("--jobs", jobs, "points at once (default: this machine's hardware threads)")->check(CLI::Range(1, 4096));
  command->add_option("--csv", csv, "write the points as a table with commas (- for standard output)")->check(not_empty);
  command->add_option("--report", report, "write an HTML page that shows the points")->check(not_empty);
  return command;
}

ExitCode SweepCommand::run() const {
  const Study loaded = load_study(study);
  const std::vector<PointId> all = validated_points(loaded);
  if (!loaded.skip_invalid && tell_refusals(loaded, all)) return ExitCode::wrong_input;
  const std::vector<PointId> points = points_of(parse_shard(shard), all);

  std::unique_ptr<OutputFile> csv_file;
  if (!csv.empty() && csv != "-") csv_file = std::make_unique<OutputFile>(csv);
  std::unique_ptr<OutputFile> page;
  if (!report.empty()) page = std::make_unique<OutputFile>(report);
  const std::string file = out.empty() ? std::filesystem::path(study).stem().string() + ".sqlite" : out;
  ResultsDatabase database(file);
  const std::size_t at_once = processes_at_once(jobs);
  PointsProgress line;
  const SweptPoints swept =
      run_points(loaded, points, database, at_once, [&line](const RunProgress& progress) { line.show(progress); });

  if (csv_file) {
    csv_file->write(to_csv(loaded.paths, swept.rows));
    csv_file->commit();
  }
  if (page) {
    page->write(study_page(loaded.name, swept.rows));
    page->commit();
  }
  std::cout << (csv == "-" ? to_csv(loaded.paths, swept.rows)
                           : to_table(loaded.paths, swept.rows, screen_on(STDOUT_FILENO)) + "\n" +
                                 summary(swept.rows, swept.kept, file));
  const auto failures = std::ranges::count(swept.rows, PointStatus::failed, &PointRow::status);
  if (failures == 0) return ExitCode::done;
  std::cout.flush();
  std::cerr << fmt::format("tandem: {} of {} points failed; the same command tries them again\n", failures, swept.rows.size());
  return ExitCode::failed;
}

}  // namespace tandem::cli
