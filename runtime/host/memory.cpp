#include "runtime/host/memory.h"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/host/initial_values.h"

namespace tandem {
namespace {

constexpr float unset = std::numeric_limits<float>::quiet_NaN();

void fill_parameters(const HostMemory& memory, std::uint64_t seed) {
  const Dag& dag = memory.dag();
  for (const ParameterShard& shard : dag.shards) {
    const HostTensor whole = memory.tensor(dag.buffers[shard.buffer].base);
    std::fill_n(whole.f32(), whole.shape.elements(), 0.0F);  // the padding between and after the shards
  }
  for (const ParameterShard& shard : dag.shards) {
    if (dag.buffers[shard.buffer].shape.elements() != shard.rows * shard.columns) {
      throw std::logic_error("the buffer of a shard of '" + shard.tensor + "' has not the shard's size");
    }
    const InitialParameter values(seed, shard.tensor, shard.tensor_columns);
    float* out = memory.tensor(shard.buffer).f32();
    for (std::int64_t row = 0; row < shard.rows; ++row) {
      for (std::int64_t column = 0; column < shard.columns; ++column) {
        *out++ = values.at(shard.row + row, shard.column + column);
      }
    }
  }
}

std::int32_t input_value(const InputShard& input, std::uint64_t seed, std::int64_t sequence, std::int64_t position) {
  switch (input.content) {
    case InputShard::Content::tokens:
      return initial_token(seed, sequence, position + input.ahead, input.vocabulary);
    case InputShard::Content::targets:
      return initial_token(seed, sequence, position + 1 + input.ahead, input.vocabulary);
    case InputShard::Content::positions:
      return static_cast<std::int32_t>(position);
  }
  throw std::logic_error("unknown content of an input");
}

void fill_inputs(const HostMemory& memory, std::uint64_t seed) {
  const Dag& dag = memory.dag();
  for (const InputShard& input : dag.inputs) {
    if (dag.buffers[input.buffer].dtype != DType::i32) throw std::logic_error("an input buffer does not hold int32");
    const HostTensor tensor = memory.tensor(input.buffer);
    std::int32_t* out = tensor.i32();
    for (std::int32_t i = 0; i < tensor.shape[0]; ++i) {
      for (std::int64_t j = 0; j < tensor.shape[1]; ++j) {
        *out++ = input_value(input, seed, input.first_sequence + j, input.positions.at(i));
      }
    }
  }
}

/// Elements [begin, end) of a base buffer.
struct Interval {
  std::int64_t begin, end;
  auto operator<=>(const Interval&) const = default;
  bool overlaps(const Interval& other) const { return begin < other.end && other.begin < end; }
  bool contains(const Interval& other) const { return begin <= other.begin && other.end <= end; }
};

Interval interval_of(const Buffer& buffer) { return {buffer.offset, buffer.offset + buffer.shape.elements()}; }

std::vector<std::vector<const ParameterShard*>> shards_by_base(const Dag& dag) {
  std::vector<std::vector<const ParameterShard*>> shards(dag.buffers.size());
  for (const ParameterShard& shard : dag.shards) shards[dag.buffers[shard.buffer].base].push_back(&shard);
  return shards;
}

/// Master copies equal the parameters. The moments are those of a run under way, not zero: Adam's first step from zero divides
/// each gradient by itself, so that its sign alone counts, and rounding would decide the sign of the smallest.
void fill_adam_states(const HostMemory& memory, std::uint64_t seed) {
  constexpr float gradient_scale = 1e-3F;
  const Dag& dag = memory.dag();
  const std::vector<std::vector<const ParameterShard*>> shards_of = shards_by_base(dag);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op != OpKind::adam) continue;
    const std::span<const Operand> operands = dag.operands_of(id);  // gradient, norm; parameter, master, m, v
    const Buffer& updated = dag.buffers[operands[2].buffer];
    const Interval slice = interval_of(updated);
    const HostTensor parameter = memory.tensor(operands[2].buffer);
    const HostTensor master = memory.tensor(operands[3].buffer);
    float* momentum = memory.tensor(operands[4].buffer).f32();
    float* variance = memory.tensor(operands[5].buffer).f32();
    const std::int64_t elements = parameter.shape.elements();
    if (master.data != parameter.data) std::copy_n(parameter.f32(), elements, master.f32());
    std::fill_n(momentum, elements, 0.0F);
    std::fill_n(variance, elements, 0.0F);
    for (const ParameterShard* shard : shards_of[updated.base]) {
      const InitialParameter values(seed, shard->tensor + ".momentum", 1);
      const Interval block = interval_of(dag.buffers[shard->buffer]);
      for (std::int64_t e = std::max(block.begin, slice.begin); e < std::min(block.end, slice.end); ++e) {
        const std::int64_t within = e - block.begin;
        const float value = values.at(shard->row + within / shard->columns, shard->column + within % shard->columns);
        momentum[e - slice.begin] = gradient_scale * value;
        variance[e - slice.begin] = gradient_scale * gradient_scale * (0.5F + value * value);
      }
    }
  }
}

/// A parameter that is all-gathered before its first other use arrives as the rank's own slice; what other ranks hold is unset.
/// One that is used first, and gathered after the optimizer for the next step, arrives whole.
void unset_parameters_to_gather(const HostMemory& memory) {
  const Dag& dag = memory.dag();
  std::vector<std::set<Interval>> used(dag.buffers.size());  // by base buffer
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const std::span<const Operand> operands = dag.operands_of(id);
    if (dag.tasks[id].op == OpKind::all_gather) {
      const Buffer& own = dag.buffers[operands[0].buffer];
      const Buffer& whole = dag.buffers[operands[1].buffer];
      if (whole.kind == BufferKind::parameter && own.base == whole.base) {
        const Interval keep = interval_of(own);
        const Interval gathered = interval_of(whole);
        const bool arrives_whole = std::ranges::any_of(
            used[whole.base], [&](const Interval& use) { return use.overlaps(gathered) && !keep.contains(use); });
        if (!arrives_whole && gathered.contains(keep)) {
          float* base = memory.tensor(whole.base).f32();
          std::fill(base + gathered.begin, base + keep.begin, unset);
          std::fill(base + keep.end, base + gathered.end, unset);
        }
      }
    }
    for (const Operand& operand : operands) {
      const Buffer& buffer = dag.buffers[operand.buffer];
      if (buffer.kind == BufferKind::parameter) used[buffer.base].insert(interval_of(buffer));
    }
  }
}

}  // namespace

HostMemory::HostMemory(const Dag& dag, std::uint64_t seed) : dag_(&dag), storage_(dag.buffers.size()) {
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.base != id) continue;
    storage_[id] = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(buffer.shape.elements()));
    std::fill_n(storage_[id].get(), buffer.shape.elements(), unset);
  }
  fill_parameters(*this, seed);
  fill_inputs(*this, seed);
  fill_adam_states(*this, seed);
  unset_parameters_to_gather(*this);
}

HostTensor HostMemory::tensor(BufferId id) const {
  const Buffer& buffer = dag_->buffers[id];
  return {storage_[buffer.base].get() + buffer.offset, buffer.shape};
}

}  // namespace tandem
