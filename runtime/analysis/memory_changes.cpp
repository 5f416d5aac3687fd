#include "runtime/analysis/memory_changes.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
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

/// Bytes that are allocated at one date and freed at another.
struct Allocation {
  Lifetime life;
  Bytes bytes = 0;
  BufferId buffer = 0;
  bool is_activation = false;
  MemoryHome home = MemoryHome::allocator;

  MemoryChange change(bool is_end) const {
    return {is_end ? life.end : life.begin, is_end ? -bytes : bytes, buffer, is_activation, home};
  }
};

/// Equal ones keep their order.
void sort_by_bytes(std::span<MemoryChange> changes) {
  constexpr std::size_t few = 32;  // are sorted in place sooner than room is made for others
  if (changes.size() > few) {
    std::ranges::stable_sort(changes, {}, &MemoryChange::bytes);
    return;
  }
  for (auto next = changes.begin(); next != changes.end(); ++next)
    std::rotate(std::upper_bound(changes.begin(), next, next->bytes,
                                 [](Bytes bytes, const MemoryChange& change) { return bytes < change.bytes; }),
                next, next + 1);
}

/// Returns the beginnings and ends of allocations in order. There is a key for each, which holds its instant and its place: twice
/// the allocation's, one more for its end.
template <typename Key>
std::vector<MemoryChange> in_order_of(std::vector<Key> keys, const std::vector<Allocation>& allocations,
                                      const auto& instant_of_key, const auto& place_of_key) {
  radix_sort(keys, instant_of_key);
  std::vector<MemoryChange> changes;
  changes.reserve(keys.size());
  for (auto key = keys.begin(); key != keys.end();) {
    const auto first = static_cast<std::ptrdiff_t>(changes.size());
    const std::uint64_t instant = instant_of_key(*key);
    for (; key != keys.end() && instant_of_key(*key) == instant; ++key) {
      const std::uint64_t place = place_of_key(*key);
      changes.push_back(allocations[place / 2].change(place % 2 == 1));
    }
    sort_by_bytes({changes.begin() + first, changes.end()});
  }
  return changes;
}

/// Equal ones stay in the order of their allocations, however many there are. None is later than `last`.
std::vector<MemoryChange> in_order(const std::vector<Allocation>& allocations, Seconds last) {
  using Wide = std::pair<std::uint64_t, std::uint64_t>;
  const auto fill = [&](auto& keys, const auto& key_of) {
    keys.reserve(2 * allocations.size());
    for (const Allocation& allocation : allocations)
      for (const Seconds date : {allocation.life.begin, allocation.life.end})
        keys.push_back(key_of(static_cast<std::uint64_t>(instant_of(date)), keys.size()));
  };
  const int of_place = std::bit_width(2 * allocations.size());
  if (std::bit_width(static_cast<std::uint64_t>(instant_of(last))) + of_place <= std::numeric_limits<std::uint64_t>::digits) {
    std::vector<std::uint64_t> keys;
    fill(keys, [&](std::uint64_t instant, std::uint64_t place) { return instant << of_place | place; });
    return in_order_of(
        std::move(keys), allocations, [&](std::uint64_t key) { return key >> of_place; },
        [&](std::uint64_t key) { return key & ((std::uint64_t{1} << of_place) - 1); });
  }
  std::vector<Wide> keys;
  fill(keys, [](std::uint64_t instant, std::uint64_t place) { return Wide{instant, place}; });
  return in_order_of(
      std::move(keys), allocations, [](const Wide& key) { return key.first; }, [](const Wide& key) { return key.second; });
}

}  // namespace

/// What changes come from.
class MemoryChanges::Origins {
 public:
  Origins(const Dag& dag, const Timeline& timeline)
      : dag_(dag),
        timeline_(timeline),
        last_end_(timeline.last_end()),
        tasks_(ByRank::tasks(dag)),
        buffers_(ByRank::buffers(dag)),
        captured_(captured_tasks(dag)),
        held_by_kernel_(held_beside(dag)),
        anything_is_held_(std::ranges::any_of(held_by_kernel_, [](const auto& held) { return held.value_or(0) > 0; })) {}

  std::vector<Allocation> of(RankIndex rank) const {
    const GraphBuffers graphs = graph_buffers(dag_, timeline_, captured_, tasks_, buffers_, rank);
    std::vector<Allocation> all;
    all.reserve(graphs.lives.size());
    for (std::size_t place = 0; place < graphs.lives.size(); ++place) {
      const BufferId id = buffers_.id(rank, place);
      const Lifetime& life = graphs.lives[place];
      if (comes_and_goes(dag_, id) && life.end >= 0) add(id, life, graphs.home_of(place), all);
    }
    for (const GraphBuffers::Copy& copy : graphs.copies)
      if (copy.life.end >= 0) add(copy.of, copy.life, copy.home, all);
    if (anything_is_held_ || dag_.software.placeholder_gradients)
      tasks_.for_each(rank, [&](TaskId id) { add_what_frameworks_hold(id, all); });
    return all;
  }

  const ByRank& tasks() const { return tasks_; }
  const ByRank& buffers() const { return buffers_; }
  Seconds last_end() const { return last_end_; }

 private:
  const Dag& dag_;
  const Timeline& timeline_;
  const Seconds last_end_;
  const ByRank tasks_, buffers_;
  const CapturedTasks captured_;
  const std::vector<std::optional<double>> held_by_kernel_;
  const bool anything_is_held_;

  void add(BufferId id, const Lifetime& life, MemoryHome home, std::vector<Allocation>& all) const {
    const Buffer& buffer = dag_.buffers[id];
    all.push_back({life, buffer.bytes(), id, buffer.kind == BufferKind::activation, home});
  }

  void add_what_frameworks_hold(TaskId id, std::vector<Allocation>& all) const {
    const KernelId kernel = dag_.kernels.of_task[id];
    if (kernel == no_id || !held_by_kernel_[kernel]) return;
    const Bytes placeholder = passing_placeholder(dag_, id);
    if (*held_by_kernel_[kernel] == 0 && placeholder == 0) return;
    const BufferId largest = largest_operand(dag_, id);
    const auto elements = static_cast<double>(dag_.buffers[largest].shape.elements());
    const MemoryHome home = captured_.of(id) == no_id ? MemoryHome::allocator : MemoryHome::graph_pool;
    const auto add_bytes = [&](Bytes bytes) {
      all.push_back({{timeline_.start[id], timeline_.end[id]}, bytes, dag_.buffers[largest].base, true, home});
    };
    if (placeholder > 0) add_bytes(placeholder);
    // Tensors of fp32 at most, each for itself.
    constexpr double widest = 4;
    for (double held = *held_by_kernel_[kernel]; held > 0; held -= widest)
      add_bytes(static_cast<Bytes>(std::min(held, widest) * elements));
  }
};

MemoryChanges::MemoryChanges(const Dag& dag, const Timeline& timeline)
    : origins_(std::make_unique<const Origins>(dag, timeline)) {}
MemoryChanges::~MemoryChanges() = default;
MemoryChanges::MemoryChanges(MemoryChanges&&) noexcept = default;

std::vector<MemoryChange> MemoryChanges::operator[](RankIndex rank) const {
  return in_order(origins_->of(rank), origins_->last_end());
}

const ByRank& MemoryChanges::tasks() const { return origins_->tasks(); }
const ByRank& MemoryChanges::buffers() const { return origins_->buffers(); }

}  // namespace tandem
