#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/shared_options.h"
#include "studies/slurm/spool_task.h"

namespace tandem::cli {
namespace {

/// Help hides it, as it is for the tasks that `--slurm` submits.
struct SlurmTaskCommand final : Command {
  std::string folder;
  int jobs = 0;  ///< 0 for the CPUs of the task

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* SlurmTaskCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("slurm-task", "simulate what a command with --slurm waits for");
  command->group("");
  command->add_option("folder", folder, "the folder in which that command has made task.sh")->required()->check(not_empty);
  command->add_option("--jobs", jobs, "how many steps run at once (default: the CPUs that Slurm gives the task)")
      ->check(CLI::Range(1, 4096));
  return command;
}

ExitCode SlurmTaskCommand::run() const {
  work_on_spool(folder, this_slurm_task(), jobs > 0 ? static_cast<std::size_t>(jobs) : cpus_of_slurm_task());
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_slurm_task() { return std::make_unique<SlurmTaskCommand>(); }

}  // namespace tandem::cli
