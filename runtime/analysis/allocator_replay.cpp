#include "runtime/analysis/allocator_replay.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/analysis/framework_memory.h"

namespace tandem {
namespace {

/// What stays allocated on a rank: sizes in the order in which they are allocated.
struct Kept {
  std::vector<Bytes> moved;  ///< weights one by one, until they have moved into their buffers
  std::vector<Bytes> from_the_start;
  std::size_t moved_at = 0;  ///< so many of these come before the weights have moved
  std::vector<Bytes> after_the_first_step;
};

/// Adam's operands of one bucket.
struct Update {
  BufferId weights = no_id;           ///< the slice that it writes
  std::vector<BufferId> states = {};  ///< the parameters' copy and the two moments
};

std::vector<Update> updates_on(const Dag& dag, RankIndex rank) {
  std::vector<Update> updates;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op != OpKind::adam || dag.tasks[id].rank != rank) continue;
    Update& update = updates.emplace_back();
    for (const Operand& operand : dag.operands_of(id)) {
      if (operand.access() == Access::write) update.weights = operand.buffer;
      if (operand.access() == Access::update) update.states.push_back(operand.buffer);
    }
  }
  return updates;
}

/// By buffer of weights, the pieces of the unsharded model that lie in it.
using Pieces = std::unordered_map<BufferId, std::vector<BufferId>>;

Pieces pieces_on(const Dag& dag, RankIndex rank) {
  Pieces pieces;
  for (const ParameterShard& shard : dag.shards) {
    const Buffer& view = dag.buffers[shard.buffer];
    if (view.rank == rank) pieces[view.base].push_back(shard.buffer);
  }
  return pieces;
}

/// The sizes of a state of the bucket, piece by piece: of each what lies in the slice that is updated.
void add_by_piece(const Dag& dag, const Pieces& pieces, const Update& update, BufferId state, std::vector<Bytes>& sizes) {
  const Buffer& slice = dag.buffers[update.weights];
  const auto found = pieces.find(slice.base);
  const Bytes all = dag.buffers[state].bytes(), element = size_of(dag.buffers[state].dtype);
  Bytes listed = 0;
  if (found != pieces.end()) {
    for (const BufferId id : found->second) {
      const Buffer& piece = dag.buffers[id];
      const std::int64_t begin = std::max(piece.offset, slice.offset);
      const std::int64_t end = std::min(piece.offset + piece.shape.elements(), slice.offset + slice.shape.elements());
      if (begin >= end || listed + (end - begin) * element > all) continue;
      sizes.push_back((end - begin) * element);
      listed += sizes.back();
    }
  }
  if (listed < all) sizes.push_back(all - listed);  // padding, or a slice whose pieces are not known
}

Kept kept_on(const Dag& dag, RankIndex rank) {
  Kept kept;
  const bool moves = dag.software.moves_weights;
  const std::vector<Update> updates = updates_on(dag, rank);
  std::vector<bool> is_state(dag.buffers.size());
  for (const Update& update : updates)
    for (const BufferId state : update.states) is_state[dag.buffers[state].base] = true;
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.rank != rank || buffer.base != id || !is_persistent(buffer.kind) || buffer.kind == BufferKind::host) continue;
    if (buffer.bytes() > 0 && !is_state[id]) kept.from_the_start.push_back(buffer.bytes());
  }
  kept.moved_at = kept.from_the_start.size();
  const Pieces pieces = moves ? pieces_on(dag, rank) : Pieces{};
  for (const auto& [base, views] : pieces)
    if (dag.buffers[base].kind == BufferKind::parameter)
      for (const BufferId view : views) kept.moved.push_back(dag.buffers[view].bytes());
  std::ranges::sort(kept.moved);
  for (const Update& update : updates) {
    for (std::size_t i = 0; i < update.states.size(); ++i) {
      std::vector<Bytes>& sizes = i == 0 ? kept.from_the_start : kept.after_the_first_step;
      add_by_piece(dag, pieces, update, dag.buffers[update.states[i]].base, sizes);
    }
  }
  const FrameworkMemory held = framework_memory(dag)[rank];
  for (const Bytes bytes : {held.reserved, held.workspaces, held.placeholders})
    if (bytes > 0) kept.from_the_start.push_back(bytes);
  return kept;
}

/// An allocation where `bytes` is more than 0, else the end of allocation `of`. Allocations are counted from 0.
struct Event {
  Bytes bytes = 0;
  std::uint32_t of = 0;
};

/// Pairs each end with its beginning. What ends at the instant at which it begins comes before it there, and is left out.
std::vector<Event> events_of(const std::vector<MemoryChange>& changes) {
  struct Open {
    std::vector<std::uint32_t> allocations;
    std::size_t ended_before = 0;
  };
  std::unordered_map<std::uint64_t, Open> open;  // by buffer and size
  std::vector<Event> events;
  events.reserve(changes.size());
  std::uint32_t allocations = 0;
  for (const MemoryChange& change : changes) {
    if (change.bytes == 0) continue;
    const Bytes bytes = std::abs(change.bytes);
    Open& of = open[(static_cast<std::uint64_t>(bytes) << 20) ^ change.buffer];
    if (change.bytes < 0) {
      if (of.allocations.empty()) {
        ++of.ended_before;
      } else {
        events.push_back({.of = of.allocations.back()});
        of.allocations.pop_back();
      }
    } else if (of.ended_before > 0) {
      --of.ended_before;
    } else {
      events.push_back({.bytes = bytes});
      of.allocations.push_back(allocations++);
    }
  }
  return events;
}

void play(const std::vector<Event>& events, CachingAllocator& allocator) {
  std::vector<CachingAllocator::Handle> handles;
  for (const Event& event : events) {
    if (event.bytes > 0)
      handles.push_back(allocator.allocate(event.bytes));
    else
      allocator.free(handles[event.of]);
  }
}

void free_all(std::vector<CachingAllocator::Handle>& handles, CachingAllocator& allocator) {
  for (const CachingAllocator::Handle handle : handles) allocator.free(handle);
  handles.clear();
}

}  // namespace

AllocatorUse replay_allocator(const Dag& dag, const MemoryChanges& changes, RankIndex rank,
                              const CachingAllocator::Settings& settings) {
  const Kept kept = kept_on(dag, rank);
  const std::vector<Event> events = events_of(changes[rank]);
  CachingAllocator allocator(settings);
  std::vector<CachingAllocator::Handle> moved;
  for (const Bytes bytes : kept.moved) moved.push_back(allocator.allocate(bytes));
  std::size_t buffers = 0;
  for (const Bytes bytes : kept.from_the_start) {
    if (buffers++ == kept.moved_at) free_all(moved, allocator);
    allocator.allocate(bytes);
  }
  free_all(moved, allocator);
  play(events, allocator);
  for (const Bytes bytes : kept.after_the_first_step) allocator.allocate(bytes);
  play(events, allocator);
  return {.allocated = allocator.peak_allocated(),
          .reserved = allocator.peak_reserved(),
          .left = allocator.allocated(),
          .exceeded = allocator.exceeded()};
}

}  // namespace tandem
