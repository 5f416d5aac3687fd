#pragma once

#include <functional>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// Every buffer of a rank at its place in one block of memory.
///
/// Buffers that live for the whole step (see `is_persistent`) lie at the beginning, one after the other, and with them single
/// numbers such as the loss, which are read afterwards. The others lie where
/// they fit best among those that are alive when their unit is issued. Two that share bytes are never alive at once: `waits`
/// names the tasks that must have ended before a task may run which no dependency of the DAG keeps apart.
struct ArenaPlan {
  struct Wait {
    TaskId waits = 0;  ///< the first on its stream that touches a buffer
    TaskId on = 0;     ///< the last, on another stream, that touched what lay there before
  };
  std::vector<Bytes> offset;      ///< by base buffer; undefined for views
  std::vector<Bytes> size;        ///< by rank
  std::vector<Bytes> persistent;  ///< by rank: the part of it that holds what lives for the whole step
  std::vector<Bytes> alive;       ///< by rank: bytes alive at the fullest moment; size - alive is lost to gaps
  std::vector<Wait> waits;
};

inline constexpr Bytes arena_alignment = 256;

inline bool keeps_its_place(const Buffer& buffer) { return is_persistent(buffer.kind) || buffer.shape.elements() == 1; }

/// `order` as issue_order() gives it. `bytes_of` says what a base buffer takes, which is rounded up to the alignment.
ArenaPlan plan_arena(const Dag& dag, const std::vector<TaskId>& order, const std::function<Bytes(const Buffer&)>& bytes_of);

}  // namespace tandem
