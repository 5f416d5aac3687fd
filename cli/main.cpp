#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/program.h"

namespace {

using namespace tandem::cli;
using tandem::ExitCode;

ExitCode run(int argc, char** argv) {
  CLI::App app{"Tandem: a digital twin for one LLM training step on a GPU cluster"};
  app.name("tandem");
  app.set_version_flag("--version", "tandem " TANDEM_VERSION);
  app.require_subcommand(1);
  std::vector<std::pair<const CLI::App*, std::unique_ptr<Command>>> commands;
  for (std::unique_ptr<Command>& command : make_commands()) {
    const CLI::App* const parser = command->add_to(app);
    commands.emplace_back(parser, std::move(command));
  }
  if (const auto ended = parse(app, argc, argv)) return *ended;
  const auto& chosen = std::ranges::find_if(commands, [](const auto& entry) { return entry.first->parsed(); })->second;
  chosen->command_line = as_typed("tandem", argc, argv);
  return guarded("tandem", [&] { return chosen->run(); });
}

}  // namespace

int main(int argc, char** argv) {
  start("tandem");
  return finished("tandem", run(argc, argv));
}
