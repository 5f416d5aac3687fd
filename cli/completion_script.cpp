#include "cli/completion_script.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string_view>
#include <vector>

#include "cli/program.h"

namespace tandem::cli {
namespace {

enum class Value {
  none,
  number,
  choice,
  file
};

/// An option, or a positional argument, which has no names.
struct Argument {
  std::vector<std::string> names;  ///< "--backend", "-h"
  std::string what;                ///< the line of help
  Value value = Value::none;
  std::vector<std::string> choices = {};  ///< "host", "cuda"
  bool repeats = false;
};

/// The choices of "TEXT:{host,cuda}", as CLI11 names the type of an option that takes one of a few.
std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t begin = type.rfind('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

bool is_number(std::string_view type) { return type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT"); }

Argument argument_of(const CLI::Option& option) {
  Argument argument{.names = {}, .what = option.get_description()};
  for (const std::string& name : option.get_lnames()) argument.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) argument.names.push_back("-" + name);
  argument.repeats = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (option.get_items_expected_max() == 0) return argument;
  const std::string type = option.get_type_name();
  argument.choices = choices_in(type);
  argument.value = !argument.choices.empty() ? Value::choice : is_number(type) ? Value::number : Value::file;
  return argument;
}

std::vector<Argument> arguments_of(const CLI::App& app) {
  std::vector<Argument> arguments;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) arguments.push_back(argument_of(*option));
  return arguments;
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<std::string> words_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const Argument& argument : arguments_of(app)) names.insert(names.end(), argument.names.begin(), argument.names.end());
  return names;
}

/// A function's name.
std::string function_of(const CLI::App& app) {
  std::string name = "_" + app.get_name();
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

/// By what follows an option, the patterns "command:option" of a case statement in bash.
struct BashPatterns {
  std::map<std::string, std::vector<std::string>> choices;  ///< by the choices, as words
  std::vector<std::string> numbers, files;
};

BashPatterns bash_patterns(const CLI::App& app) {
  BashPatterns patterns;
  for (const CLI::App* command : subcommands_of(app)) {
    for (const Argument& argument : arguments_of(*command)) {
      for (const std::string& name : argument.names) {
        const std::string pattern = command->get_name() + ":" + name;
        if (argument.value == Value::choice)
          patterns.choices[fmt::format("{}", fmt::join(argument.choices, " "))].push_back(pattern);
        if (argument.value == Value::number) patterns.numbers.push_back(pattern);
        if (argument.value == Value::file) patterns.files.push_back(pattern);
      }
    }
  }
  return patterns;
}

/// Within the brackets of a specification for _arguments.
std::string zsh_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// What zsh offers for a value: ":name:action".
std::string zsh_action(const Argument& argument) {
  switch (argument.value) {
    case Value::none:
      return "";
    case Value::number:
      return ":number: ";
    case Value::choice:
      return fmt::format(":value:({})", fmt::join(argument.choices, " "));
    case Value::file:
      return ":file:_files";
  }
  return "";
}

std::string zsh_arguments(const CLI::App& command) {
  std::string text = "      _arguments";
  for (const Argument& argument : arguments_of(command)) {
    const auto specify = [&](const std::string& specification) { text += " \\\n        " + shell_quoted(specification); };
    if (argument.names.empty())
      specify(":" + zsh_escaped(argument.what) + zsh_action(argument).substr(zsh_action(argument).rfind(':')));
    for (const std::string& name : argument.names) {
      const bool joins = argument.value != Value::none && name.starts_with("--");  // --name=value, too
      specify((argument.repeats ? "*" : "") + name + (joins ? "=" : "") + "[" + zsh_escaped(argument.what) + "]" +
              zsh_action(argument));
    }
  }
  return text + "\n";
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  const std::string program = app.get_name(), function = function_of(app);
  std::vector<std::string> first;
  for (const CLI::App* command : subcommands_of(app)) first.push_back(command->get_name());
  for (const std::string& name : words_of_options(app)) first.push_back(name);
  const BashPatterns patterns = bash_patterns(app);

  std::string text = fmt::format("# bash completion for {0}, written by `{0} completion bash`\n{1}() {{\n", program, function);
  text += R"(  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=
  COMPREPLY=()
  if [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi  # --option=value
  if [[ $cur == = ]]; then cur=; fi
  if ((COMP_CWORD == 1)); then
)";
  text += fmt::format("    words='{}'\n  else\n", fmt::join(first, " "));
  text += "    case ${COMP_WORDS[1]}:$prev in\n";
  for (const auto& [words, options] : patterns.choices)
    text += fmt::format("      {}) words='{}' ;;\n", fmt::join(options, "|"), words);
  if (!patterns.numbers.empty())
    text +=
        fmt::format("      {})\n        compopt +o default 2>/dev/null\n        return ;;\n", fmt::join(patterns.numbers, "|"));
  if (!patterns.files.empty()) text += fmt::format("      {}) return ;;  # a file\n", fmt::join(patterns.files, "|"));
  text += "      *)\n        if [[ $cur != -* ]]; then return; fi  # a file\n        case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* command : subcommands_of(app))
    text += fmt::format("          {}) words='{}' ;;\n", command->get_name(), fmt::join(words_of_options(*command), " "));
  text += "        esac ;;\n    esac\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n";
  return text + fmt::format("complete -o default -F {} {}\n", function, program);
}

std::string zsh_completion(const CLI::App& app) {
  const std::string program = app.get_name(), function = function_of(app);
  std::string text =
      fmt::format("#compdef {0}\n# zsh completion for {0}, written by `{0} completion zsh`\n{1}() {{\n", program, function);
  text += "  if ((CURRENT == 2)); then\n    local -a commands=(\n";
  for (const CLI::App* command : subcommands_of(app))
    text += "      " + shell_quoted(command->get_name() + ":" + command->get_description()) + "\n";
  text += fmt::format("    )\n    _describe command commands\n    compadd -- {}\n    return\n  fi\n",
                      fmt::join(words_of_options(app), " "));
  text += "  shift words\n  ((CURRENT--))\n  case $words[1] in\n";
  for (const CLI::App* command : subcommands_of(app))
    text += fmt::format("    {})\n{}      ;;\n", command->get_name(), zsh_arguments(*command));
  text += "  esac\n}\n";
  return text + fmt::format("if [[ $funcstack[1] == {0} ]]; then {0} \"$@\"; else compdef {0} {1}; fi\n", function, program);
}

}  // namespace tandem::cli
