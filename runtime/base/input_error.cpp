#include "runtime/base/input_error.h"

#include <utility>

namespace tandem {

std::string Place::text() const {
  if (line == 0) return file;
  if (column == 0) return file + ":" + std::to_string(line);
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string placed(const Place& place, const std::string& sentence) {
  const std::string where = place.text();
  return where.empty() ? sentence : where + ": " + sentence;
}

InputError::InputError(Place place, std::string sentence)
    : std::runtime_error(placed(place, sentence)), place_(std::move(place)), sentence_(std::move(sentence)) {}

}  // namespace tandem
