#include "runtime/dag/distinct_kernels.h"

#include <algorithm>

#include "runtime/base/hash.h"

namespace tandem {
namespace {

/// All but the types of operands.
std::uint64_t labels_of(const Dag& dag, const Task& task) {
  const std::uint64_t device = dag.ranks[task.rank].device;
  const auto op = static_cast<std::uint64_t>(task.op), pass = static_cast<std::uint64_t>(pass_of(task.phase));
  return (device << 32 | op << 16 | pass << 8 | (task.stream == Stream::host ? 1U : 0U)) ^ hash(task.attributes);
}

std::uint64_t hash_of(const Dag& dag, TaskId id) {
  std::uint64_t hashed = labels_of(dag, dag.tasks[id]);
  for (const Operand& operand : dag.operands_of(id)) {
    const Buffer& buffer = dag.buffers[operand.buffer];
    const auto dim = [&](std::size_t i) { return static_cast<std::uint64_t>(buffer.shape.dims[i]); };
    // Odd factors without a pattern: digits of e.
    const std::uint64_t sizes = dim(0) * 0xB7E151628AED2A6BULL + dim(1) * 0xBF7158809CF4F3C7ULL + dim(2) * 0x62E7160F38B4DA57ULL +
                                dim(3) * 0xA784D9045190CFEFULL;
    hashed = hash(
        hashed ^ (sizes + static_cast<std::uint64_t>(buffer.dtype) * scaling_count + static_cast<std::uint64_t>(buffer.scaling)));
  }
  return hashed;
}

bool same_type(const Buffer& a, const Buffer& b) { return a.dtype == b.dtype && a.shape == b.shape && a.scaling == b.scaling; }

bool same_kernel(const Dag& dag, TaskId a, TaskId b) {
  const Task &one = dag.tasks[a], &other = dag.tasks[b];
  if (one.op != other.op || one.attributes != other.attributes || pass_of(one.phase) != pass_of(other.phase) ||
      dag.ranks[one.rank].device != dag.ranks[other.rank].device ||
      (one.stream == Stream::host) != (other.stream == Stream::host))
    return false;
  return std::ranges::equal(dag.operands_of(a), dag.operands_of(b), [&](const Operand& x, const Operand& y) {
    return x.buffer == y.buffer || same_type(dag.buffers[x.buffer], dag.buffers[y.buffer]);
  });
}

}  // namespace

void KernelNumbers::add(const Dag& dag) {
  const auto id = static_cast<TaskId>(found_.of_task.size());
  if (is_communication(dag.tasks[id].op)) {
    found_.of_task.push_back(no_id);
    return;
  }
  if (2 * found_.first.size() >= table_.size()) grow();
  const std::uint64_t hash = hash_of(dag, id);
  KernelId& kernel = place_of(dag, id, hash);
  if (kernel == no_id) {
    kernel = static_cast<KernelId>(found_.first.size());
    found_.first.push_back(id);
    hashes_.push_back(hash);
  }
  found_.of_task.push_back(kernel);
}

KernelId& KernelNumbers::place_of(const Dag& dag, TaskId id, std::uint64_t hash) {
  const std::size_t mask = table_.size() - 1;
  std::size_t place = hash & mask;
  while (table_[place] != no_id && (hashes_[table_[place]] != hash || !same_kernel(dag, found_.first[table_[place]], id)))
    place = (place + 1) & mask;
  return table_[place];
}

void KernelNumbers::grow() {
  table_.assign(std::max<std::size_t>(64, 2 * table_.size()), no_id);
  const std::size_t mask = table_.size() - 1;
  for (KernelId kernel = 0; kernel < hashes_.size(); ++kernel) {
    std::size_t place = hashes_[kernel] & mask;
    while (table_[place] != no_id) place = (place + 1) & mask;
    table_[place] = kernel;
  }
}

DistinctKernels distinct_kernels(const Dag& dag) {
  KernelNumbers numbers;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) numbers.add(dag);
  return numbers.take();
}

}  // namespace tandem
