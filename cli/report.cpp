#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/command.h"
#include "cli/outputs.h"
#include "studies/report/file_report.h"

namespace tandem::cli {
namespace {

struct ReportCommand final : Command {
  std::string file;
  std::string out;  ///< empty for the default

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* ReportCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("report", "show a study's database, or a result, as one HTML file");
  command->add_option("file", file, "what `tandem sweep` or --json wrote")->required()->check(not_empty);
  command->add_option("--out", out, "the page, - for standard output (default: the file's name with .html, in this folder)")
      ->check(not_empty);
  return command;
}

ExitCode ReportCommand::run() const {
  Output page(out.empty() ? std::filesystem::path(file).stem().string() + ".html" : out);
  page.write(file_page(file, command_line));
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_report() { return std::make_unique<ReportCommand>(); }

}  // namespace tandem::cli
