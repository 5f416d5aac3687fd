#include "runtime/ops/sign.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

constexpr std::int64_t signs_of_byte = 8;

struct SignParts {
  std::int64_t parts, bytes;

  SignParts(const Shape& signs, const Shape& scales) : parts(signs[0]), bytes(signs[1]) {
    expect_shapes(signs.rank == 2 && scales.elements() == parts, "each part of the signs has a scale");
  }
  std::int64_t part() const { return bytes * signs_of_byte; }
  std::int64_t elements() const { return parts * part(); }
};

void expect_room(const Shape& x, const Shape& residual, const SignParts& n, const OpAttributes& any) {
  const std::int64_t valid = std::get<SignAttributes>(any).valid;
  expect_shapes(x.elements() == residual.elements(), "sign_compress's residual is as large as what it compresses");
  expect_shapes(x.elements() <= n.elements() && valid >= 0 && valid <= x.elements(), "sign_compress has a bit for each element");
}

bool bit(const float* bytes, std::int64_t i) {
  return (static_cast<unsigned>(bytes[i / signs_of_byte]) >> (i % signs_of_byte) & 1U) != 0;
}

}  // namespace

OpCost sign_compress_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, signs, scales, residual] = unpack<4>(operands, "sign_compress");
  expect_room(x.shape, residual.shape, SignParts(signs.shape, scales.shape), any);
  return memory_cost(bytes_of(signs, scales) + 2 * x.bytes() + 3 * residual.bytes());
}

void sign_compress_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, signs, scales, residual] = unpack<4>(operands, "sign_compress");
  const SignParts n(signs.shape, scales.shape);
  expect_room(x.shape, residual.shape, n, any);
  const std::int64_t valid = std::get<SignAttributes>(any).valid;
  float* rest = residual.f32();
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) rest[i] = i < valid ? rest[i] + x.f32()[i] : 0.0F;
  for (std::int64_t part = 0; part < n.parts; ++part) {
    const std::int64_t first = std::min(part * n.part(), valid), count = std::min(n.part(), valid - first);
    const double sum = sum_of(count, [&](auto i) { return std::abs(double{rest[first + i]}); });
    const auto scale = count > 0 ? static_cast<float>(sum / static_cast<double>(count)) : 0.0F;
    scales.f32()[part] = scale;
    float* bytes = signs.f32() + part * n.bytes;
    for (std::int64_t byte = 0; byte < n.bytes; ++byte) {
      unsigned bits = 0;
      for (std::int64_t j = 0; j < signs_of_byte; ++j) {
        const std::int64_t i = byte * signs_of_byte + j;
        const bool positive = i >= count || rest[first + i] >= 0;
        bits |= (positive ? 1U : 0U) << j;
        if (i < count) rest[first + i] -= positive ? scale : -scale;
      }
      bytes[byte] = static_cast<float>(bits);
    }
  }
}

OpCost sign_sum_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [signs, scales, y] = unpack<3>(operands, "sign_sum");
  expect_shapes(y.shape.elements() == SignParts(signs.shape, scales.shape).part(), "sign_sum adds up parts");
  return memory_cost(bytes_of(signs, scales, y));
}

void sign_sum_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [signs, scales, y] = unpack<3>(operands, "sign_sum");
  const SignParts n(signs.shape, scales.shape);
  expect_shapes(y.shape.elements() == n.part(), "sign_sum adds up parts");
  for (std::int64_t i = 0; i < n.part(); ++i) {
    float sum = 0;
    for (std::int64_t part = 0; part < n.parts; ++part) {
      const float scale = scales.f32()[part];
      sum += bit(signs.f32() + part * n.bytes, i) ? scale : -scale;
    }
    y.f32()[i] = sum;
  }
}

OpCost sign_expand_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [signs, scales, y] = unpack<3>(operands, "sign_expand");
  expect_shapes(y.shape.elements() <= SignParts(signs.shape, scales.shape).elements(), "sign_expand has a bit for each element");
  return memory_cost(bytes_of(signs, scales, y));
}

void sign_expand_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [signs, scales, y] = unpack<3>(operands, "sign_expand");
  const SignParts n(signs.shape, scales.shape);
  expect_shapes(y.shape.elements() <= n.elements(), "sign_expand has a bit for each element");
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const float scale = scales.f32()[i / n.part()];
    y.f32()[i] = bit(signs.f32(), i) ? scale : -scale;
  }
}

}  // namespace tandem
