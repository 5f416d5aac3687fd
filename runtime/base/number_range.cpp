#include "runtime/base/number_range.h"

#include <charconv>
#include <optional>

#include "runtime/base/nearest.h"

namespace tandem {
namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace

NumberRange parse_range(std::string_view item, const Place& place, const std::string& expected) {
  const std::size_t dash = item.find('-');
  const std::optional<std::int64_t> first = whole_number(item.substr(0, dash));
  const std::optional<std::int64_t> last = dash == std::string_view::npos ? first : whole_number(item.substr(dash + 1));
  if (!first || !last) throw InputError(place, "found " + excerpt(item) + ", expected " + expected);
  if (*last < *first)
    throw InputError(place,
                     excerpt(item) + " ends before it begins, expected " + std::to_string(*last) + "-" + std::to_string(*first));
  return {*first, *last};
}

}  // namespace tandem
