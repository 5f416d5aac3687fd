#include "cli/command.h"

namespace tandem::cli {
namespace {

using CommandMaker = std::unique_ptr<Command>();

}  // namespace

/// Each is defined in the file of its subcommand.
CommandMaker make_simulate, make_execute, make_crosscheck, make_calibrate, make_search, make_place, make_sweep, make_campaign,
    make_lint, make_validate, make_serve, make_topology, make_lower, make_export, make_import, make_diff, make_report,
    make_completion, make_slurm_task;

std::vector<std::unique_ptr<Command>> make_commands() {
  constexpr CommandMaker* makers[] = {make_simulate, make_execute,  make_crosscheck, make_calibrate, make_search,
                                      make_place,    make_sweep,    make_campaign,   make_lint,      make_serve,
                                      make_validate, make_topology, make_lower,      make_export,    make_import,
                                      make_diff,     make_report,   make_completion, make_slurm_task};
  std::vector<std::unique_ptr<Command>> commands;
  for (CommandMaker* const make : makers) commands.push_back(make());
  return commands;
}

}  // namespace tandem::cli
