#pragma once

#include <string>

namespace tandem {

/// Writes a sentence to standard error, the first time that the process says it: what a library refused, and what runs in its
/// place. Any thread may call it.
void say_once(const std::string& sentence);

}  // namespace tandem
