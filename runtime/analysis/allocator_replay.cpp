#include "runtime/analysis/allocator_replay.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/analysis/framework_memory.h"
#include "runtime/analysis/graph_memory.h"
#include "runtime/analysis/memory_origins.h"
#include "runtime/analysis/optimizer_updates.h"
#include "runtime/analysis/repeated_changes.h"

namespace tandem {
namespace {

/// What stays allocated on a rank: sizes in the order in which they are allocated.
struct Kept {
  std::vector<Bytes> moved;  ///< weights one by one, until they have moved into their buffers
  std::vector<Bytes> from_the_start;
  std::size_t moved_at = 0;  ///< so many of these come before the weights have moved
  std::vector<Bytes> after_the_first_step;
};

/// What the optimizer keeps for one run of weights.
struct Update {
  BufferId weights = no_id;           ///< the slice that it writes
  std::vector<BufferId> states = {};  ///< the parameters' copy and the moments
  BufferId factors = no_id;           ///< of Adafactor's
};

std::vector<Update> updates_on(const std::vector<OptimizerUpdate>& all, RankIndex rank) {
  std::vector<Update> updates;
  for (const OptimizerUpdate& update : all) {
    if (update.rank != rank || update.follows_counts) continue;
    updates.push_back({.weights = update.weight, .states = {update.master}});
    updates.back().factors = update.factors;
    for (const BufferId state : {update.momentum, update.variance})
      if (state != no_id) updates.back().states.push_back(state);
  }
  return updates;
}

/// A run of elements of a buffer of weights.
struct Run {
  std::int64_t begin = 0, end = 0;
};

/// By buffer of weights, the tensors that the framework makes of them, in the order of the buffer.
using Weights = std::map<BufferId, std::vector<Run>>;

/// The matrices that products on the rank multiply by: of a product of groups, one for each group.
Weights matrices_on(const Dag& dag, const ByRank& tasks, RankIndex rank) {
  Weights matrices;
  tasks.for_each(rank, [&](TaskId id) {
    const Task& task = dag.tasks[id];
    if (task.op != OpKind::gemm && task.op != OpKind::grouped_gemm && task.op != OpKind::cast) return;
    const auto* grouped = std::get_if<GroupedGemmAttributes>(&dag.attributes[task.attributes]);
    const auto groups = grouped == nullptr ? 1 : std::max<std::int64_t>(1, static_cast<std::int64_t>(grouped->rows.size()));
    for (const Operand& operand : dag.operands_of(id)) {
      const Buffer& view = dag.buffers[operand.buffer];
      if (operand.access() != Access::read || dag.buffers[view.base].kind != BufferKind::parameter) continue;
      const std::int64_t elements = view.shape.elements() / groups;
      for (std::int64_t i = 0; i < groups; ++i)
        matrices[view.base].push_back({view.offset + i * elements, view.offset + (i + 1) * elements});
    }
  });
  for (auto& [base, runs] : matrices) {
    std::ranges::sort(runs, [](const Run& a, const Run& b) { return std::tie(a.begin, b.end) < std::tie(b.begin, a.end); });
    // Of those that begin alike, the largest.
    const auto doubled = std::ranges::unique(runs, [](const Run& a, const Run& b) { return a.begin == b.begin; });
    runs.erase(doubled.begin(), doubled.end());
  }
  return matrices;
}

/// Pieces of the unsharded model that one product multiplies by (queries, keys and values; gate and up) are one tensor.
Weights weights_on(const Dag& dag, const ByRank& tasks, RankIndex rank) {
  Weights weights;
  for (const ParameterShard& shard : dag.shards) {
    const Buffer& view = dag.buffers[shard.buffer];
    if (view.rank == rank && dag.buffers[view.base].kind == BufferKind::parameter)
      weights[view.base].push_back({view.offset, view.offset + view.shape.elements()});
  }
  const Weights matrices = matrices_on(dag, tasks, rank);
  for (auto& [base, runs] : weights) {
    std::ranges::sort(runs, {}, &Run::begin);
    const auto found = matrices.find(base);
    if (found == matrices.end()) continue;
    std::vector<Run> merged;
    auto matrix = found->second.begin();
    for (const Run& run : runs) {
      while (matrix != found->second.end() && matrix->end <= run.begin) ++matrix;
      const bool inside = matrix != found->second.end() && matrix->begin < run.begin && run.end <= matrix->end;
      if (inside && !merged.empty() && merged.back().begin >= matrix->begin && merged.back().end == run.begin)
        merged.back().end = run.end;
      else
        merged.push_back(run);
    }
    runs = std::move(merged);
  }
  return weights;
}

/// Calls `add` with the elements of each weight that lie in the slice that is updated, as many as its states have.
void for_each_weight(const Dag& dag, const Weights& weights, const Update& update, const auto& add) {
  const Buffer& slice = dag.buffers[update.weights];
  std::int64_t left = dag.buffers[update.states.front()].shape.elements();
  if (const auto found = weights.find(slice.base); found != weights.end()) {
    const std::vector<Run>& runs = found->second;
    auto run = std::ranges::upper_bound(runs, slice.offset, {}, &Run::end);
    for (; run != runs.end() && run->begin < slice.offset + slice.shape.elements(); ++run) {
      const std::int64_t elements =
          std::min(run->end, slice.offset + slice.shape.elements()) - std::max(run->begin, slice.offset);
      if (elements > left) break;
      add(elements);
      left -= elements;
    }
  }
  if (left > 0) add(left);  // padding, or a slice whose weights are not known
}

Kept kept_on(const MemoryChanges& changes, RankIndex rank) {
  const Dag& dag = changes.dag();
  const ByRank &tasks = changes.origins().tasks, &buffers = changes.origins().buffers;
  const std::vector<std::int64_t>& inputs = changes.inputs();
  const FrameworkMemory& held = changes.origins().framework[rank];
  Kept kept;
  const bool moves = dag.software.moves_weights;
  const std::vector<Update> updates = updates_on(changes.origins().updates, rank);
  std::vector<bool> is_state(buffers.count(rank));
  for (const Update& update : updates) {
    for (const BufferId state : update.states) is_state[buffers.place(rank, dag.buffers[state].base)] = true;
    if (update.factors != no_id) is_state[buffers.place(rank, update.factors)] = true;
  }
  std::vector<Bytes> of_period;  // inputs in their order, that come once more for each period
  const auto repeat_period = [&] {
    for (std::int64_t i = 0; i < changes.timeline().repeat.times; ++i)
      kept.from_the_start.insert(kept.from_the_start.end(), of_period.begin(), of_period.end());
    of_period.clear();
  };
  buffers.for_each(rank, [&](BufferId id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.base != id || !is_persistent(buffer.kind) || buffer.kind == BufferKind::host) return;
    if (buffer.bytes() == 0 || is_state[buffers.place(rank, id)]) return;
    const bool repeats = !inputs.empty() && inputs[id] > 1;
    if (!repeats) repeat_period();
    kept.from_the_start.push_back(buffer.bytes());
    if (repeats) of_period.push_back(buffer.bytes());
  });
  repeat_period();
  kept.moved_at = kept.from_the_start.size();
  const Weights weights = moves ? weights_on(dag, tasks, rank) : Weights{};
  for (const auto& [base, runs] : weights)
    for (const Run& run : runs) kept.moved.push_back(size_of(dag.buffers[base].dtype, run.end - run.begin));
  for (const Update& update : updates) {
    if (update.states.empty()) continue;
    for_each_weight(dag, weights, update, [&](std::int64_t elements) {
      for (std::size_t i = 0; i < update.states.size(); ++i) {
        std::vector<Bytes>& sizes = i == 0 ? kept.from_the_start : kept.after_the_first_step;
        sizes.push_back(size_of(dag.buffers[update.states[i]].dtype, elements));
      }
    });
  }
  for (const Update& update : updates)
    if (update.factors != no_id) kept.after_the_first_step.push_back(dag.buffers[update.factors].bytes());
  for (const Bytes bytes : {held.reserved, held.workspaces})
    if (bytes > 0) kept.from_the_start.push_back(bytes);
  return kept;
}

/// An allocation, or the end of one. Allocations are counted from 0.
class Event {
 public:
  static Event allocation(Bytes bytes) { return Event(bytes); }
  static Event end_of(std::uint32_t allocation) { return Event(-1 - std::int64_t{allocation}); }

