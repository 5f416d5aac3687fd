#pragma once

#include <string>

#include "runtime/base/namespaces.h"

namespace tandem {

/// Returns the text of a file, checked by `check_text`. `expected` says what the file should hold: "a list of nodes". Throws an
/// InputError that says why the file cannot be read and, where there is none, which one beside it may have been meant.
std::string read_text_file(const std::string& path, const std::string& expected);

/// The bytes of a file, whatever they are. Throws InputError as `read_text_file` does where it cannot be read.
std::string read_bytes(const std::string& path);

/// Throws InputError unless `text` is at most 1 MB of UTF-8 without NUL and holds something. `file` stands for
/// the text in messages, which say what was `expected`.
void check_text(const std::string& text, const std::string& file, const std::string& expected);

}  // namespace tandem
