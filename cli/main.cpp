#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/usage_error.h"
#include "studies/report/page.h"

namespace {

using namespace tandem::cli;
using tandem::ExitCode;

ExitCode run(int argc, char** argv) {
  CLI::App app{"Tandem: a digital twin for one LLM training step on a GPU cluster"};
  app.name("tandem");
  app.set_version_flag("--version", "tandem " TANDEM_VERSION);
  app.require_subcommand(1);
  tandem::cli::SimulateCommand simulate;
  tandem::cli::ExecuteCommand execute;
  tandem::cli::CrosscheckCommand crosscheck;
  tandem::cli::CalibrateCommand calibrate;
  tandem::cli::SweepCommand sweep;
  tandem::cli::CampaignCommand campaign;
  tandem::cli::TopologyCommand topology;
  tandem::cli::LowerCommand lower;
  tandem::cli::ValidateCommand validate;
  tandem::cli::PlaceCommand place;
  tandem::cli::DiffCommand diff;
  tandem::cli::SearchCommand search;
  tandem::cli::ReportCommand report;
  tandem::cli::LintCommand lint;
  tandem::cli::ExportCommand to_other_programs;
  tandem::cli::ImportCommand from_other_programs;
  std::vector<std::pair<const CLI::App*, const Command*>> commands;
  for (Command* command :
       std::initializer_list<Command*>{&simulate, &execute, &crosscheck, &calibrate, &search, &place, &sweep, &campaign, &lint,
                                       &validate, &topology, &lower, &to_other_programs, &from_other_programs, &diff, &report})
    commands.emplace_back(command->add_to(app), command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {  // --help, --version
    app.exit(answer);
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    return complain("tandem", usage_sentence(app, error), ExitCode::wrong_input);
  }
  const auto chosen = std::ranges::find_if(commands, [](const auto& entry) { return entry.first->parsed(); });
  return guarded("tandem", [&] { return chosen->second->run(); });
}

}  // namespace

int main(int argc, char** argv) {
  start("tandem");
  tandem::studies::remember_command(argc, argv);
  return finished("tandem", run(argc, argv));
}
