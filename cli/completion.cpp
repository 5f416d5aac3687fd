#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "cli/completion_script.h"

namespace tandem::cli {
namespace {

/// Help hides it, as it is for packagers: an installed Tandem has the scripts in their places.
struct CompletionCommand final : Command {
  const CLI::App* program = nullptr;
  std::string shell;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* CompletionCommand::add_to(CLI::App& app) {
  program = &app;
  CLI::App* command = app.add_subcommand("completion", "print a script that completes tandem's command lines in a shell");
  command->group("");
  command->add_option("shell", shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  return command;
}

ExitCode CompletionCommand::run() const {
  std::cout << (shell == "bash" ? bash_completion(*program) : zsh_completion(*program));
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_completion() { return std::make_unique<CompletionCommand>(); }

}  // namespace tandem::cli
