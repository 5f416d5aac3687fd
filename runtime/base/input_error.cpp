#include "runtime/base/input_error.h"

namespace tandem {

std::string Place::text() const {
  if (line == 0) return file;
  if (column == 0) return file + ":" + std::to_string(line);
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

InputError::InputError(const Place& place, const std::string& sentence) : std::runtime_error(place.text() + ": " + sentence) {}

}  // namespace tandem
