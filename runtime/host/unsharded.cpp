#include "runtime/host/unsharded.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>

#include "runtime/host/updates.h"

namespace tandem {
namespace {

/// Puts the parts of one tensor together.
class Assembled {
 public:
  Assembled(std::int64_t rows, std::int64_t columns)
      : tensor_{rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns))}, covered_(tensor_.values.size()) {}

  void put(const Update& update, std::span<const float> part) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      const std::size_t at = update.index(i);
      if (covered_.at(at)) {
        const double difference = std::abs(double{tensor_.values[at]} - double{part[i]});
        difference_ = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(difference_, difference);
      }
      if (!covered_[at]) tensor_.values[at] = part[i];
      covered_[at] = true;
      magnitude_ = std::max(magnitude_, std::abs(double{part[i]}));
    }
  }
  bool empty() const { return std::ranges::find(covered_, true) == covered_.end(); }
  bool whole() const { return std::ranges::find(covered_, false) == covered_.end(); }
  double disagreement() const { return difference_ == 0 ? 0 : difference_ / magnitude_; }
  UnshardedTensor take() { return std::move(tensor_); }

 private:
  UnshardedTensor tensor_;
  std::vector<bool> covered_;
  double difference_ = 0, magnitude_ = 0;
};

/// All parameters of the DAG, one kind of number of each.
class AssembledTensors {
 public:
  explicit AssembledTensors(const Dag& dag) {
    for (const ParameterShard& shard : dag.shards)
      if (!shard.frozen) tensors_.try_emplace(shard.tensor, shard.tensor_rows, shard.tensor_columns);
  }
  void put(const Update& update, std::span<const float> part) { tensors_.at(update.shard.tensor).put(update, part); }

  double disagreement() const {
    double largest = 0;
    for (const auto& [name, tensor] : tensors_) largest = std::max(largest, tensor.disagreement());
    return largest;
  }
  /// `may_lack`: whether tensors of which nothing was put are left out.
  UnshardedTensors take(bool may_lack = false) {
    UnshardedTensors all;
    for (auto& [name, tensor] : tensors_) {
      if (may_lack && tensor.empty()) continue;
      if (!tensor.whole()) throw std::runtime_error("no rank updates all of '" + name + "'");
      all.emplace(name, tensor.take());
    }
    return all;
  }

 private:
  std::map<std::string, Assembled> tensors_;
};

/// One kind of token of every sequence.
class AssembledTokens {
 public:
  AssembledTokens(std::int64_t sequences, std::int64_t length)
      : length_(length), tokens_(static_cast<std::size_t>(sequences * length)) {}

  void put(std::int64_t sequence, std::int64_t position, std::int32_t token) {
    std::optional<std::int32_t>& place = tokens_.at(static_cast<std::size_t>(sequence * length_ + position));
    if (place && *place != token) throw std::runtime_error("two ranks hold different tokens of one place");
    place = token;
  }
  std::vector<std::int32_t> take() const {
    std::vector<std::int32_t> all;
    for (const std::optional<std::int32_t>& token : tokens_) {
      if (!token) throw std::runtime_error("no rank holds all tokens");
      all.push_back(*token);
    }
    return all;
  }

 private:
  std::int64_t length_;
  std::vector<std::optional<std::int32_t>> tokens_;
};

/// Calls `visit(content, sequence, position, token)` for every token and target of every rank; those of later tokens have later
/// positions.
template <typename Visit>
void for_each_token(const HostMemory& memory, Visit visit) {
  for (const InputShard& input : memory.dag().inputs) {
    if (input.content != InputShard::Content::tokens && input.content != InputShard::Content::targets) continue;
    const Shape shape = memory.dag().buffers[input.buffer].shape;
    const std::int32_t* tokens = memory.tensor(input.buffer).i32();
    for (std::int64_t row = 0; row < shape[0]; ++row) {
      const std::int64_t position = input.positions.at(static_cast<std::int32_t>(row)) + input.ahead;
      for (std::int64_t sequence = 0; sequence < shape[1]; ++sequence)
        visit(input.content, input.first_sequence + sequence, position, tokens[row * shape[1] + sequence]);
    }
  }
}

}  // namespace

UnshardedState gather_unsharded(const HostMemory& memory) {
  AssembledTensors weights(memory.dag()), gradients(memory.dag()), momenta(memory.dag()), variances(memory.dag());
  for_each_update(memory, [&](const Update& update) {
    weights.put(update, update.weight);
    gradients.put(update, update.gradient);
    momenta.put(update, update.momentum);
    variances.put(update, update.variance);
  });
  const double disagreement = std::max(weights.disagreement(), gradients.disagreement());
  return {weights.take(), gradients.take(), momenta.take(true), variances.take(true), disagreement};
}

UnshardedTokens gather_tokens(const HostMemory& memory) {
  UnshardedTokens all;
  for_each_token(memory, [&](InputShard::Content, std::int64_t sequence, std::int64_t position, std::int32_t) {
    all.sequences = std::max(all.sequences, sequence + 1);
    all.length = std::max(all.length, position + 1);
  });
  AssembledTokens inputs(all.sequences, all.length), labels(all.sequences, all.length);
  for_each_token(memory, [&](InputShard::Content content, std::int64_t sequence, std::int64_t position, std::int32_t token) {
    (content == InputShard::Content::tokens ? inputs : labels).put(sequence, position, token);
  });
  all.inputs = inputs.take();
  all.labels = labels.take();
  return all;
}

UnshardedPatches gather_patches(const HostMemory& memory) {
  UnshardedPatches all;
  for (const InputShard& input : memory.dag().inputs) {
    const Buffer& buffer = memory.dag().buffers[input.buffer];
    if (input.content != InputShard::Content::noise || buffer.kind != BufferKind::input) continue;
    const Shape& shape = buffer.shape;  // of one sequence
    all.positions = shape[0];
    all.width = shape[2];
    const float* const pixels = memory.tensor(input.buffer).f32();
    all.of_sequence[input.first_sequence].assign(pixels, pixels + shape.elements());
  }
  return all;
}

}  // namespace tandem
