#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "cli/command.h"
#include "scenarios/load.h"

namespace {

using tandem::ExitCode;

/// Sentences go to standard error and decide the exit code.
template <typename Command>
ExitCode guarded(const Command& command) {
  try {
    return command.run();
  } catch (const tandem::InputError& error) {
    std::cerr << "tandem: " << error.what() << '\n';
    return ExitCode::wrong_input;
  } catch (const std::bad_alloc&) {
    std::cerr << "tandem: out of memory on this machine\n";
    return ExitCode::failed;
  } catch (const std::exception& error) {
    std::cerr << "tandem: " << error.what() << '\n';
    return ExitCode::failed;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Tandem: a digital twin for one LLM training step on a GPU cluster"};
  app.name("tandem");
  app.require_subcommand(1);
  tandem::SimulateCommand simulate;
  tandem::ExecuteCommand execute;
  tandem::CrosscheckCommand crosscheck;
  simulate.add_to(app);
  execute.add_to(app);
  crosscheck.add_to(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(ExitCode::wrong_input);
  }
  ExitCode code = ExitCode::done;
  if (app.got_subcommand("simulate")) code = guarded(simulate);
  if (app.got_subcommand("execute")) code = guarded(execute);
  if (app.got_subcommand("crosscheck")) code = guarded(crosscheck);
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "tandem: standard output cannot be written\n";
    if (code == ExitCode::done) code = ExitCode::failed;
  }
  return static_cast<int>(code);
}
