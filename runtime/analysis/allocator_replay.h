#pragma once

#include <optional>
#include <vector>

#include "runtime/analysis/caching_allocator.h"
#include "runtime/analysis/memory_changes.h"

namespace tandem {

/// What a rank's step takes from PyTorch's allocator, at the most.
struct AllocatorUse {
  Bytes allocated = 0;       ///< torch.cuda.max_memory_allocated
  Bytes reserved = 0;        ///< torch.cuda.max_memory_reserved
  Bytes left = 0;            ///< allocated after the last step: what stays on the rank
  bool exceeded = false;     ///< it took more than the device has
  std::int64_t retries = 0;  ///< times that it gave back what it kept, to find room
  bool operator==(const AllocatorUse&) const = default;
};

/// Plays two steps of a rank through the allocator, in the order of its memory changes: parameters, gradients, the optimizer's
/// copy of the parameters and what the framework keeps come first; placeholders of gradients come in the first step, when the
/// first product of their shape starts, and the moments of Adam at its end, into what that step has left; the second step finds
/// both there. Where weights move into their buffers (Software::moves_weights),
/// they are there before, one by one, and leave their room. All is one stream's, as PyTorch allocates what collectives fill for
/// the stream that they are called from. `capacity` of the settings is the device's. What repeats itself in the timeline is
/// played as often as it happens; nothing where it is not known what that is (repeated_changes.h).
///
/// The pool of CUDA graphs is played by itself, from its first capture on, and has the segments that this takes; it counts as
/// allocated, though PyTorch does not count what no tensor has at the moment.
class AllocatorReplay {
 public:
  /// `changes` must outlive this. Several threads may ask it.
  explicit AllocatorReplay(const MemoryChanges& changes) : changes_(changes) {}

  std::optional<AllocatorUse> of(RankIndex rank, const CachingAllocator::Settings& settings = {}) const {
    return of(rank, changes_[rank], settings);
  }
  /// Where the rank's changes are at hand: of a large step they are a good part of all memory, and go as soon as they can.
  std::optional<AllocatorUse> of(RankIndex rank, std::vector<MemoryChange> of_rank,
                                 const CachingAllocator::Settings& settings) const;

 private:
  const MemoryChanges& changes_;
};

}  // namespace tandem
