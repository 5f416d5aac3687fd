#include "studies/calibrate/shapes_file.h"

#include <array>
#include <sstream>
#include <stdexcept>

#include "runtime/base/input_error.h"
#include "runtime/base/text_file.h"
#include "scenarios/spec/names.h"
#include "traces/kernel_text.h"

namespace tandem::studies {
namespace {

constexpr const char* expected =
    "expected `gemm TYPE M N K`, `attention TYPE SEQUENCE HEADS KV_HEADS HEAD_DIM [causal]` or a kernel as in a profile";

DType type_named(const std::string& name) {
  for (const DType type : arithmetic_types)
    if (name_of(type) == name) return type;
  throw std::invalid_argument("`" + name + "` is no type, expected fp32, bf16, fp16 or fp8");
}

template <std::size_t count>
std::array<std::int64_t, count> sizes(std::istringstream& words) {
  constexpr std::int64_t most = 1 << 20;
  std::array<std::int64_t, count> found{};
  for (std::int64_t& size : found)
    if (!(words >> size) || size < 1 || size > most) throw std::invalid_argument("sizes are whole numbers from 1 to 1,048,576");
  return found;
}

void expect_end(std::istringstream& words) {
  std::string word;
  if (words >> word) throw std::invalid_argument("`" + word + "` is too much");
}

void add_gemms(std::istringstream& words, DType type, std::vector<TimedKernel>& kernels) {
  const auto [m, n, k] = sizes<3>(words);
  expect_end(words);
  const DType out = type == DType::f8 ? DType::bf16 : type;
  const OperandType x{Shape(m, k), type}, weight{Shape(n, k), type}, y{Shape(m, n), out};
  const OperandType dy{Shape(m, n), type}, dx{Shape(m, k), out}, gradient{Shape(n, k), DType::f32};
  kernels.push_back(TimedKernel{OpKind::gemm, {x, weight, y}, GemmAttributes{.transpose_b = true}});
  kernels.push_back(TimedKernel{OpKind::gemm, {dy, weight, dx}, GemmAttributes{}});
  kernels.push_back(TimedKernel{OpKind::gemm, {dy, x, gradient}, GemmAttributes{.transpose_a = true, .accumulate = true}});
}

void add_attentions(std::istringstream& words, DType type, std::vector<TimedKernel>& kernels) {
  const auto [sequence, heads, kv_heads, head_dim] = sizes<4>(words);
  if (heads % kv_heads != 0) throw std::invalid_argument("the key heads do not divide the heads");
  std::string causal;
  const bool is_causal = static_cast<bool>(words >> causal);
  if (is_causal && causal != "causal") throw std::invalid_argument("`" + causal + "` is not `causal`");
  expect_end(words);
  const OperandType q{Shape(sequence, 1, heads, head_dim), type}, kv{Shape(sequence, 1, kv_heads, head_dim), type};
  const OperandType lse{Shape(1, heads, sequence, 1), DType::f32};
  Positions all;
  all.length[0] = static_cast<std::int32_t>(sequence);
  const AttentionAttributes attributes{.causal = is_causal, .scale = 0.1F, .queries = all, .keys = all};
  kernels.push_back(TimedKernel{OpKind::attention, {q, kv, kv, q, lse}, attributes});
  kernels.push_back(TimedKernel{OpKind::attention_backward, {q, kv, kv, q, lse, q, q, kv, kv}, attributes});
}

void add_line(const std::string& line, std::vector<TimedKernel>& kernels) {
  std::istringstream words(line);
  std::string what, type;
  words >> what >> type;
  if (line.find('|') != std::string::npos) {
    const TimedKernel kernel = kernel_of_text(line);
    if (!first_flaw({{}, {{kernel, {1, 1, 1, 1}}}, {}, {}}).empty())
      throw std::invalid_argument("the operation does not take these operands");
    kernels.push_back(kernel);
  } else if (what == "gemm") {
    add_gemms(words, type_named(type), kernels);
  } else if (what == "attention") {
    add_attentions(words, type_named(type), kernels);
  } else {
    throw std::invalid_argument("`" + what + "` is unknown");
  }
}

}  // namespace

std::vector<TimedKernel> read_shapes_file(const std::string& path) {
  std::vector<TimedKernel> kernels;
  std::istringstream lines(read_text_file(path, "a list of kernels"));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      add_line(line, kernels);
    } catch (const std::invalid_argument& flaw) {
      throw InputError({path, number, 1}, std::string(flaw.what()) + "; " + expected);
    }
  }
  return kernels;
}

}  // namespace tandem::studies
