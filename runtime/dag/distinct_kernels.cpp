#include "runtime/dag/distinct_kernels.h"

#include <algorithm>

#include "runtime/base/hash.h"

namespace tandem {
namespace {

/// All but the types of operands.
std::uint64_t labels_of(std::uint64_t device, const Task& task) {
  const auto op = static_cast<std::uint64_t>(task.op), pass = static_cast<std::uint64_t>(pass_of(task.phase));
  return (device << 32 | op << 16 | pass << 8 | (task.stream == Stream::host ? 1U : 0U)) ^ hash(task.attributes);
}

std::uint64_t hash_of(const Dag& dag, const Task& task, std::span<const Operand> operands, std::uint32_t device) {
  std::uint64_t hashed = labels_of(device, task);
  for (const Operand& operand : operands) {
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

bool same_type(const Buffer& a, const Buffer& b) {
  const auto &x = a.shape.dims, &y = b.shape.dims;
  return a.dtype == b.dtype && a.scaling == b.scaling && a.shape.rank == b.shape.rank && x[0] == y[0] && x[1] == y[1] &&
         x[2] == y[2] && x[3] == y[3];
}

/// On whatever device.
bool same_kernel(const Dag& dag, TaskId id, const Task& other, std::span<const Operand> operands) {
  if (id >= dag.tasks.size()) return false;
  const Task one = dag.tasks[id];
  if (one.op != other.op || one.attributes != other.attributes || pass_of(one.phase) != pass_of(other.phase) ||
      (one.stream == Stream::host) != (other.stream == Stream::host))
    return false;
  return std::ranges::equal(dag.operands_of(id), operands, [&](const Operand& x, const Operand& y) {
    return x.buffer == y.buffer || same_type(dag.buffers[x.buffer], dag.buffers[y.buffer]);
  });
}

}  // namespace

KernelId KernelNumbers::number_of(const Dag& dag, const Task& task, TaskId id, std::span<const Operand> operands,
                                  std::uint32_t device) {
  if (is_communication(task.op)) return no_id;
  const KernelId likely = last_ == no_id ? no_id : after_[last_];
  if (likely != no_id && known_[likely].device == device && same_kernel(dag, first_[likely], task, operands))
    return last_ = likely;
  const KernelId number = find_or_add(dag, task, id, operands, device);
  if (last_ != no_id) after_[last_] = number;
  return last_ = number;
}

KernelId KernelNumbers::find_or_add(const Dag& dag, const Task& task, TaskId id, std::span<const Operand> operands,
                                    std::uint32_t device) {
  if (2 * first_.size() >= table_.size()) grow();
  const Known kernel{.hash = hash_of(dag, task, operands, device), .device = device};
  KernelId& number = place_of(dag, kernel, task, operands);
  if (number == no_id) {
    number = static_cast<KernelId>(first_.size());
    first_.push_back(id);
    known_.push_back(kernel);
    after_.push_back(no_id);
  }
  return number;
}

KernelId& KernelNumbers::place_of(const Dag& dag, const Known& kernel, const Task& task, std::span<const Operand> operands) {
  const auto is_it = [&](KernelId other) {
    return known_[other].hash == kernel.hash && known_[other].device == kernel.device &&
           same_kernel(dag, first_[other], task, operands);
  };
  const std::size_t mask = table_.size() - 1;
  std::size_t place = kernel.hash & mask;
  while (table_[place] != no_id && !is_it(table_[place])) place = (place + 1) & mask;
  return table_[place];
}

void KernelNumbers::grow() {
  table_.assign(std::max<std::size_t>(64, 2 * table_.size()), no_id);
  const std::size_t mask = table_.size() - 1;
  for (KernelId kernel = 0; kernel < known_.size(); ++kernel) {
    std::size_t place = known_[kernel].hash & mask;
    while (table_[place] != no_id) place = (place + 1) & mask;
    table_[place] = kernel;
  }
}

void KernelNumbers::clear() {
  first_.clear();
  known_.clear();
  after_.clear();
  last_ = no_id;
  std::ranges::fill(table_, no_id);
}

void number_kernels(Dag& dag) {
  KernelNumbers numbers;
  Tasks tasks;
  tasks.reserve(dag.tasks.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    Task task = dag.tasks[id];
    task.kernel = numbers.number_of(dag, task, id, dag.operands_of(id), dag.ranks[task.rank].device);
    tasks.push_back(task);
  }
  dag.tasks = std::move(tasks);
  dag.first_of_kernel = numbers.take_first();
}

}  // namespace tandem
