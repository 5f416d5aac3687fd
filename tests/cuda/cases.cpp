#include "tests/cuda/cases.h"

#include <random>

#include "tests/cuda/encoding.h"

namespace tandem::studies {

std::vector<float> random_numbers(const Shape& shape, unsigned seed, float width) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-width, width);
  std::vector<float> numbers(static_cast<std::size_t>(shape.elements()));
  for (float& number : numbers) number = uniform(generator);
  return numbers;
}

std::vector<std::int32_t> random_integers(const Shape& shape, std::int32_t below, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int32_t> uniform(0, below - 1);
  std::vector<std::int32_t> integers(static_cast<std::size_t>(shape.elements()));
  for (std::int32_t& integer : integers) integer = uniform(generator);
  return integers;
}

CaseOperand read(const Shape& shape, DType type, unsigned seed) { return read(shape, type, random_numbers(shape, seed)); }
CaseOperand read(const Shape& shape, DType type, std::vector<float> numbers) {
  return {.type = {shape, type}, .access = Access::read, .numbers = std::move(numbers)};
}
CaseOperand read_integers(const Shape& shape, std::vector<std::int32_t> integers) {
  return {.type = {shape, DType::i32}, .access = Access::read, .integers = std::move(integers)};
}
CaseOperand write(const Shape& shape, DType type) { return {.type = {shape, type}, .access = Access::write}; }
CaseOperand update(const Shape& shape, DType type, unsigned seed) { return update(shape, type, random_numbers(shape, seed)); }
CaseOperand update(const Shape& shape, DType type, std::vector<float> numbers) {
  return {.type = {shape, type}, .access = Access::update, .numbers = std::move(numbers)};
}

double rounding_before_adding(DType type) { return type == DType::f32 ? 0 : 2 * rounding_of(type, 1).relative; }

OperationCase skewed(OperationCase c) {
  c.name += "_skewed";
  for (CaseOperand& operand : c.operands) operand.skew = 1;
  return c;
}

}  // namespace tandem::studies
