#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <vector>

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

}  // namespace

std::string usage_sentence(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string help = "; see tandem " + (chosen.empty() ? "" : command.get_name() + " ") + "--help";

  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty())
    return chosen.empty() ? "a subcommand is missing; expected one of: " + joined(subcommand_names(app)) : error.what() + help;
  const std::string& first = unknown.front();
  if (first.starts_with('-')) return "no option " + excerpt(first) + suggestion(first, option_names(command));
  if (chosen.empty()) return "no subcommand " + excerpt(first) + suggestion(first, subcommand_names(app));
  return "one argument too many: " + excerpt(first) + help;
}

}  // namespace tandem::cli
