#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "cli/program.h"
#include "runtime/base/nearest.h"

namespace tandem::cli {
namespace {

/// Help hides a subcommand that belongs to no group.
bool is_shown(const CLI::App* command) { return !command->get_group().empty(); }

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(is_shown)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// What CLI11 refused, as one sentence.
std::string usage_sentence(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::vector<std::string> subcommands = subcommand_names(command);
  const std::string help = "; see " + app.get_name() + (chosen.empty() ? "" : " " + command.get_name()) + " --help";

  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty())
    return subcommands.empty() ? error.what() + help : "a subcommand is missing; expected one of: " + joined(subcommands);
  const std::string& first = unknown.front();
  if (first.starts_with('-')) return "no option " + excerpt(first) + suggestion(first, option_names(command));
  if (!subcommands.empty()) return "no subcommand " + excerpt(first) + suggestion(first, subcommands);
  return "one argument too many: " + excerpt(first) + help;
}

}  // namespace

std::optional<ExitCode> parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& answer) {  // --help, --version
    app.exit(answer);
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    return complain(app.get_name(), usage_sentence(app, error), ExitCode::wrong_input);
  }
}

std::string as_typed(const std::string& program, int argc, const char* const* argv) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  std::string line = program;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool is_one_word = !word.empty() && word.find_first_not_of(plain) == std::string_view::npos;
    line += ' ' + (is_one_word ? std::string(word) : shell_quoted(word));
  }
  return line;
}

}  // namespace tandem::cli
