#include "traces/kernel_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "runtime/ops/operation_named.h"
#include "traces/tables.h"

namespace tandem::traces {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<OpAttributes>> attribute_kinds{
    "none",         "gemm",       "norm",       "split_heads",  "mla_heads",     "attention",
    "sequence",     "groups",     "activation", "embedding",    "cross_entropy", "adam",
    "scale",        "reduction",  "routing",    "grouped_gemm", "regroup",       "fused",
    "batched_gemm", "dropout",    "sign",       "causal_conv",  "ssd",           "group_norm",
    "column_parts", "delta_rule", "muon",       "cast",         "head_gemm",     "sparse_attention",
    "adafactor",    "lightning",  "split_norm", "weighted_sum", "compress_keys", "hyper_connection"};

class Words {
 public:
  explicit Words(const std::string& text) : in_(text) {}

  std::string next(const std::string& expected) {
    std::string word;
    if (!(in_ >> word)) throw std::invalid_argument("ends too early, expected " + expected);
    return word;
  }
  bool ended() { return (in_ >> std::ws).eof(); }
  void expect_end() {
    std::string word;
    if (in_ >> word) throw std::invalid_argument("`" + word + "` is too much");
  }

 private:
  std::istringstream in_;
};

template <typename T>
T number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument("`" + std::string(text) + "` is no such number");
  return value;
}

template <typename T>
void put(std::string& out, const T& value) {
  if constexpr (Record<T>) {
    std::apply([&](auto... field) { (put(out, value.*field), ...); }, fields_of<T>);
  } else if constexpr (Whole<T>) {
    out += fmt::format(" {}", static_cast<std::int64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    out += fmt::format(" {}", value);
  } else {
    if constexpr (IsVector<T>::value) out += fmt::format(" {}", value.size());
    for (const auto& item : value) put(out, item);
  }
}

template <typename T>
void get(Words& words, T& value) {
  if constexpr (Record<T>) {
    read_fields(
        value, [&](auto& field) { get(words, field); }, [&] { return words.ended(); });
  } else if constexpr (Whole<T>) {
    const auto whole = number<std::int64_t>(words.next("a whole number"));
    bool fits = true;
    if constexpr (std::is_enum_v<T>) {
      fits = whole >= 0 && whole <= static_cast<std::int64_t>(last_of<T>);
    } else if constexpr (std::is_same_v<T, bool>) {
      fits = whole == 0 || whole == 1;
    } else {
      fits = std::in_range<T>(whole);
    }
    if (!fits) throw std::invalid_argument("`" + std::to_string(whole) + "` is out of range");
    value = static_cast<T>(whole);
  } else if constexpr (std::is_floating_point_v<T>) {
    value = number<T>(words.next("a number"));
  } else if constexpr (IsVector<T>::value) {
    value.clear();
    for (auto left = number<std::uint32_t>(words.next("a length")); left > 0; --left) get(words, value.emplace_back());
  } else {
    for (auto& item : value) get(words, item);
  }
}

/// Behind the type where there are scales: fp8/blocks_32[64,128].
constexpr std::array<std::string_view, scaling_count> scalings{"none",      "tensor",      "blocks_128", "blocks_32",
                                                               "blocks_16", "squares_128", "squares_16"};
static_assert(!scalings.back().empty());

Scaling scaling_named(std::string_view name) {
  const auto found = std::ranges::find(scalings, name);
  if (found == scalings.end()) throw std::invalid_argument("there is no scaling `" + std::string(name) + "`");
  return static_cast<Scaling>(found - scalings.begin());
}

OperandType operand_of(const std::string& word) {
  const std::size_t open = word.find('[');
  if (open == std::string::npos || word.back() != ']')
    throw std::invalid_argument("`" + word + "` is no operand, expected such as bf16[4096,1,1024]");
  OperandType type;
  std::string_view name = std::string_view(word).substr(0, open);
  if (const std::size_t slash = name.find('/'); slash != std::string_view::npos) {
    type.scaling = scaling_named(name.substr(slash + 1));
    name = name.substr(0, slash);
  }
  while (name_of(type.dtype) != name) {
    if (type.dtype == last_of<DType>) throw std::invalid_argument("there is no type `" + std::string(name) + "`");
    type.dtype = static_cast<DType>(static_cast<int>(type.dtype) + 1);
  }
  std::string_view rest = std::string_view(word).substr(open + 1, word.size() - open - 2);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (type.shape.rank == type.shape.dims.size()) throw std::invalid_argument("`" + word + "` has too many dimensions");
    type.shape.dims[type.shape.rank++] = number<std::int64_t>(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return type;
}

template <std::size_t... I>
void get_attributes(Words& words, std::size_t kind, OpAttributes& attributes, std::index_sequence<I...>) {
  ((kind == I ? get(words, attributes.emplace<I>()) : void()), ...);
}

OpKind op_named(const std::string& name) {
  if (const auto kind = operation_named(name)) return *kind;
  throw std::invalid_argument("there is no operation `" + name + "`");
}

}  // namespace

std::string to_text(const TimedKernel& kernel) {
  std::string out(operation(kernel.op).name);
  for (const OperandType& operand : kernel.operands) {
    out += fmt::format(" {}", name_of(operand.dtype));
    if (operand.scaling != Scaling::none) out += fmt::format("/{}", scalings[static_cast<std::size_t>(operand.scaling)]);
    out += '[';
    for (std::size_t d = 0; d < operand.shape.rank; ++d) out += (d == 0 ? "" : ",") + std::to_string(operand.shape[d]);
    out += ']';
  }
  out += " | " + std::string(attribute_kinds[kernel.attributes.index()]);
  std::visit([&](const auto& attributes) { put(out, attributes); }, kernel.attributes);
  return out;
}

TimedKernel kernel_of_text(const std::string& text) {
  Words words(text);
  TimedKernel kernel{.op = op_named(words.next("an operation")), .operands = {}, .attributes = {}};
  const std::string expected = "operands, then | and attributes";
  for (std::string word = words.next(expected); word != "|"; word = words.next(expected))
    kernel.operands.push_back(operand_of(word));
  const std::string name = words.next("a kind of attributes");
  const auto kind = std::ranges::find(attribute_kinds, name);
  if (kind == attribute_kinds.end()) throw std::invalid_argument("there are no attributes `" + name + "`");
  get_attributes(words, static_cast<std::size_t>(kind - attribute_kinds.begin()), kernel.attributes,
                 std::make_index_sequence<std::variant_size_v<OpAttributes>>());
  words.expect_end();
  return kernel;
}

}  // namespace tandem::traces
