#pragma once

#include <cstdint>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// Numbers the kernels of a DAG while it grows, when what it looks at is in the cache anyway.
class KernelNumbers {
 public:
  /// Numbers the next task of `dag`, which comes after all that were numbered before, has its operands, and runs on this device.
  void add(const Dag& dag, std::uint32_t device);
  /// Numbers the next task, which runs the kernel of an earlier one.
  void add_like(TaskId earlier);
  /// Numbers the next tasks of `dag`, on the devices of their ranks, which were numbered among themselves before.
  void append(const Dag& dag, const DistinctKernels& among_themselves);
  const DistinctKernels& found() const { return found_; }
  DistinctKernels take() { return std::move(found_); }
  void reserve(std::size_t tasks);
  /// Forgets all tasks.
  void clear();

 private:
  struct Known {
    std::uint64_t hash = 0;
    std::uint32_t device = 0;
  };
  DistinctKernels found_;
  std::vector<Known> known_;     ///< by kernel
  std::vector<KernelId> table_;  ///< by hash, the next free place; a power of two, at most half full
  std::vector<KernelId> after_;  ///< by kernel, what ran after it last time: steps repeat themselves
  KernelId last_ = no_id;

  KernelId number_of(const Dag& dag, std::uint32_t device, TaskId id);
  KernelId find_or_add(const Dag& dag, std::uint32_t device, TaskId id);
  KernelId& place_of(const Dag& dag, const Known& kernel, TaskId id);
  void grow();
};

/// Returns the kernels of a complete DAG, such as one that comes from a file.
DistinctKernels distinct_kernels(const Dag& dag);

}  // namespace tandem
