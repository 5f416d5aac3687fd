#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/program.h"

namespace {

using namespace tandem::cli;
using tandem::ExitCode;

/// Quoted where a shell would take it apart.
std::string quoted(std::string_view word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string as_typed(int argc, const char* const* argv) {
  std::string line = "tandem";
  for (int i = 1; i < argc; ++i) line += " " + quoted(argv[i]);
  return line;
}

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
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {  // --help, --version
    app.exit(answer);
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    return complain("tandem", usage_sentence(app, error), ExitCode::wrong_input);
  }
  const auto& chosen = std::ranges::find_if(commands, [](const auto& entry) { return entry.first->parsed(); })->second;
  chosen->command_line = as_typed(argc, argv);
  return guarded("tandem", [&] { return chosen->run(); });
}

}  // namespace

int main(int argc, char** argv) {
  start("tandem");
  return finished("tandem", run(argc, argv));
}
