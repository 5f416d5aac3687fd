#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tandem::cli {

// A shell's script that completes a program's subcommands, their options, and the values of options that take one of a few; file
// names everywhere else, but where a number is due. What help hides is left out. All comes from the options as CLI11 knows them,
// so that script and program cannot differ.

/// For bash: to be sourced, or installed in share/bash-completion/completions under the program's name.
std::string bash_completion(const CLI::App& app);

/// For zsh: to be sourced, or installed in share/zsh/site-functions as _NAME.
std::string zsh_completion(const CLI::App& app);

}  // namespace tandem::cli
