#include "scenarios/interop/megatron/layer_pattern.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>

#include "scenarios/spec/limits.h"

namespace tandem::scenarios {
namespace {

constexpr std::size_t longest = max_layers;

/// sum = product {"+" product}; product = list {"*" number}; list = "[" [number {"," number}] "]" | "(" sum ")".
class PatternParser {
 public:
  explicit PatternParser(std::string_view text) {
    std::ranges::copy_if(text, std::back_inserter(text_), [](char c) { return c != ' '; });
  }

  std::optional<std::vector<std::int64_t>> all() {
    std::vector<std::int64_t> list = sum();
    if (wrong_ || at_ != text_.size()) return {};
    return list;
  }

 private:
  std::string text_;
  std::size_t at_ = 0;
  bool wrong_ = false;

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) wrong_ = true;
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) wrong_ = true;
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  std::vector<std::int64_t> list() {
    std::vector<std::int64_t> values;
    if (take('(')) {
      values = sum();
      expect(')');
      return values;
    }
    expect('[');
    while (!wrong_ && !take(']')) {
      if (!values.empty()) expect(',');
      values.push_back(number());
    }
    return values;
  }

  std::vector<std::int64_t> product() {
    std::vector<std::int64_t> once = list();
    while (!wrong_ && take('*')) {
      const std::int64_t times = number();
      if (wrong_ || times < 0 || static_cast<std::size_t>(times) > longest ||
          once.size() * static_cast<std::size_t>(times) > longest) {
        wrong_ = true;
        return {};
      }
      std::vector<std::int64_t> repeated;
      for (std::int64_t i = 0; i < times; ++i) repeated.insert(repeated.end(), once.begin(), once.end());
      once = std::move(repeated);
    }
    return once;
  }

  std::vector<std::int64_t> sum() {
    std::vector<std::int64_t> values = product();
    while (!wrong_ && take('+')) {
      const std::vector<std::int64_t> more = product();
      if (values.size() + more.size() > longest) wrong_ = true;
      if (!wrong_) values.insert(values.end(), more.begin(), more.end());
    }
    return values;
  }
};

}  // namespace

std::string moe_layer_pattern(const ModelSpec& model) {
  const MoeSpec& moe = model.moe;
  const std::int64_t dense = std::min(moe.first_dense_layers, model.layers), rest = model.layers - dense;
  if (dense == 0) return std::to_string(moe.every);
  if (rest == 0) return fmt::format("[0]*{}", dense);
  if (moe.every == 1) return fmt::format("[0]*{}+[1]*{}", dense, rest);
  std::string pattern = fmt::format("[0]*{}+([1]+[0]*{})*{}", dense, moe.every - 1, rest / moe.every);
  if (const std::int64_t tail = rest % moe.every; tail > 0) pattern += fmt::format("+[1]+[0]*{}", tail - 1);
  return pattern;
}

std::optional<std::vector<std::int64_t>> evaluate_layer_pattern(std::string_view expression) {
  return PatternParser(expression).all();
}

}  // namespace tandem::scenarios
