#pragma once

#include <cstdint>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// Numbers the kernels of a DAG while it grows, when what it looks at is in the cache anyway.
class KernelNumbers {
 public:
  /// Numbers the next task of `dag`, which comes after all that were numbered before and has its operands.
  void add(const Dag& dag);
  DistinctKernels take() { return std::move(found_); }

 private:
  DistinctKernels found_;
  std::vector<std::uint64_t> hashes_;  ///< by kernel
  std::vector<KernelId> table_;        ///< by hash, the next free place; a power of two, at most half full

  KernelId& place_of(const Dag& dag, TaskId id, std::uint64_t hash);
  void grow();
};

/// Returns the kernels of a complete DAG, such as one that comes from a file.
DistinctKernels distinct_kernels(const Dag& dag);

}  // namespace tandem
