#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// Numbers the kernels of a DAG while it grows, when what it looks at is in the cache anyway. Tasks run one and the same kernel
/// that have the same operation and attributes, operands of the same types and the same pass, and run on the same device, or on
/// its host. What is to be known of a kernel, such as its time, need be worked out once.
class KernelNumbers {
 public:
  /// Returns the kernel of a task that `dag` gets as number `id`, with operands on buffers that it has, on this device; `no_id`
  /// for communication. Of tasks that were numbered before and that it does not have yet, none runs the same.
  KernelId number_of(const Dag& dag, const Task& task, TaskId id, std::span<const Operand> operands, std::uint32_t device);
  /// To be told when a task runs the kernel of an earlier one.
  void ran(KernelId kernel) { last_ = kernel; }
  const std::vector<TaskId>& first() const { return first_; }
  std::vector<TaskId> take_first() { return std::move(first_); }
  /// Forgets all tasks.
  void clear();

 private:
  struct Known {
    std::uint64_t hash = 0;
    std::uint32_t device = 0;
  };
  std::vector<TaskId> first_;    ///< by kernel, the first task that runs it
  std::vector<Known> known_;     ///< by kernel
  std::vector<KernelId> table_;  ///< by hash, the next free place; a power of two, at most half full
  std::vector<KernelId> after_;  ///< by kernel, what ran after it last time: steps repeat themselves
  KernelId last_ = no_id;

  KernelId find_or_add(const Dag& dag, const Task& task, TaskId id, std::span<const Operand> operands, std::uint32_t device);
  KernelId& place_of(const Dag& dag, const Known& kernel, const Task& task, std::span<const Operand> operands);
  void grow();
};

/// Numbers the kernels of a DAG that is complete but for them, such as one that comes from a file.
void number_kernels(Dag& dag);

}  // namespace tandem
