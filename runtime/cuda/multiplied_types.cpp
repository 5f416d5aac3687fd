#include "runtime/cuda/multiplied_types.h"

#include <stdexcept>

namespace tandem {
namespace {

DType common_type(DType a, DType b, bool fp8) {
  if (a == b) return a == DType::f8 && !fp8 ? DType::bf16 : a;
  if (a == DType::f8) return b;
  if (b == DType::f8) return a;
  return DType::f32;
}

}  // namespace

MultipliedTypes multiplied_types(DType a, DType b, DType c, bool fp8) {
  if (c == DType::f8) throw std::logic_error("no product is written in fp8");
  const DType operands = common_type(a, b, fp8);
  const bool direct = c == operands || operands == DType::f8;
  return {operands, direct ? c : DType::f32};
}

bool fits_fp8(const ProductBatch& batch) {
  constexpr std::int64_t alignment = 16;
  const auto aligned = [](auto... elements) { return ((elements % alignment == 0) && ...); };
  const auto& [size, a, b, c] = batch.first;
  return !a.transposed && b.transposed && aligned(size.n, size.k, a.stride, b.stride, c.stride) &&
         aligned(a.offset, b.offset, c.offset, batch.a_step, batch.b_step, batch.c_step);
}

}  // namespace tandem