  bool allocates() const { return value_ >= 0; }
  Bytes bytes() const { return value_; }
  std::size_t ended() const { return static_cast<std::size_t>(-1 - value_); }

 private:
  std::int64_t value_;  ///< bytes, or one less than the negative number of the allocation that ends

  explicit Event(std::int64_t value) : value_(value) {}
};

/// What is open of a buffer in one size.
struct Open {
  Bytes bytes = 0;
  std::uint32_t last = no_id;  ///< allocation
  std::uint32_t ended_before = 0;
  std::uint32_t next = no_id;  ///< of the same buffer in another size
};

/// Finds what is open of a buffer in a size. The buffers of a rank have numbers that lie together.
class OpenBuffers {
 public:
  explicit OpenBuffers(const std::vector<MemoryChange>& changes) {
    if (changes.empty()) return;
    const auto [low, high] = std::ranges::minmax(changes, {}, &MemoryChange::buffer);
    lowest_ = low.buffer;
    first_.assign(std::size_t{high.buffer} - low.buffer + 1, no_id);
  }

  Open& of(BufferId buffer, Bytes bytes) {
    std::uint32_t& first = first_[buffer - lowest_];
    for (std::uint32_t i = first; i != no_id; i = open_[i].next)
      if (open_[i].bytes == bytes) return open_[i];
    const std::uint32_t next = std::exchange(first, static_cast<std::uint32_t>(open_.size()));
    return open_.emplace_back(Open{.bytes = bytes, .next = next});
  }

