#pragma once

#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/units.h"

namespace tandem {

/// PyTorch's allocator of GPU memory (c10/cuda/CUDACachingAllocator.cpp), as arithmetic on sizes. It takes segments from the
/// device, cuts blocks from them, and keeps what is freed for later:
///
/// 1. A size is rounded up to a multiple of 512 bytes.
/// 2. Blocks of up to 1 MiB come from segments of 2 MiB, of less than 10 MiB from segments of 20 MiB, larger ones from segments
///    of their own, rounded up to 2 MiB. Small blocks and large ones have pools of their own, and so has each stream.
/// 3. Of the free blocks of its pool that are large enough, the smallest is taken, of equal ones that with the lowest address.
/// 4. The rest of a block becomes a free block: of a small one from 512 bytes on, of a large one if it is more than 1 MiB.
///    A smaller rest stays with the block and counts as allocated.
/// 5. A block that is freed merges with free neighbours of its segment.
/// 6. Where the device has no room for a segment, all segments without a block in use are given back, and it is tried again.
///
/// With expandable segments a pool has one segment, to which pages are mapped as it grows: of 2 MiB for small blocks, of 20 MiB
/// for large ones. Any rest of 512 bytes is cut off, and the free block at the end is taken last. Under rule 6 all pages without
/// a block in use are given back; PyTorch maps pages to such a hole later, here it stays one.
class CachingAllocator {
 public:
  struct Settings {
    bool expandable_segments = false;
    Bytes capacity = std::numeric_limits<Bytes>::max();  ///< of the device, for segments
  };
  using Handle = std::uint32_t;

  CachingAllocator() = default;
  explicit CachingAllocator(const Settings& settings) : settings_(settings) {}

  /// `bytes`: 1 at least. Never fails: beyond the capacity `reserved` exceeds it, and `exceeded` says so.
  Handle allocate(Bytes bytes, std::uint32_t stream = 0);
  /// Throws std::logic_error for what is not allocated.
  void free(Handle handle);

  Bytes allocated() const { return allocated_; }  ///< torch.cuda.memory_allocated
  Bytes reserved() const { return reserved_; }    ///< torch.cuda.memory_reserved
  Bytes peak_allocated() const { return peak_allocated_; }
  Bytes peak_reserved() const { return peak_reserved_; }
  bool exceeded() const { return exceeded_; }
  std::size_t retries() const { return retries_; }  ///< times that rule 6 applied: num_alloc_retries of torch.cuda.memory_stats
  std::size_t segments() const { return live_segments_; }

 private:
  using BlockId = std::uint32_t;
  static constexpr BlockId no_block = 0xFFFFFFFF;
  struct Block : boost::intrusive::set_base_hook<> {
    Bytes address = 0;
    Bytes size = 0;
    std::uint32_t segment = 0;
    BlockId previous = no_block, next = no_block;  ///< in its segment
    BlockId id = no_block;
    bool in_use = false;
  };
  /// Each stays at its address.
  class Blocks {
   public:
    std::size_t size() const { return size_; }
    Block& operator[](BlockId id) { return chunks_[id / chunk][id % chunk]; }
    const Block& operator[](BlockId id) const { return chunks_[id / chunk][id % chunk]; }
    void emplace_back() {
      if (size_++ % chunk == 0) chunks_.push_back(std::make_unique<Block[]>(chunk));
    }

   private:
    static constexpr std::size_t chunk = 512;
    std::vector<std::unique_ptr<Block[]>> chunks_;
    std::size_t size_ = 0;
  };
  struct Segment {
    std::size_t pool = 0;
    Bytes size = 0;
  };
  struct BySize {
    bool operator()(const Block& a, const Block& b) const { return a.size != b.size ? a.size < b.size : a.address < b.address; }
    bool operator()(const Block& a, Bytes size) const { return a.size < size; }
    bool operator()(Bytes size, const Block& b) const { return size < b.size; }
  };
  using FreeBlocks = boost::intrusive::set<Block, boost::intrusive::compare<BySize>>;
  struct Pool {
    bool small = false;
    FreeBlocks free;
    std::uint32_t segment = 0;  ///< the expandable one
    BlockId last = no_block;    ///< at its end
    Bytes end = 0;              ///< its address
    bool has_segment = false;
  };

  std::size_t pool_of(Bytes size, std::uint32_t stream);
  static BlockId best_fit(const Pool& pool, Bytes size);
  BlockId new_segment(std::size_t pool, Bytes size);
  BlockId expand(std::size_t pool, Bytes size);
  void split(BlockId id, Bytes size);
  Bytes growth(const Pool& pool, Bytes size) const;
  bool lacks_room(Bytes bytes) const { return bytes > settings_.capacity - reserved_; }
  void take_from_device(Bytes bytes);
  void give_back_unused();
  void give_back_segment(BlockId id);
  void give_back_pages(Pool& pool, BlockId id);
  void insert_free(BlockId id);
  void erase_free(BlockId id);
  BlockId make_block(Bytes address, Bytes size, std::uint32_t segment, BlockId previous = no_block, BlockId next = no_block);
  void drop(BlockId id);

  Settings settings_;
  std::map<std::pair<std::uint32_t, bool>, std::size_t> pool_index_;
  Blocks blocks_;
  std::vector<Pool> pools_;
  std::vector<BlockId> unused_blocks_;
  std::vector<Segment> segments_;
  Bytes next_address_ = 0;
  Bytes allocated_ = 0, reserved_ = 0, peak_allocated_ = 0, peak_reserved_ = 0;
  std::size_t live_segments_ = 0, retries_ = 0;
  bool exceeded_ = false;
};

}  // namespace tandem
