#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/command.h"
#include "cli/text/diff_text.h"
#include "runtime/base/input_error.h"
#include "studies/diff/difference.h"
#include "studies/report/diff_report.h"
#include "traces/dag_file.h"
#include "traces/timeline_file.h"

namespace tandem::cli {
namespace {

ComparableResult result_of_timeline(const std::string& path, const Dag& dag) {
  const Timeline timeline = read_timeline(path, dag).timeline;
  if (timeline.makespan() <= 0) throw InputError({path, 0, 0}, "takes no time, expected the timeline of a step");
  ComparableResult result = parse_result(to_json(summarize(dag, timeline, DType::bf16, {.backend = ""})), path);
  result.mfu.reset();  // no file tells which precision it is of
  return result;
}

}  // namespace

CLI::App* DiffCommand::add_to(CLI::App& app) {
  const auto not_empty = [](const std::string& path) { return path.empty() ? "is empty, expected a path" : ""; };
  CLI::App* command =
      app.add_subcommand("diff", "what changed from one result to another: by part, kind of task, stage and axis");
  command->add_option("a", a, "a JSON result, or a timeline that tandem-run wrote")->required()->check(not_empty);
  command->add_option("b", b, "the other, with the changes")->required()->check(not_empty);
  command->add_option("--dag", dag, "the DAG of the timelines, which `tandem lower --out` wrote")->check(not_empty);
  command->add_option("--report", report, "write an HTML page that shows the differences")->check(not_empty);
  command->add_option("--json", json, "write the differences as JSON (- for standard output)")->check(not_empty);
  return command;
}

ExitCode DiffCommand::run() const {
  const bool has_timeline = is_timeline(a) || is_timeline(b);
  if (has_timeline && dag.empty())
    throw InputError({is_timeline(a) ? a : b, 0, 0},
                     "is a timeline, which tells nothing without its DAG; expected --dag F as well, "
                     "F being what `tandem lower SCENARIO --out F` wrote");
  std::optional<Dag> lowered;
  if (has_timeline) lowered = read_dag(dag);
  const auto load = [&](const std::string& path) {
    return is_timeline(path) ? result_of_timeline(path, *lowered) : read_result(path);
  };
  ComparableResult first = load(a);  // whose fault is told first
  const ResultDifference difference = difference_of(std::move(first), load(b));
  if (!has_timeline && !dag.empty())
    throw InputError({"--dag " + dag, 0, 0}, "is for timelines, expected one of those to compare");

  if (!report.empty()) {
    OutputFile page(report);
    page.write(diff_page(difference));
    page.commit();
  }
  const bool json_goes_out = json == "-";
  const std::string json_text = to_json_object(difference).dump(1) + "\n";
  if (!json.empty() && !json_goes_out) {
    OutputFile file(json);
    file.write(json_text);
    file.commit();
  }
  std::cout << (json_goes_out ? json_text : to_text(difference, screen_on(STDOUT_FILENO)));
  return ExitCode::done;
}

}  // namespace tandem::cli
