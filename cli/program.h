#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/exit_code.h"

namespace tandem::cli {

/// One sentence on standard error.
ExitCode complain(const std::string& program, std::string sentence, ExitCode code);

/// In single quotes, so that a shell takes it for one word.
std::string shell_quoted(std::string_view text);

/// Says on standard error that traces that were there before lie beside one that was written.
void warn_of_other_traces(const std::string& program, const std::vector<std::string>& others);

/// "6 kinds of collectives exact on crafted data", as a line.
std::string exact_collectives_sentence(std::size_t kinds);

/// Runs `work`; what it throws becomes a sentence on standard error and an exit code.
ExitCode guarded(const std::string& program, const std::function<ExitCode()>& work);

/// For `main` to return: `code`, or that standard output could not be written.
int finished(const std::string& program, ExitCode code);

/// First thing in `main`: logging, to standard error, after the program's name; and memory that was freed is kept for the next
/// who wants some, where large blocks would else go back to the system and come again page by page.
void start(const std::string& program);

}  // namespace tandem::cli
