#include "scenarios/shell/unknown.h"

#include <charconv>
#include <utility>

namespace tandem::scenarios::shell {

std::string Unknown::sentence() const {
  std::string text = what;
  if (kind == Kind::unset) text += ", which nothing sets";
  if (kind == Kind::output) text += ", which is not run";
  if (kind == Kind::condition) text += ", which cannot be told here";
  if (place.line > 0 && kind == Kind::output) text += " (" + place.text() + ")";
  return text + (setting.empty() ? "" : ", expected --env " + setting + "=VALUE");
}

std::string Unknowns::add(Unknown unknown) {
  all_.push_back(std::move(unknown));
  return mark_begin + std::to_string(all_.size() - 1) + mark_end;
}

bool Unknowns::has(std::string_view text) { return text.find(mark_begin) != std::string_view::npos; }

bool Unknowns::is_one(std::string_view text) {
  return !text.empty() && text.front() == mark_begin && text.find(mark_end) == text.size() - 1;
}

std::vector<const Unknown*> Unknowns::all_of(std::string_view text) const {
  std::vector<const Unknown*> found;
  for (std::size_t at = text.find(mark_begin); at != std::string_view::npos; at = text.find(mark_begin, at + 1)) {
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(text.data() + at + 1, text.data() + text.size(), index);
    if (error == std::errc() && index < all_.size()) found.push_back(&all_[index]);
  }
  return found;
}

const Unknown& Unknowns::first_of(std::string_view text) const {
  static const Unknown stray{.kind = Unknown::Kind::stray, .what = "a control character"};
  const std::vector<const Unknown*> all = all_of(text);
  return all.empty() ? stray : *all.front();
}

bool Unknowns::is_empty(std::string_view text, bool& known) const {
  known = true;
  if (text.empty()) return true;
  std::size_t marks = 0;
  bool inside = false;
  for (const char c : text) {
    if (c == mark_begin) {
      inside = true;
      ++marks;
    } else if (c == mark_end) {
      inside = false;
    } else if (!inside) {
      return false;
    }
  }
  for (const Unknown* unknown : all_of(text))
    if (unknown->kind != Unknown::Kind::unset) known = false;
  return marks > 0;
}

std::string Unknowns::readable(std::string_view text) const {
  std::string readable;
  std::size_t next = 0;
  const std::vector<const Unknown*> unknowns = all_of(text);
  bool inside = false;
  for (const char c : text) {
    if (c == mark_begin) {
      inside = true;
      if (next < unknowns.size()) readable += unknowns[next++]->what;
    } else if (c == mark_end) {
      inside = false;
    } else if (!inside) {
      readable += c;
    }
  }
  return readable;
}

}  // namespace tandem::scenarios::shell
