#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/schedules/schedule_table.h"

namespace tandem::scenarios {

/// Which part of the model each chunk of each pipeline stage holds, and which way micro-batches go through it. Part 0 has the
/// embedding, the last the loss.
///
///   loop      chunk c of stage s is part c * pp + s; from the last stage on to the first
///   V         two chunks: down the stages and back up, so that the last stage turns and the first has both ends
///   mirrored  two chunks of two copies of the model: part s, and part pp - 1 - s for micro-batches that enter at the last stage
class ChunkPlacement {
 public:
  explicit ChunkPlacement(const Scenario& scenario);

  std::int32_t parts() const { return parts_; }
  std::int32_t chunks() const { return chunks_; }  ///< per stage
  std::int32_t copies() const { return path_ == ChunkPath::mirrored ? 2 : 1; }
  std::int32_t part(std::int32_t stage, std::int32_t chunk) const;
  /// A stage's chunks in the order of their parts, which is the same on both stages that hold these.
  std::vector<std::int16_t> chunks_by_part(std::int32_t stage) const;
  /// The stage that holds `part`, of the first copy.
  std::int32_t stage(std::int32_t part) const;

  /// Forwards through `chunk` go from higher stages to lower ones.
  bool descends(std::int32_t chunk) const { return path_ != ChunkPath::loop && chunk == 1; }
  bool descends() const { return path_ != ChunkPath::loop; }
  /// From the last stage on to the first.
  bool wraps() const { return path_ == ChunkPath::loop && chunks_ > 1; }
  /// The part after `part` lies on the same stage.
  bool turns_after(std::int32_t part) const { return path_ == ChunkPath::v && part == stages_ - 1; }
  /// One stage has both ends of the model.
  bool ends_meet() const { return path_ != ChunkPath::loop || stages_ == 1; }

 private:
  ChunkPath path_;
  std::int32_t stages_, chunks_, parts_;
};

}  // namespace tandem::scenarios
