#pragma once

#include <memory>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem {

struct MemoryOrigins;

/// Where bytes are allocated.
enum class MemoryHome : std::uint8_t {
  allocator,   ///< what is freed there, anything can have
  graph_pool,  ///< of CUDA graphs (graph_memory.h), as are the next two
  graph_inputs,
  graph_gradients
};

/// An activation or a communication buffer is allocated when the first task that touches it, or a view into it, starts, and freed
/// when the last ends. What a framework holds beside an operation (software.h) counts as more of its largest operand while it
/// runs.
struct MemoryChange {
  Seconds at = 0;
  Bytes bytes = 0;  ///< negative where it is freed
  BufferId buffer = 0;
  bool is_activation = false;
  MemoryHome home = MemoryHome::allocator;
};

/// The changes of each rank of a DAG. A rank's are made when they are asked for, as those of all, and what they are made of, take
/// a good part of what a large step takes. Several threads may ask.
class MemoryChanges {
 public:
  /// All must outlive this. `origins`: the DAG's.
  MemoryChanges(const Dag& dag, const Timeline& timeline, const MemoryOrigins& origins);
  /// For whoever has not found the origins.
  MemoryChanges(const Dag& dag, const Timeline& timeline);
  ~MemoryChanges();

  /// Returns the changes in time's order. At one instant frees come first, as they make room for what is allocated then, and the
  /// largest allocation comes last.
  std::vector<MemoryChange> operator[](RankIndex rank) const;

  const Dag& dag() const { return dag_; }
  const Timeline& timeline() const { return timeline_; }
  const MemoryOrigins& origins() const { return origins_; }
  /// Returns how many inputs of the step each buffer stands for: as many as the first task that reads it, and 1 where it is none.
  /// Empty where nothing of the timeline repeats itself.
  const std::vector<std::int64_t>& inputs() const { return inputs_; }

 private:
  const Dag& dag_;
  const Timeline& timeline_;
  const std::unique_ptr<const MemoryOrigins> own_;  ///< null where others have found them
  const MemoryOrigins& origins_;
  const Seconds last_end_;
  const std::vector<std::int64_t> inputs_;

  MemoryChanges(const Dag& dag, const Timeline& timeline, std::unique_ptr<const MemoryOrigins> own, const MemoryOrigins* origins);
};

}  // namespace tandem
