#include "runtime/analysis/memory_changes.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/analysis/captured_tasks.h"
#include "runtime/analysis/framework_memory.h"
#include "runtime/analysis/graph_memory.h"
#include "runtime/base/radix_sort.h"

namespace tandem {
namespace {

/// A buffer of its own that does not live for the whole step.
bool comes_and_goes(const Dag& dag, BufferId id) { return dag.buffers[id].base == id && !is_persistent(dag.buffers[id].kind); }

/// The buffer with the most elements among those that the task touches.
BufferId largest_operand(const Dag& dag, TaskId id) {
  BufferId largest = no_id;
  std::int64_t most = -1;
  for (const Operand& operand : dag.operands_of(id)) {
    const std::int64_t elements = dag.buffers[operand.buffer].shape.elements();
    if (elements > most) std::tie(largest, most) = std::pair{operand.buffer, elements};
  }
  return largest;
}

/// By kernel, the bytes per element of its largest operand that a framework holds beside it; none where another kernel does its
/// work.
std::vector<std::optional<double>> held_beside(const Dag& dag) {
  std::vector<std::optional<double>> held;
  for (const TaskId first : dag.kernels.first) {
    const Task& task = dag.tasks[first];
    held.push_back(is_fused(dag.attributes[task.attributes])
                       ? std::nullopt
                       : std::optional(dag.software.beside(task.op, pass_of(task.phase)).holds));
  }
  return held;
}

/// Equal ones stay in the order of their buffers, however many there are.
std::vector<MemoryChange> in_order(const std::vector<MemoryChange>& changes) {
  struct Key {
    std::uint64_t instant = 0;
    std::uint32_t place = 0;
  };
  std::vector<Key> keys;
  keys.reserve(changes.size());
  for (const MemoryChange& change : changes)
    keys.push_back({static_cast<std::uint64_t>(instant_of(change.at)), static_cast<std::uint32_t>(keys.size())});
  radix_sort(keys, [](const Key& key) { return key.instant; });
  for (auto begin = keys.begin(); begin != keys.end();) {
    const auto end = std::find_if(begin, keys.end(), [&](const Key& key) { return key.instant != begin->instant; });
    std::sort(begin, end, [&](const Key& a, const Key& b) {
      const Bytes of_a = changes[a.place].bytes, of_b = changes[b.place].bytes;
      return of_a != of_b ? of_a < of_b : a.place < b.place;
    });
    begin = end;
  }
  std::vector<MemoryChange> ordered;
  ordered.reserve(changes.size());
  for (const Key& key : keys) ordered.push_back(changes[key.place]);
  return ordered;
}

template <typename Items, typename RankOf>
void sort_by_rank(Items& items, const RankOf& rank_of) {
  if (!std::ranges::is_sorted(items, {}, rank_of)) std::ranges::stable_sort(items, {}, rank_of);
}

}  // namespace

/// What changes come from, each sorted by rank.
class MemoryChanges::Origins {
  auto of_buffer() const {
    return [this](BufferId id) { return dag_.buffers[id].rank; };
  }
  auto of_copy() const {
    return [this](const GraphBuffers::Copy& copy) { return dag_.buffers[copy.of].rank; };
  }
  auto of_task() const {
    return [this](TaskId id) { return dag_.tasks[id].rank; };
  }

 public:
  Origins(const Dag& dag, const Timeline& timeline)
      : dag_(dag),
        timeline_(timeline),
        captured_(captured_tasks(dag)),
        graphs_(graph_buffers(dag, timeline, captured_)),
        held_by_kernel_(held_beside(dag)) {
    for (BufferId id = 0; id < dag.buffers.size(); ++id)
      if (comes_and_goes(dag, id) && graphs_.lives[id].end >= 0) buffers_.push_back(id);
    find_holders();
    sort_by_rank(buffers_, of_buffer());
    sort_by_rank(graphs_.copies, of_copy());
    sort_by_rank(holders_, of_task());
  }

  std::vector<MemoryChange> of(RankIndex rank) const {
    const auto buffers = std::ranges::equal_range(buffers_, rank, {}, of_buffer());
    std::vector<MemoryChange> changes;
    changes.reserve(2 * buffers.size());
    for (const BufferId id : buffers) add(id, graphs_.lives[id], graphs_.home_of(id), changes);
    for (const GraphBuffers::Copy& copy : std::ranges::equal_range(graphs_.copies, rank, {}, of_copy()))
      if (copy.life.end >= 0) add(copy.of, copy.life, copy.home, changes);
    for (const TaskId id : std::ranges::equal_range(holders_, rank, {}, of_task())) add_what_frameworks_hold(id, changes);
    return changes;
  }

 private:
  const Dag& dag_;
  const Timeline& timeline_;
  CapturedTasks captured_;
  GraphBuffers graphs_;
  std::vector<std::optional<double>> held_by_kernel_;
  std::vector<BufferId> buffers_;
  std::vector<TaskId> holders_;  ///< tasks beside which a framework holds something

  void find_holders() {
    const bool holds = std::ranges::any_of(held_by_kernel_, [](const auto& held) { return held.value_or(0) > 0; });
    if (!holds && !dag_.software.placeholder_gradients) return;
    for (TaskId id = 0; id < dag_.tasks.size(); ++id) {
      const KernelId kernel = dag_.kernels.of_task[id];
      if (kernel == no_id || !held_by_kernel_[kernel]) continue;
      if (*held_by_kernel_[kernel] > 0 || passing_placeholder(dag_, id) > 0) holders_.push_back(id);
    }
  }

  void add(BufferId id, const Lifetime& life, MemoryHome home, std::vector<MemoryChange>& changes) const {
    const Buffer& buffer = dag_.buffers[id];
    const bool is_activation = buffer.kind == BufferKind::activation;
    changes.push_back({life.begin, buffer.bytes(), id, is_activation, home});
    changes.push_back({life.end, -buffer.bytes(), id, is_activation, home});
  }

  void add_what_frameworks_hold(TaskId id, std::vector<MemoryChange>& changes) const {
    const BufferId largest = largest_operand(dag_, id);
    const auto elements = static_cast<double>(dag_.buffers[largest].shape.elements());
    const MemoryHome home = captured_.of(id) == no_id ? MemoryHome::allocator : MemoryHome::graph_pool;
    const auto add_bytes = [&](Bytes bytes) {
      changes.push_back({timeline_.start[id], bytes, dag_.buffers[largest].base, true, home});
      changes.push_back({timeline_.end[id], -bytes, dag_.buffers[largest].base, true, home});
    };
    if (const Bytes placeholder = passing_placeholder(dag_, id); placeholder > 0) add_bytes(placeholder);
    // Tensors of fp32 at most, each for itself.
    constexpr double widest = 4;
    for (double held = *held_by_kernel_[dag_.kernels.of_task[id]]; held > 0; held -= widest)
      add_bytes(static_cast<Bytes>(std::min(held, widest) * elements));
  }
};

MemoryChanges::MemoryChanges(const Dag& dag, const Timeline& timeline)
    : origins_(std::make_unique<const Origins>(dag, timeline)) {}
MemoryChanges::~MemoryChanges() = default;
MemoryChanges::MemoryChanges(MemoryChanges&&) noexcept = default;

std::vector<MemoryChange> MemoryChanges::operator[](RankIndex rank) const { return in_order(origins_->of(rank)); }

std::size_t MemoryChanges::count(RankIndex rank) const { return origins_->of(rank).size(); }

}  // namespace tandem