 private:
  BufferId lowest_ = 0;
  std::vector<std::uint32_t> first_;
  std::vector<Open> open_;
};

/// What stays, and comes before this event.
struct Staying {
  Seconds at = 0;
  Bytes bytes = 0;
  std::size_t event = std::numeric_limits<std::size_t>::max();
};

/// The placeholders in their order, each at the instant at which the first product of its shape starts.
std::vector<Staying> staying(const Timeline& timeline, const std::vector<Placeholder>& placeholders) {
  std::vector<Staying> all;
  for (const Placeholder& placeholder : placeholders)
    if (placeholder.bytes > 0)
      all.push_back({.at = timeline.in_step(timeline.start[placeholder.first]), .bytes = placeholder.bytes});
  std::ranges::stable_sort(all, {}, &Staying::at);
  return all;
}

/// Pairs each end with its beginning. What ends at the instant at which it begins comes before it there, and is left out.
/// Finds before which event each of `staying` comes: after all changes of its instant.
std::vector<Event> events_of(const std::vector<MemoryChange>& changes, std::span<Staying> staying = {}) {
  OpenBuffers open(changes);
  std::vector<std::uint32_t> opened_before;  // by allocation: the one of the same buffer and size that was open then
  std::vector<Event> events;
  events.reserve(changes.size());
  auto stays = staying.begin();
  for (const MemoryChange& change : changes) {
    for (; stays != staying.end() && stays->at < change.at; ++stays) stays->event = events.size();
    if (change.bytes == 0) continue;
    const Bytes bytes = std::abs(change.bytes);
    Open& of = open.of(change.buffer, bytes);
    if (change.bytes < 0) {
      if (of.last == no_id) {
        ++of.ended_before;
      } else {
        events.push_back(Event::end_of(of.last));
        of.last = opened_before[of.last];
      }
    } else if (of.ended_before > 0) {
      --of.ended_before;
    } else {
      events.push_back(Event::allocation(bytes));
      opened_before.push_back(std::exchange(of.last, static_cast<std::uint32_t>(opened_before.size())));
    }
  }
  return events;
}

void play(const std::vector<Event>& events, CachingAllocator& allocator, std::span<const Staying> staying = {}) {
  std::vector<CachingAllocator::Handle> handles;
  auto stays = staying.begin();
  for (std::size_t number = 0; number < events.size(); ++number) {
    for (; stays != staying.end() && stays->event == number; ++stays) allocator.allocate(stays->bytes);
    if (const Event& event = events[number]; event.allocates())
      handles.push_back(allocator.allocate(event.bytes()));
    else
      allocator.free(handles[event.ended()]);
  }
  for (; stays != staying.end(); ++stays) allocator.allocate(stays->bytes);
}

void free_all(std::vector<CachingAllocator::Handle>& handles, CachingAllocator& allocator) {
  for (const CachingAllocator::Handle handle : handles) allocator.free(handle);
  handles.clear();
}

/// What CUDA graphs hold, each a block that stays; the pool's is all its segments.
struct GraphBlocks {
  std::vector<Bytes> blocks;
  Bytes free = 0;  ///< of the pool's segments at its fullest moment
};

GraphBlocks blocks_of_graphs(const std::vector<MemoryChange>& of_rank, bool expandable_segments) {
  GraphBlocks graphs;
  const GraphMemory memory = graph_memory(of_rank);
  CachingAllocator pool({.expandable_segments = expandable_segments});
  play(events_of(changes_in(MemoryHome::graph_pool, of_rank)), pool);
  for (const Bytes bytes : {memory.inputs, memory.gradients, pool.peak_reserved()})
    if (bytes > 0) graphs.blocks.push_back(bytes);
  graphs.free = pool.peak_reserved() - pool.peak_allocated();
  return graphs;
}

}  // namespace

