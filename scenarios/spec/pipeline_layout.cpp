#include "scenarios/spec/pipeline_layout.h"

#include <algorithm>
#include <stdexcept>

#include "scenarios/spec/limits.h"

namespace tandem::scenarios {
namespace {

constexpr std::string_view letters = "EtmL";
constexpr std::size_t longest = 4 * static_cast<std::size_t>(max_layers);  ///< letters and bars, so that a typo fills no memory

class LayoutReader {
 public:
  explicit LayoutReader(std::string_view text) {
    for (const char c : text)
      if (c != ',') text_ += c;
  }

  std::string unrolled() {
    while (at_ < text_.size()) {
      const bool group = text_[at_] == '(';
      add(group ? take_group() : take_one(), group);
    }
    return std::move(unrolled_);
  }

 private:
  std::string text_, unrolled_;
  std::size_t at_ = 0;

  void add(const std::string& what, bool needs_count) {
    const std::size_t times = take_count(needs_count);
    if (times > longest || what.size() * times > longest - std::min(longest, unrolled_.size()))
      throw std::invalid_argument("the layout has more than " + std::to_string(longest) + " letters and bars, expected fewer");
    for (std::size_t i = 0; i < times; ++i) unrolled_ += what;
  }

  std::string take_one() {
    const char c = text_[at_++];
    if (c != '|' && letters.find(c) == std::string_view::npos)
      throw std::invalid_argument(
          "the layout has " + std::string("'") + c +
          "', expected E (embedding), t (layer), m (MTP layer), L (loss), | between stages, X*n or (...)*n");
    return {c};
  }

  std::string take_group() {
    const std::size_t end = text_.find(')', at_);
    if (end == std::string::npos) throw std::invalid_argument("the layout has a ( that no ) closes");
    const std::string inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.empty() || inside.find('(') != std::string::npos)
      throw std::invalid_argument("the layout has (" + inside + "), expected letters in parentheses, and no others in them");
    at_ = end + 1;
    return LayoutReader(inside).unrolled();
  }

  std::size_t take_count(bool is_needed) {
    if (at_ == text_.size() || text_[at_] != '*') {
      if (is_needed) throw std::invalid_argument("the layout has parentheses without a number, expected (...)*n");
      return 1;
    }
    const std::size_t first = ++at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    const std::string digits = text_.substr(first, at_ - first);
    constexpr std::size_t most_digits = 6;
    if (digits.empty()) throw std::invalid_argument("the layout has a * without a number, expected X*n or (...)*n");
    return digits.size() > most_digits ? longest + 1 : std::stoul(digits);
  }
};

std::string in_runs(const std::string& stage) {
  std::string text;
  for (std::size_t first = 0; first < stage.size();) {
    const std::size_t end = std::min(stage.find_first_not_of(stage[first], first), stage.size());
    const std::size_t times = end - first;
    text += times < 3 ? std::string(times, stage[first]) : stage[first] + ("*" + std::to_string(times));
    first = end;
  }
  return text;
}

}  // namespace

std::int64_t count_in(std::string_view stage, char part) { return std::ranges::count(stage, part); }

std::int64_t count_in(const PipelineLayout& layout, char part) {
  std::int64_t count = 0;
  for (const std::string& stage : layout) count += count_in(stage, part);
  return count;
}

PipelineLayout parse_pipeline_layout(std::string_view text) {
  const std::string all = LayoutReader(text).unrolled();
  PipelineLayout layout(1);
  for (const char c : all) {
    if (c == '|')
      layout.emplace_back();
    else
      layout.back() += c;
  }
  return layout;
}

std::string layout_text(const PipelineLayout& layout) {
  std::string text;
  for (std::size_t first = 0; first < layout.size();) {
    std::size_t end = first;
    while (end < layout.size() && layout[end] == layout[first]) ++end;
    const bool is_last = end == layout.size();
    const std::size_t times = end - first - (is_last ? 1 : 0);  // those with a bar after them
    const std::string stage = in_runs(layout[first]);
    if (times == 1) text += stage + '|';
    if (times > 1) text += '(' + stage + "|)*" + std::to_string(times);
    if (is_last) text += stage;
    first = end;
  }
  return text;
}

}  // namespace tandem::scenarios
