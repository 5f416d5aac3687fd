#pragma once

#include "runtime/cuda/column_major_product.h"

namespace tandem {

/// The types in which a product is multiplied: both operands in one, the result in another. Where these are not the tensors' own,
/// operands are converted before and the result after.
struct MultipliedTypes {
  DType operands = DType::f32;
  DType result = DType::f32;
  bool operator==(const MultipliedTypes&) const = default;
};

/// The types of A, B, C, as far as cuBLASLt multiplies them. Operands of two types meet in the wider one; fp8 that the device
/// cannot multiply (`fp8`) becomes bf16, which has all its values. A result that is neither as wide as the operands nor fp32 is
/// made in fp32, so that it is rounded once. Throws std::logic_error for an fp8 result.
MultipliedTypes multiplied_types(DType a, DType b, DType c, bool fp8);

/// Returns whether cuBLASLt's fp8 kernels take the product: both operands by depth ("TN"), everything aligned to 16 bytes.
/// https://docs.nvidia.com/cuda/cublas/#cublasltmatmul, requirements of fp8 kernels; m may be any (PyTorch's scaled_mm).
bool fits_fp8(const ProductBatch& batch);

}  // namespace tandem