std::optional<AllocatorUse> AllocatorReplay::of(RankIndex rank, std::vector<MemoryChange> of_rank,
                                                const CachingAllocator::Settings& settings) const {
  const Timeline& timeline = changes_.timeline();
  const GraphBlocks graphs = blocks_of_graphs(of_rank, settings.expandable_segments);
  std::optional<std::vector<MemoryChange>> changes =
      changes_of_whole_step(changes_.dag(), timeline, changes_in(MemoryHome::allocator, std::move(of_rank)), rank);
  if (!changes) return {};
  std::vector<Staying> from_the_first_step = staying(timeline, changes_.origins().placeholders[rank]);
  const std::vector<Event> events = events_of(*changes, from_the_first_step);
  changes.reset();
  const Kept kept = kept_on(changes_, rank);
  CachingAllocator allocator(settings);
  std::vector<CachingAllocator::Handle> moved;
  for (const Bytes bytes : kept.moved) moved.push_back(allocator.allocate(bytes));
  std::size_t buffers = 0;
  for (const Bytes bytes : kept.from_the_start) {
    if (buffers++ == kept.moved_at) free_all(moved, allocator);
    allocator.allocate(bytes);
  }
  free_all(moved, allocator);
  for (const Bytes bytes : graphs.blocks) allocator.allocate(bytes);
  play(events, allocator, from_the_first_step);
  for (const Bytes bytes : kept.after_the_first_step) allocator.allocate(bytes);
  play(events, allocator);
  return AllocatorUse{.allocated = allocator.peak_allocated() - graphs.free,
                      .reserved = allocator.peak_reserved(),
                      .left = allocator.allocated() - graphs.free,
                      .exceeded = allocator.exceeded(),
                      .retries = static_cast<std::int64_t>(allocator.retries())};
}

}  // namespace tandem
