#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "studies/report/page.h"
#include "cli/usage_error.h"

namespace {

using tandem::ExitCode;

ExitCode run(int argc, char** argv) {
  CLI::App app{"Tandem: a digital twin for one LLM training step on a GPU cluster"};
  app.name("tandem");
  app.set_version_flag("--version", "tandem " TANDEM_VERSION);
  app.require_subcommand(1);
  tandem::SimulateCommand simulate;
  tandem::ExecuteCommand execute;
  tandem::CrosscheckCommand crosscheck;
  tandem::CalibrateCommand calibrate;
  tandem::SweepCommand sweep;
  tandem::CampaignCommand campaign;
  tandem::TopologyCommand topology;
  tandem::LowerCommand lower;
  tandem::ValidateCommand validate;
  tandem::PlaceCommand place;
  tandem::DiffCommand diff;
  tandem::SearchCommand search;
  tandem::ReportCommand report;
  tandem::LintCommand lint;
  tandem::ExportCommand to_other_programs;
  tandem::ImportCommand from_other_programs;
  std::vector<std::pair<const CLI::App*, const tandem::Command*>> commands;
  for (tandem::Command* command : std::initializer_list<tandem::Command*>{
           &simulate, &execute, &crosscheck, &calibrate, &search, &place, &sweep, &campaign, &lint, &validate, &topology, &lower,
           &to_other_programs, &from_other_programs, &diff, &report})
    commands.emplace_back(command->add_to(app), command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {  // --help, --version
    app.exit(answer);
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    return tandem::complain("tandem", tandem::usage_sentence(app, error), ExitCode::wrong_input);
  }
  const auto chosen = std::ranges::find_if(commands, [](const auto& entry) { return entry.first->parsed(); });
  return tandem::guarded("tandem", [&] { return chosen->second->run(); });
}

}  // namespace

int main(int argc, char** argv) {
  tandem::start("tandem");
  tandem::remember_command(argc, argv);
  return tandem::finished("tandem", run(argc, argv));
}
