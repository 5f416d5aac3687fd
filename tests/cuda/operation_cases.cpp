#include "tests/cuda/operation_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "runtime/ops/operands.h"
#include "tests/cuda/cases.h"
#include "tests/cuda/encoding.h"

namespace tandem::studies {
namespace {

constexpr float largest_f8 = 448;

bool is_integer(const CaseOperand& operand) { return operand.type.dtype == DType::i32; }

/// Numbers [rows][columns] as [columns][rows].
std::vector<std::int32_t> integers_of(const std::vector<std::byte>& bytes) {
  std::vector<std::int32_t> integers(bytes.size() / sizeof(std::int32_t));
  std::memcpy(integers.data(), bytes.data(), bytes.size());
  return integers;
}

std::vector<float> transposed(const std::vector<float>& numbers, std::int64_t rows) {
  if (numbers.empty()) return {};
  const std::int64_t columns = static_cast<std::int64_t>(numbers.size()) / rows;
  std::vector<float> result;
  for (std::int64_t column = 0; column < columns; ++column)
    for (std::int64_t row = 0; row < rows; ++row) result.push_back(numbers[static_cast<std::size_t>(row * columns + column)]);
  return result;
}

/// By element, whatever the order in which the operand stores them; and back.
std::vector<float> by_element(const CaseOperand& operand, const std::vector<float>& stored) {
  return operand.by_columns ? transposed(stored, columns_of(operand.type.shape)) : stored;
}
std::vector<float> as_stored(const CaseOperand& operand, const std::vector<float>& numbers) {
  return operand.by_columns ? transposed(numbers, rows_of(operand.type.shape)) : numbers;
}

PlacedOperand placed(const CaseOperand& operand) {
  PlacedOperand result{.type = operand.type, .bytes = {}, .skew = operand.skew, .same_as = operand.same_as};
  const auto count = static_cast<std::size_t>(operand.type.shape.elements());
  if (is_integer(operand)) {
    const std::vector<std::int32_t> integers = operand.integers.empty() ? std::vector<std::int32_t>(count, -1) : operand.integers;
    result.bytes.resize(count * sizeof(std::int32_t));
    std::memcpy(result.bytes.data(), integers.data(), result.bytes.size());
  } else if (operand.numbers.empty()) {
    result.bytes = encode(std::vector<float>(count, std::numeric_limits<float>::quiet_NaN()), operand.type.dtype, 1);
  } else {
    float largest = 0;
    for (const float number : operand.numbers) largest = std::max(largest, std::abs(number));
    if (largest > 0 && operand.type.dtype == DType::f8) result.scale = largest / largest_f8;
    result.bytes = encode(as_stored(operand, operand.numbers), operand.type.dtype, result.scale);
  }
  return result;
}

std::vector<PlacedOperand> placed_operands(const OperationCase& c) {
  std::vector<PlacedOperand> operands;
  for (const CaseOperand& operand : c.operands) operands.push_back(placed(operand));
  return operands;
}

/// The host kernel's operands: fp32 with the numbers as they were rounded, or int32.
std::vector<std::vector<std::byte>> run_on_host(const OperationCase& c) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<HostTensor> tensors;
  for (const CaseOperand& operand : c.operands) {
    const PlacedOperand bytes = placed(operand);
    const auto numbers = [&] { return by_element(operand, decode(bytes.bytes, operand.type.dtype, bytes.scale)); };
    memory.push_back(is_integer(operand) ? bytes.bytes : encode(numbers(), DType::f32, 1));
    void* const data = operand.same_as < 0 ? memory.back().data() : tensors[static_cast<std::size_t>(operand.same_as)].data;
    tensors.push_back({data, operand.type.shape});
  }
  operation(c.kind).host(tensors, c.attributes);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (c.operands[i].same_as >= 0) memory[i] = memory[static_cast<std::size_t>(c.operands[i].same_as)];
  }
  return memory;
}

double largest_of(const std::vector<float>& numbers) {
  double largest = 0;
  for (const float number : numbers)
    if (std::isfinite(number)) largest = std::max(largest, std::abs(double{number}));
  return largest;
}

void expect_equal_numbers(const std::vector<float>& actual, const std::vector<float>& expected, const Rounding& rounding,
                          double beside) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(expected[i])) {
      ASSERT_EQ(actual[i], expected[i]) << "element " << i;
      continue;
    }
    const double allowed = beside + rounding.absolute + rounding.relative * std::abs(double{expected[i]});
    ASSERT_NEAR(actual[i], expected[i], allowed) << "element " << i;
  }
}

void expect_equal(const CaseOperand& operand, const PlacedOperand& actual, const std::vector<std::byte>& expected,
                  double tolerance) {
  if (is_integer(operand)) {
    EXPECT_EQ(integers_of(actual.bytes), integers_of(expected));
    return;
  }
  const std::vector<float> numbers = by_element(operand, decode(actual.bytes, operand.type.dtype, actual.scale));
  const Rounding rounding = rounding_of(operand.type.dtype, actual.scale);
  const std::vector<float> wanted = decode(expected, DType::f32, 1);
  expect_equal_numbers(numbers, wanted, rounding, tolerance * std::max(largest_of(wanted), largest_of(operand.numbers)));
}

}  // namespace

std::vector<PlacedOperand> run_case(const OperationCase& c, KernelRunner& runner) {
  std::vector<PlacedOperand> operands = placed_operands(c);
  runner.run(c.kind, c.attributes, operands);
  return operands;
}

void expect_equals_host(const OperationCase& c, KernelRunner& runner) {
  const std::vector<PlacedOperand> before = placed_operands(c), actual = run_case(c, runner);
  const std::vector<std::vector<std::byte>> expected = run_on_host(c);
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    SCOPED_TRACE("operand " + std::to_string(i));
    if (c.operands[i].access != Access::read) {
      expect_equal(c.operands[i], actual[i], expected[i], c.tolerance);
    } else if (std::ranges::none_of(c.operands, [&](const CaseOperand& other) { return other.same_as == static_cast<int>(i); })) {
      EXPECT_EQ(actual[i].bytes, before[i].bytes) << "a kernel changed what it reads";
    }
  }
}

std::vector<OperationCase> operation_cases() {
  std::vector<OperationCase> all;
  for (const auto& cases : {activation_cases,
                            copy_cases,
                            elementwise_cases,
                            cast_cases,
                            adam_cases,
                            norm_cases,
                            gemm_cases,
                            grouped_gemm_cases,
                            heads_cases,
                            expert_cases,
                            attention_merge_cases,
                            attention_sink_cases,
                            cross_entropy_cases,
                            embedding_cases,
                            unfused_attention_cases,
                            dropout_cases,
                            bias_cases,
                            sparse_attention_cases,
                            head_gemm_cases,
                            compressed_keys_cases,
                            hyper_connection_cases,
                            mamba_cases,
                            lightning_cases,
                            compression_cases,
                            muon_cases,
                            adafactor_cases,
                            attention_cases,
                            attention_backward_cases}) {
    for (OperationCase& c : cases()) all.push_back(std::move(c));
  }
  return all;
}

std::vector<OperationCase> operation_cases(OpKind kind) {
  std::vector<OperationCase> all = operation_cases();
  std::erase_if(all, [=](const OperationCase& c) { return c.kind != kind; });
  return all;
}

std::vector<OpKind> operations_with_cases() {
  std::set<OpKind> kinds;
  for (const OperationCase& c : operation_cases()) kinds.insert(c.kind);
  return {kinds.begin(), kinds.end()};
}

}  // namespace tandem::studies
