#pragma once

#include <string>

#include "runtime/base/namespaces.h"

namespace tandem {

/// The text of a file, checked by `check_text`. Throws InputError that says why it cannot be read, and when there is no such
/// file, which one beside it may have been meant.
std::string read_text_file(const std::string& path, const std::string& expected = "a scenario in YAML");

/// The bytes of a file, whatever they are. Throws InputError as `read_text_file` does where it cannot be read.
std::string read_bytes(const std::string& path);

/// Throws InputError unless `text` is at most 1 MB of UTF-8 without NUL and holds something. `file` stands for it in
/// messages, which say what was `expected`.
void check_text(const std::string& text, const std::string& file, const std::string& expected = "a scenario in YAML");

}  // namespace tandem
