#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <exception>
#include <iostream>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/usage_error.h"
#include "scenarios/load.h"

namespace {

using tandem::ExitCode;

ExitCode complain(std::string sentence, ExitCode code) {
  const auto breaks_the_line = [](unsigned char c) { return std::iscntrl(c) != 0; };
  std::ranges::replace_if(sentence, breaks_the_line, '?');  // a path may hold anything
  std::cerr << "tandem: " << sentence << '\n';
  return code;
}

/// Sentences go to standard error and decide the exit code.
ExitCode guarded(const tandem::Command& command) {
  try {
    return command.run();
  } catch (const tandem::InputError& error) {
    return complain(error.what(), ExitCode::wrong_input);
  } catch (const std::bad_alloc&) {
    return complain("out of memory on this machine", ExitCode::failed);
  } catch (const std::exception& error) {
    return complain(error.what(), ExitCode::failed);
  }
}

ExitCode run(int argc, char** argv) {
  CLI::App app{"Tandem: a digital twin for one LLM training step on a GPU cluster"};
  app.name("tandem");
  app.set_version_flag("--version", "tandem " TANDEM_VERSION);
  app.require_subcommand(1);
  tandem::SimulateCommand simulate;
  tandem::ExecuteCommand execute;
  tandem::CrosscheckCommand crosscheck;
  tandem::SweepCommand sweep;
  tandem::TopologyCommand topology;
  std::vector<std::pair<const CLI::App*, const tandem::Command*>> commands;
  for (tandem::Command* command : std::initializer_list<tandem::Command*>{&simulate, &execute, &crosscheck, &sweep, &topology})
    commands.emplace_back(command->add_to(app), command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {  // --help, --version
    app.exit(answer);
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    return complain(tandem::usage_sentence(app, error), ExitCode::wrong_input);
  }
  const auto chosen = std::ranges::find_if(commands, [](const auto& entry) { return entry.first->parsed(); });
  return guarded(*chosen->second);
}

}  // namespace

int main(int argc, char** argv) {
  auto log = spdlog::stderr_logger_st("tandem");
  log->set_pattern("tandem: %v (%o ms later)");
  spdlog::set_default_logger(std::move(log));
  ExitCode code = run(argc, argv);
  std::cout.flush();
  if (!std::cout && code == ExitCode::done) code = complain("standard output cannot be written", ExitCode::failed);
  return static_cast<int>(code);
}
