#include "runtime/analysis/memory_changes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "runtime/analysis/graph_memory.h"
#include "runtime/analysis/memory_origins.h"
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

/// Makes the allocations of one rank.
class Allocations {
 public:
  Allocations(const Dag& dag, const Timeline& timeline, const MemoryOrigins& origins)
      : dag_(dag), timeline_(timeline), origins_(origins) {}

  std::vector<Allocation> of(RankIndex rank) {
    const ByRank &tasks = origins_.tasks, &buffers = origins_.buffers;
    const GraphBuffers graphs = graph_buffers(dag_, timeline_, origins_.captured, tasks, buffers, rank);
    all_.reserve(graphs.lives.size());
    for (std::size_t place = 0; place < graphs.lives.size(); ++place) {
      const BufferId id = buffers.id(rank, place);
      const Lifetime& life = graphs.lives[place];
      if (comes_and_goes(dag_, id) && life.end >= 0) add(id, life, graphs.home_of(place));
    }
    for (const GraphBuffers::Copy& copy : graphs.copies)
      if (copy.life.end >= 0) add(copy.of, copy.life, copy.home);
    if (origins_.anything_is_held || dag_.software.placeholder_gradients)
      tasks.for_each(rank, [&](TaskId id) { add_what_frameworks_hold(id); });
    return std::move(all_);
  }

 private:
  const Dag& dag_;
  const Timeline& timeline_;
  const MemoryOrigins& origins_;
  std::vector<Allocation> all_;

  void add(BufferId id, const Lifetime& life, MemoryHome home) {
    const Buffer& buffer = dag_.buffers[id];
    all_.push_back({life, buffer.bytes(), id, buffer.kind == BufferKind::activation, home});
  }

  void add_what_frameworks_hold(TaskId id) {
    const KernelId kernel = dag_.tasks[id].kernel;
    if (kernel == no_id || !origins_.held_by_kernel[kernel]) return;
    const Bytes placeholder = passing_placeholder(dag_, id);
    if (*origins_.held_by_kernel[kernel] == 0 && placeholder == 0) return;
    const BufferId largest = largest_operand(dag_, id);
    const auto elements = static_cast<double>(dag_.buffers[largest].shape.elements());
    const MemoryHome home = origins_.captured.of(id) == no_id ? MemoryHome::allocator : MemoryHome::graph_pool;
    const auto add_bytes = [&](Bytes bytes) {
      all_.push_back({{timeline_.start[id], timeline_.end[id]}, bytes, dag_.buffers[largest].base, true, home});
    };
    if (placeholder > 0) add_bytes(placeholder);
    // Tensors of fp32 at most, each for itself.
    constexpr double widest = 4;
    for (double held = *origins_.held_by_kernel[kernel]; held > 0; held -= widest)
      add_bytes(static_cast<Bytes>(std::min(held, widest) * elements));
  }
};

std::vector<std::int64_t> inputs_that_stand_for(const Dag& dag, const Timeline& timeline) {
  if (timeline.repeat.times == 0) return {};
  std::vector<std::int64_t> inputs(dag.buffers.size(), 0);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    for (const Operand& operand : dag.operands_of(id)) {
      const BufferId base = dag.buffers[operand.buffer].base;
      if (inputs[base] == 0) inputs[base] = dag.buffers[base].kind == BufferKind::input ? std::llround(timeline.times(id)) : 1;
    }
  }
  return inputs;
}

}  // namespace

MemoryChanges::MemoryChanges(const Dag& dag, const Timeline& timeline, std::unique_ptr<const MemoryOrigins> own,
                             const MemoryOrigins* origins)
    : dag_(dag),
      timeline_(timeline),
      own_(std::move(own)),
      origins_(own_ ? *own_ : *origins),
      last_end_(timeline.last_end()),
      inputs_(inputs_that_stand_for(dag, timeline)) {}

MemoryChanges::MemoryChanges(const Dag& dag, const Timeline& timeline, const MemoryOrigins& origins)
    : MemoryChanges(dag, timeline, nullptr, &origins) {}
MemoryChanges::MemoryChanges(const Dag& dag, const Timeline& timeline)
    : MemoryChanges(dag, timeline, std::make_unique<const MemoryOrigins>(dag), nullptr) {}
MemoryChanges::~MemoryChanges() = default;

std::vector<MemoryChange> MemoryChanges::operator[](RankIndex rank) const {
  return in_order(Allocations(dag_, timeline_, origins_).of(rank), last_end_);
}

}  // namespace tandem
