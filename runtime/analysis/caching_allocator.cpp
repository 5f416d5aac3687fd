#include "runtime/analysis/caching_allocator.h"

#include <algorithm>
#include <stdexcept>

namespace tandem {
namespace {

constexpr Bytes kibi = 1024, mebi = 1024 * kibi;
constexpr Bytes granularity = 512;             // kMinBlockSize
constexpr Bytes most_of_small = mebi;          // kSmallSize
constexpr Bytes small_segment = 2 * mebi;      // kSmallBuffer
constexpr Bytes large_segment = 20 * mebi;     // kLargeBuffer
constexpr Bytes own_segment_from = 10 * mebi;  // kMinLargeAlloc
constexpr Bytes segment_unit = 2 * mebi;       // kRoundLarge
/// Where an expandable segment lies, far from everything else and from one another.
constexpr Bytes address_range = large_segment << 24;

constexpr Bytes rounded_up(Bytes bytes, Bytes unit) { return (bytes + unit - 1) / unit * unit; }

Bytes segment_size(Bytes size) {
  if (size <= most_of_small) return small_segment;
  if (size < own_segment_from) return large_segment;
  return rounded_up(size, segment_unit);
}

/// Of an expandable segment.
constexpr Bytes page_size(bool small) { return small ? small_segment : large_segment; }

}  // namespace

CachingAllocator::Handle CachingAllocator::allocate(Bytes bytes, std::uint32_t stream) {
  const Bytes size = rounded_up(std::max<Bytes>(bytes, 1), granularity);
  const std::size_t pool = pool_of(size, stream);
  BlockId id = best_fit(pools_[pool], size);
  if (id != no_block)
    erase_free(id);
  else
    id = settings_.expandable_segments ? expand(pool, size) : new_segment(pool, segment_size(size));
  split(id, size);
  blocks_[id].in_use = true;
  allocated_ += blocks_[id].size;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return id;
}

void CachingAllocator::free(Handle handle) {
  if (handle >= blocks_.size() || !blocks_[handle].in_use) throw std::logic_error("freed what is not allocated");
  Block& block = blocks_[handle];
  block.in_use = false;
  allocated_ -= block.size;
  Pool& pool = pools_[segments_[block.segment].pool];
  if (const BlockId next = block.next; next != no_block && !blocks_[next].in_use) {
    erase_free(next);
    block.size += blocks_[next].size;
    block.next = blocks_[next].next;
    if (block.next != no_block) blocks_[block.next].previous = handle;
    if (pool.last == next) pool.last = handle;
    drop(next);
  }
  if (const BlockId previous = block.previous; previous != no_block && !blocks_[previous].in_use) {
    erase_free(previous);
    block.size += blocks_[previous].size;
    block.address = blocks_[previous].address;
    block.previous = blocks_[previous].previous;
    if (block.previous != no_block) blocks_[block.previous].next = handle;
    drop(previous);
  }
  insert_free(handle);
}

std::size_t CachingAllocator::pool_of(Bytes size, std::uint32_t stream) {
  const bool small = size <= most_of_small;
  const auto [found, is_new] = pool_index_.try_emplace({stream, small}, pools_.size());
  if (is_new) pools_.emplace_back().small = small;
  return found->second;
}

CachingAllocator::BlockId CachingAllocator::best_fit(const Pool& pool, Bytes size) {
  auto found = pool.free.lower_bound(size, BySize());
  if (found == pool.free.end()) return no_block;
  const BlockId first = found->id;
  if (first != pool.last || ++found == pool.free.end()) return first;
  return found->id;
}

CachingAllocator::BlockId CachingAllocator::new_segment(std::size_t pool, Bytes size) {
  if (lacks_room(size)) give_back_unused();
  take_from_device(size);
  ++live_segments_;
  segments_.push_back({.pool = pool, .size = size});
  const Bytes address = next_address_;
  next_address_ += size;
  return make_block(address, size, static_cast<std::uint32_t>(segments_.size() - 1));
}

Bytes CachingAllocator::growth(const Pool& pool, Bytes size) const {
  const bool has_end = pool.last != no_block && !blocks_[pool.last].in_use;
  return rounded_up(size - (has_end ? blocks_[pool.last].size : 0), page_size(pool.small));
}

CachingAllocator::BlockId CachingAllocator::expand(std::size_t pool_id, Bytes size) {
  if (lacks_room(growth(pools_[pool_id], size))) give_back_unused();
  const Bytes more = growth(pools_[pool_id], size);
  take_from_device(more);
  Pool& pool = pools_[pool_id];
  if (!pool.has_segment) {
    pool.has_segment = true;
    pool.segment = static_cast<std::uint32_t>(segments_.size());
    pool.end = static_cast<Bytes>(pool_id) * address_range;
    segments_.push_back({.pool = pool_id});
    ++live_segments_;
  }
  segments_[pool.segment].size += more;
  pool.end += more;
  if (const BlockId last = pool.last; last != no_block && !blocks_[last].in_use) {
    erase_free(last);
    blocks_[last].size += more;
    return last;
  }
  const BlockId before = pool.last;
  const BlockId id = make_block(pool.end - more, more, pool.segment, before);
  if (before != no_block) blocks_[before].next = id;
  pool.last = id;
  return id;
}

void CachingAllocator::split(BlockId id, Bytes size) {
  const Bytes rest = blocks_[id].size - size;
  Pool& pool = pools_[segments_[blocks_[id].segment].pool];
  const bool splits = pool.small || settings_.expandable_segments ? rest >= granularity : rest > most_of_small;
  if (!splits) return;
  Block& block = blocks_[id];
  const BlockId next = block.next;
  const BlockId after = make_block(block.address + size, rest, block.segment, id, next);
  block.size = size;
  block.next = after;
  if (next != no_block) blocks_[next].previous = after;
  if (pool.last == id) pool.last = after;
  insert_free(after);
}

void CachingAllocator::take_from_device(Bytes bytes) {
  exceeded_ |= lacks_room(bytes);
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
}

void CachingAllocator::give_back_unused() {
  ++retries_;
  for (Pool& pool : pools_) {
    std::vector<BlockId> free;
    for (const Block& block : pool.free) free.push_back(block.id);
    for (const BlockId id : free) {
      if (settings_.expandable_segments)
        give_back_pages(pool, id);
      else if (blocks_[id].previous == no_block && blocks_[id].next == no_block)
        give_back_segment(id);
    }
  }
}

void CachingAllocator::give_back_segment(BlockId id) {
  erase_free(id);
  reserved_ -= blocks_[id].size;
  segments_[blocks_[id].segment].size = 0;
  --live_segments_;
  drop(id);
}

/// What lies before and after the whole pages of a free block stays, as blocks that are no neighbours any more.
void CachingAllocator::give_back_pages(Pool& pool, BlockId id) {
  const Block block = blocks_[id];
  const Bytes page = page_size(pool.small);
  const Bytes begin = rounded_up(block.address, page), end = (block.address + block.size) / page * page;
  if (begin >= end) return;
  const Bytes before = begin - block.address, after = block.address + block.size - end;
  erase_free(id);
  reserved_ -= end - begin;
  segments_[block.segment].size -= end - begin;
  BlockId left = block.previous, right = block.next;
  if (before > 0) left = make_block(block.address, before, block.segment, left);
  if (after > 0) right = make_block(end, after, block.segment, no_block, right);
  if (left != no_block) blocks_[left].next = no_block;
  if (right != no_block) blocks_[right].previous = no_block;
  if (before > 0) {
    if (block.previous != no_block) blocks_[block.previous].next = left;
    insert_free(left);
  }
  if (after > 0) {
    if (block.next != no_block) blocks_[block.next].previous = right;
    insert_free(right);
  }
  if (pool.last == id) {
    pool.last = left;
    pool.end = begin;
  }
  drop(id);
}

void CachingAllocator::insert_free(BlockId id) {
  Block& block = blocks_[id];
  pools_[segments_[block.segment].pool].free.insert(block);
}

void CachingAllocator::erase_free(BlockId id) {
  Block& block = blocks_[id];
  FreeBlocks& free = pools_[segments_[block.segment].pool].free;
  free.erase(free.iterator_to(block));
}

CachingAllocator::BlockId CachingAllocator::make_block(Bytes address, Bytes size, std::uint32_t segment, BlockId previous,
                                                       BlockId next) {
  if (unused_blocks_.empty()) {
    unused_blocks_.push_back(static_cast<BlockId>(blocks_.size()));
    blocks_.emplace_back();
  }
  const BlockId id = unused_blocks_.back();
  unused_blocks_.pop_back();
  Block& block = blocks_[id];
  block.address = address;
  block.size = size;
  block.segment = segment;
  block.previous = previous;
  block.next = next;
  block.id = id;
  return id;
}

void CachingAllocator::drop(BlockId id) {
  blocks_[id] = {};
  unused_blocks_.push_back(id);
}

}  // namespace tandem
