#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tandem::cli {

// A script completes a program's subcommands, their options, and the values of options that take one of a few. Elsewhere the
// shell completes file names, except where a number is expected. The script leaves out what help hides. It is made from the
// options as CLI11 knows them, so that script and program cannot differ.

/// Returns the script for bash: to be sourced, or installed in share/bash-completion/completions under the program's name.
std::string bash_completion(const CLI::App& app);

/// Returns the script for zsh: to be sourced, or installed in share/zsh/site-functions as _NAME.
std::string zsh_completion(const CLI::App& app);

}  // namespace tandem::cli
