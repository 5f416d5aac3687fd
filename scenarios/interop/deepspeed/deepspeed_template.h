#pragma once

#include <span>
#include <string>

namespace tandem::scenarios {

/// Returns the JSON that a DeepSpeed configuration with comments (//, #, /* */) or placeholders means: CONFIG_BATCH_SIZE, $NAME
/// and
/// ${NAME} outside of texts become the values of the environment, "NAME=VALUE". Lines stay as they are. Throws InputError with
/// the first placeholder's place that names all without a value.
std::string filled_in_template(const std::string& text, const std::string& file, std::span<const std::string> environment);

}  // namespace tandem::scenarios
