#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/exit_code.h"

namespace tandem::cli {

/// Prints one sentence on standard error, after the program's name. Returns `code`.
ExitCode complain(const std::string& program, const std::string& sentence, ExitCode code);

/// Puts `text` into single quotes, so that a shell takes it for one word.
std::string shell_quoted(std::string_view text);

/// Warns on standard error of traces from before that lie beside the one that was written.
void warn_of_other_traces(const std::string& program, const std::vector<std::string>& others);

/// Returns the line "6 kinds of collectives exact on crafted data".
std::string exact_collectives_sentence(std::size_t kinds);

/// Runs `work`; what it throws becomes a sentence on standard error and an exit code.
ExitCode guarded(const std::string& program, const std::function<ExitCode()>& work);

/// Returns the exit code for `main`: `code`, or ExitCode::failed where standard output could not be written, which it says.
int finished(const std::string& program, ExitCode code);

/// Sets the program up, first thing in `main`: log lines go to standard error after its name, and freed memory stays with the
/// process, as large blocks would otherwise go back to the system and return page by page.
void start(const std::string& program);

}  // namespace tandem::cli
