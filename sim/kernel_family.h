#pragma once

#include <compare>
#include <vector>

#include "runtime/dag/profile.h"

namespace tandem::sim {

/// Holds what tells kernels apart that take different times. It leaves out what only changes numbers: positions in the sequence
/// as far as they do not change what a query sees, places in the vocabulary, coefficients, how leading dimensions of a matrix are
/// split.
struct KernelKey {
  OpKind op = OpKind::gemm;
  std::vector<std::int64_t> dims;  ///< of the operands, one after the other
  std::vector<DType> dtypes;
  OpAttributes attributes;
  Flops flops = 0;  ///< the rest of the positions

  bool operator==(const KernelKey&) const = default;
  bool operator<(const KernelKey& other) const;
};

KernelKey key_of(const TimedKernel& kernel);

/// Kernels that differ in size alone: operation, types of the operands, and what of the attributes chooses another kernel.
struct KernelFamily {
  OpKind op = OpKind::gemm;
  std::vector<DType> dtypes;
  int mode = 0;

  auto operator<=>(const KernelFamily&) const = default;
};

KernelFamily family_of(const TimedKernel& kernel);

/// A kernel's size within its family: numbers in each of which its time grows, and never faster than the number.
///   gemm           m, n, k
///   grouped_gemm   rows of all experts, n, k, experts
///   batched_gemm   m, n, k, products
///   head_gemm      m, n, k, heads
///   attention      pairs of a query and a key it sees, heads of all sequences, width of a head's key and value; so sparse
///                  attention, of the pairs that were chosen
///   others         bytes moved
std::vector<double> size_of(const TimedKernel& kernel);

}  // namespace tandem::sim
