#pragma once

#include "runtime/contents/initial_values.h"
#include "runtime/dag/dag.h"

namespace tandem {

/// `count` elements of a base buffer from `begin` on.
struct Stretch {
  BufferId base = 0;
  std::int64_t begin = 0, count = 0;
};

/// Elements of one shard of a parameter on end, row after row, as polynomials of the unsharded tensor's initial values.
struct ShardValues {
  InitialParameter values;
  std::int64_t row = 0, column = 0;  ///< of the shard's first element in the tensor
  std::int64_t columns = 1;          ///< of the shard
  std::int64_t first = 0;            ///< which of the shard's elements comes first here
  float constant = 0, linear = 1, square = 0;

  TANDEM_HOST_DEVICE float at(std::int64_t i) const {
    const float value = values.at(row + (first + i) / columns, column + (first + i) % columns);
    return constant + value * (linear + value * square);
  }
};

/// Tokens, targets or positions, row by row of [sequence, micro-batch]; or one row of the sequences' numbers.
struct InputValues {
  InputShard::Content content = InputShard::Content::tokens;
  std::int32_t first_start = 0, first_run = 0, second_start = 0;  ///< of Positions: its second run goes on to the end
  std::int64_t sequences = 1;                                     ///< in the buffer: its columns
  std::int64_t first_sequence = 0, ahead = 0, vocabulary = 1;
  std::uint64_t key = 0;

  TANDEM_HOST_DEVICE std::int32_t at(std::int64_t i) const {
    const auto local = static_cast<std::int32_t>(i / sequences);
    const std::int32_t position = local < first_run ? first_start + local : second_start + local - first_run;
    if (content == InputShard::Content::positions) return position;
    if (content == InputShard::Content::sequences) return static_cast<std::int32_t>(first_sequence + i % sequences);
    const std::int64_t next = content == InputShard::Content::targets ? 1 : 0;
    return token_of(key, first_sequence + i % sequences, position + next + ahead, vocabulary);
  }
};

/// Writes into the buffers of whoever executes.
class ContentsWriter {
 public:
  virtual void write(const Stretch& out, float value) = 0;
  virtual void write(const Stretch& out, const ShardValues& values) = 0;
  virtual void write(const Stretch& out, const InputValues& values) = 0;
  virtual void copy(const Stretch& from, const Stretch& to) = 0;

 protected:
  ~ContentsWriter() = default;
};

/// Of the size of the gradients that the moments of a run under way are of.
inline constexpr float gradient_scale = 1e-3F;
/// All of Adafactor's factors.
inline constexpr float initial_factor = gradient_scale * gradient_scale;

/// Before the step: parameters hold values that depend on the seed, the tensor's name and the element's place in the *unsharded*
/// tensor alone, so that differently sharded DAGs start from the same model; likewise tokens and targets, from sequence and
/// position. Adam's master copies equal their parameters, its moments are those of a run under way. A parameter that the step
/// all-gathers before it uses it holds only the rank's own slice; the rest of it is written with NaN. What else there is stays as
/// it was, which should be NaN, so that what reads too early shows.
void write_initial_contents(const Dag& dag, std::uint64_t seed, ContentsWriter& writer);

}  // namespace tandem
