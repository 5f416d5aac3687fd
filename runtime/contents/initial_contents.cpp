#include "runtime/contents/initial_contents.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "runtime/analysis/optimizer_updates.h"
#include "runtime/analysis/weights_from_host.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

constexpr float unset = std::numeric_limits<float>::quiet_NaN();

/// Elements [begin, end) of a base buffer.
struct Interval {
  std::int64_t begin, end;
  auto operator<=>(const Interval&) const = default;
  bool overlaps(const Interval& other) const { return begin < other.end && other.begin < end; }
  bool contains(const Interval& other) const { return begin <= other.begin && other.end <= end; }
};

Interval interval_of(const Buffer& buffer) { return {buffer.offset, buffer.offset + buffer.shape.elements()}; }
Stretch stretch_of(const Buffer& buffer) { return {buffer.base, buffer.offset, buffer.shape.elements()}; }

std::vector<std::vector<const ParameterShard*>> shards_by_base(const Dag& dag) {
  std::vector<std::vector<const ParameterShard*>> shards(dag.buffers.size());
  for (const ParameterShard& shard : dag.shards) shards[dag.buffers[shard.buffer].base].push_back(&shard);
  return shards;
}

void write_parameters(const Dag& dag, std::uint64_t seed, ContentsWriter& writer) {
  std::set<BufferId> bases;
  for (const ParameterShard& shard : dag.shards) bases.insert(dag.buffers[shard.buffer].base);
  for (const BufferId base : bases) writer.write(stretch_of(dag.buffers[base]), 0);  // the padding between and after the shards
  for (const ParameterShard& shard : dag.shards) {
    const Stretch out = stretch_of(dag.buffers[shard.buffer]);
    if (out.count != shard.rows * shard.columns)
      throw std::logic_error("the buffer of a shard of '" + shard.tensor + "' has not the shard's size");
    writer.write(out, ShardValues{.values = InitialParameter(seed, shard.tensor, shard.tensor_columns),
                                  .row = shard.row,
                                  .column = shard.column,
                                  .columns = shard.columns});
  }
}

void write_inputs(const Dag& dag, std::uint64_t seed, ContentsWriter& writer) {
  for (const InputShard& input : dag.inputs) {
    const Buffer& buffer = dag.buffers[input.buffer];
    if (input.content == InputShard::Content::zeros) {
      writer.write(stretch_of(buffer), 0);
      continue;
    }
    if (input.content == InputShard::Content::noise) {
      const InitialParameter noise(seed, "noise." + std::to_string(input.first_sequence), 1);
      writer.write(stretch_of(buffer), ShardValues{.values = noise, .columns = columns_of(buffer.shape)});
      continue;
    }
    if (buffer.dtype != DType::i32) throw std::logic_error("an input buffer does not hold int32");
    writer.write(stretch_of(buffer), InputValues{.content = input.content,
                                                 .first_start = input.positions.start[0],
                                                 .first_run = input.positions.length[0],
                                                 .second_start = input.positions.start[1],
                                                 .sequences = buffer.shape[1],
                                                 .first_sequence = input.first_sequence,
                                                 .ahead = input.ahead,
                                                 .vocabulary = input.vocabulary,
                                                 .key = token_key(seed)});
  }
}

/// Master copies equal the parameters. The moments are those of a run under way, not zero: Adam's first step from zero divides
/// each gradient by itself, so that its sign alone counts, and rounding would decide the sign of the smallest.
void write_optimizer_states(const Dag& dag, std::uint64_t seed, ContentsWriter& writer) {
  const std::map<BufferId, BufferId> weight_of = copied_from_host(dag);
  const std::vector<std::vector<const ParameterShard*>> shards_of = shards_by_base(dag);
  for (const OptimizerUpdate& update : optimizer_updates(dag)) {
    if (update.follows_counts) continue;
    const auto copied = weight_of.find(update.weight);
    const Buffer& weight = dag.buffers[copied == weight_of.end() ? update.weight : copied->second];
    const Stretch parameter = stretch_of(weight);
    if (update.weight != update.master) writer.copy(parameter, stretch_of(dag.buffers[update.master]));
    for (const BufferId state : {update.momentum, update.variance})
      if (state != no_id) writer.write(stretch_of(dag.buffers[state]), 0);
    if (update.factors != no_id) writer.write(stretch_of(dag.buffers[update.factors]), initial_factor);
    const Interval slice = interval_of(weight);
    for (const ParameterShard* shard : shards_of[parameter.base]) {
      const Interval block = interval_of(dag.buffers[shard->buffer]);
      const std::int64_t begin = std::max(block.begin, slice.begin), end = std::min(block.end, slice.end);
      if (begin >= end) continue;
      ShardValues values{.values = InitialParameter(seed, shard->tensor + ".momentum", 1),
                         .row = shard->row,
                         .column = shard->column,
                         .columns = shard->columns,
                         .first = begin - block.begin,
                         .linear = gradient_scale};
      const std::int64_t offset = begin - slice.begin;
      if (update.momentum != no_id) {
        const Stretch momentum = stretch_of(dag.buffers[update.momentum]);
        writer.write(Stretch{momentum.base, momentum.begin + offset, end - begin}, values);
      }
      if (update.variance == no_id) continue;
      const Stretch variance = stretch_of(dag.buffers[update.variance]);
      values.constant = 0.5F * gradient_scale * gradient_scale;
      values.linear = 0;
      values.square = gradient_scale * gradient_scale;
      writer.write(Stretch{variance.base, variance.begin + offset, end - begin}, values);
    }
  }
}

/// A parameter that is all-gathered before its first other use arrives as the rank's own slice; what other ranks hold is unset.
/// One that is used first, and gathered after the optimizer for the next step, arrives whole.
void unset_parameters_to_gather(const Dag& dag, ContentsWriter& writer) {
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
          writer.write(Stretch{whole.base, gathered.begin, keep.begin - gathered.begin}, unset);
          writer.write(Stretch{whole.base, keep.end, gathered.end - keep.end}, unset);
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

void write_initial_contents(const Dag& dag, std::uint64_t seed, ContentsWriter& writer) {
  write_parameters(dag, seed, writer);
  write_inputs(dag, seed, writer);
  write_optimizer_states(dag, seed, writer);
  unset_parameters_to_gather(dag, writer);
}

}  // namespace tandem
