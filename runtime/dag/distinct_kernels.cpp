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

std::uint64_t hash_of(const Dag& dag, std::uint32_t device, TaskId id) {
  std::uint64_t hashed = labels_of(device, dag.tasks[id]);
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

bool same_type(const Buffer& a, const Buffer& b) {
  const auto &x = a.shape.dims, &y = b.shape.dims;
  return a.dtype == b.dtype && a.scaling == b.scaling && a.shape.rank == b.shape.rank && x[0] == y[0] && x[1] == y[1] &&
         x[2] == y[2] && x[3] == y[3];
}

/// On whatever device.
bool same_kernel(const Dag& dag, TaskId a, TaskId b) {
  const Task &one = dag.tasks[a], &other = dag.tasks[b];
  if (one.op != other.op || one.attributes != other.attributes || pass_of(one.phase) != pass_of(other.phase) ||
      (one.stream == Stream::host) != (other.stream == Stream::host))
    return false;
  return std::ranges::equal(dag.operands_of(a), dag.operands_of(b), [&](const Operand& x, const Operand& y) {
    return x.buffer == y.buffer || same_type(dag.buffers[x.buffer], dag.buffers[y.buffer]);
  });
}

}  // namespace

void KernelNumbers::add(const Dag& dag, std::uint32_t device) {
  const auto id = static_cast<TaskId>(found_.of_task.size());
  found_.of_task.push_back(is_communication(dag.tasks[id].op) ? no_id : number_of(dag, device, id));
}

void KernelNumbers::add_like(TaskId earlier) {
  const KernelId kernel = found_.of_task[earlier];
  found_.of_task.push_back(kernel);
  if (kernel != no_id) last_ = kernel;
}

void KernelNumbers::append(const Dag& dag, const DistinctKernels& among_themselves) {
  const auto first_task = static_cast<TaskId>(found_.of_task.size());
  std::vector<KernelId> numbers;
  numbers.reserve(among_themselves.first.size());
  for (const TaskId first : among_themselves.first)
    numbers.push_back(number_of(dag, dag.ranks[dag.tasks[first_task + first].rank].device, first_task + first));
  for (const KernelId kernel : among_themselves.of_task) found_.of_task.push_back(kernel == no_id ? no_id : numbers[kernel]);
}

KernelId KernelNumbers::number_of(const Dag& dag, std::uint32_t device, TaskId id) {
  const KernelId likely = last_ == no_id ? no_id : after_[last_];
  if (likely != no_id && known_[likely].device == device && same_kernel(dag, found_.first[likely], id)) return last_ = likely;
  const KernelId number = find_or_add(dag, device, id);
  if (last_ != no_id) after_[last_] = number;
  return last_ = number;
}

KernelId KernelNumbers::find_or_add(const Dag& dag, std::uint32_t device, TaskId id) {
  if (2 * found_.first.size() >= table_.size()) grow();
  const Known kernel{.hash = hash_of(dag, device, id), .device = device};
  KernelId& number = place_of(dag, kernel, id);
  if (number == no_id) {
    number = static_cast<KernelId>(found_.first.size());
    found_.first.push_back(id);
    known_.push_back(kernel);
    after_.push_back(no_id);
  }
  return number;
}

KernelId& KernelNumbers::place_of(const Dag& dag, const Known& kernel, TaskId id) {
  const auto is_it = [&](KernelId other) {
    return known_[other].hash == kernel.hash && known_[other].device == kernel.device &&
           same_kernel(dag, found_.first[other], id);
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

void KernelNumbers::reserve(std::size_t tasks) { found_.of_task.reserve(tasks); }

void KernelNumbers::clear() {
  found_.of_task.clear();
  found_.first.clear();
  known_.clear();
  after_.clear();
  last_ = no_id;
  std::ranges::fill(table_, no_id);
}

DistinctKernels distinct_kernels(const Dag& dag) {
  KernelNumbers numbers;
  for (const Task& task : dag.tasks) numbers.add(dag, dag.ranks[task.rank].device);
  return numbers.take();
}

}  // namespace tandem
