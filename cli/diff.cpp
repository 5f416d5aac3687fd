#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/text/diff_text.h"
#include "studies/diff/difference_of_files.h"
#include "studies/report/diff_report.h"

namespace tandem::cli {
namespace {

struct DiffCommand final : Command {
  std::string a, b;
  std::string dag;   ///< a file; empty for none
  std::string json;  ///< a path, "-" for standard output, empty for none
  std::string report;
  std::string markdown;  ///< as `json`

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* DiffCommand::add_to(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("diff", "say what changed from one result to another: by part, kind of task, stage and axis");
  command->add_option("a", a, "a JSON result, torch.profiler's traces, or a timeline that tandem-run wrote")
      ->required()
      ->check(not_empty);
  command->add_option("b", b, "the other, with the changes")->required()->check(not_empty);
  command->add_option("--dag", dag, "the DAG of the timelines, which `tandem lower --out` wrote")->check(not_empty);
  add_report_option(*command, report, "the differences");
  command->add_option("--json", json, "write the differences as JSON (- for standard output)")->check(not_empty);
  add_markdown_option(*command, markdown, "the differences");
  return command;
}

ExitCode DiffCommand::run() const {
  Output page(report), json_output(json), markdown_output(markdown);
  const ResultDifference difference = difference_of_files(a, b, dag);
  if (page) page.write(diff_page(difference, command_line));
  if (json_output) json_output.write(to_json_object(difference).dump(1) + "\n");
  if (markdown_output) markdown_output.write(to_text(difference, {.markdown = true}));
  if (!json_output.is_standard_output() && !markdown_output.is_standard_output())
    std::cout << to_text(difference, screen_on(STDOUT_FILENO));
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_diff() { return std::make_unique<DiffCommand>(); }

}  // namespace tandem::cli
