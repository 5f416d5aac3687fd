#include "sim/attention_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "runtime/ops/attention_mask.h"
#include "runtime/ops/attention_sizes.h"
#include "runtime/ops/documents.h"
#include "runtime/ops/sparse_attention.h"
#include "sim/gemm_cost.h"

namespace tandem::sim {
namespace {

constexpr std::int64_t tile_rows = 128, tile_columns = 64;

constexpr std::int64_t rounded_up(std::int64_t size, std::int64_t part) { return (size + part - 1) / part * part; }

const AttentionAttributes& attributes_of(const TimedKernel& kernel) { return std::get<AttentionAttributes>(kernel.attributes); }

AttentionSizes sizes_of(const TimedKernel& kernel) {
  const auto& o = kernel.operands;
  return {o.at(0).shape, o.at(1).shape, o.at(2).shape, o.at(3).shape, o.at(4).shape, attributes_of(kernel)};
}

/// What the kernel is, of each document; else of each sequence, which are all alike.
struct Blocks {
  std::vector<DocumentBlock> parts;
  std::int64_t heads = 0;  ///< that each of them has
};

Blocks blocks_of(const TimedKernel& kernel, const AttentionSizes& sizes) {
  const AttentionAttributes& attributes = attributes_of(kernel);
  if (!attributes.documents.starts.empty()) return {document_blocks(attributes, sizes.micro_batch), sizes.heads};
  const std::int64_t pairs = seen_pairs(attributes, sizes.queries, sizes.keys);
  return {{{sizes.queries, sizes.keys, pairs}}, sizes.micro_batch * sizes.heads};
}

/// Keys that a query sees at most, if not all before it; else 0.
std::int64_t longest_reach(const TimedKernel& kernel) {
  const AttentionAttributes& attributes = attributes_of(kernel);
  return attributes.window > 0 ? attributes.window : attributes.chunk;
}

/// Returns the seconds for a pair of head dimension `dim`, times the peak over the FLOPs of a pair of dimension 1.
double relative_time_of_pair(const AttentionPass& pass, double dim) {
  const auto& dims = attention_head_dims;
  const auto stated = [&](std::size_t i) { return dims[i] / pass.rate[i]; };
  if (dim <= dims.front()) return dim / pass.rate.front();
  for (std::size_t i = 1; i < dims.size(); ++i) {
    const double part = (dim - dims[i - 1]) / (dims[i] - dims[i - 1]);
    if (part <= 1) return stated(i - 1) + (stated(i) - stated(i - 1)) * part;
  }
  return dim / pass.rate.back();
}

Seconds time_of_pair(const Device& device, DType type, const AttentionPass& pass, double flops, double dim) {
  return flops / dim * relative_time_of_pair(pass, dim) / device.peak[static_cast<std::size_t>(type)];
}

Seconds time_in_fp8(const Device& device, const AttentionPass& pass, double flops, double dim) {
  const auto products = [&](DType type) {
    const auto index = static_cast<std::size_t>(type);
    return flops / (device.efficiency.gemm[index].rate * device.peak[index]);
  };
  const Seconds rest = time_of_pair(device, DType::bf16, pass, flops, dim) - products(DType::bf16);
  return std::max(0.0, rest) + products(DType::f8);
}

/// The tiles of one head in all blocks.
struct Tiles {
  std::int64_t count = 0;
  std::int64_t computed = 0;  ///< pairs
  std::int64_t seen = 0;      ///< of these
  std::int64_t widest = 0;    ///< columns of the longest tile
  bool even = true;           ///< every tile is as long as the others
};

Tiles tiles_of(const std::vector<DocumentBlock>& blocks, bool backward, std::int64_t reach) {
  Tiles tiles;
  for (const DocumentBlock& block : blocks) {
    const std::int64_t rows = backward ? block.keys : block.queries, columns = backward ? block.queries : block.keys;
    const std::int64_t all = rows * columns, count = rounded_up(rows, tile_rows) / tile_rows;
    const std::int64_t full = rounded_up(rows, tile_rows) * rounded_up(columns, tile_columns);
    // A tile computes the corners beyond what its rows see: after it, and where they stop looking back, before it.
    const std::int64_t corners = reach > 0 ? 2 : 1, beyond = corners * count * tile_rows * (tile_rows - 1) / 2;
    tiles.count += count;
    tiles.computed += block.pairs == all ? full : std::min(full, block.pairs + beyond);
    tiles.seen += block.pairs;
    tiles.widest = std::max(tiles.widest, reach > 0 ? std::min(columns, reach + tile_rows) : columns);
    tiles.even = tiles.even && block.pairs == all && block == blocks.front();
  }
  return tiles;
}

Seconds fused_time(const Device& device, const AttentionPass& pass, const TimedKernel& kernel, double clock) {
  const AttentionSizes sizes = sizes_of(kernel);
  const OpCost cost = cost_of(kernel);
  const auto [blocks, heads] = blocks_of(kernel, sizes);
  const Tiles of_head = tiles_of(blocks, kernel.op == OpKind::attention_backward, longest_reach(kernel));
  if (of_head.seen == 0 || heads == 0) return device.efficiency.launch;

  const double multiprocessors = device.multiprocessors, tiles = static_cast<double>(of_head.count * heads);
  const double dim = static_cast<double>(sizes.head_dim + sizes.value_dim) / 2;
  const double flops_of_pair = cost.flops / static_cast<double>(of_head.seen * heads);
  const double visible = of_head.even ? 1 : pass.causal;
  const Seconds pair = cost.math == DType::f8 ? time_in_fp8(device, pass, flops_of_pair, dim) / visible
                                              : time_of_pair(device, cost.math, pass, flops_of_pair, dim) / visible;
  const Seconds fixed = pass.tile * dim / 128;
  const Seconds mean =
      multiprocessors * pair * static_cast<double>(of_head.computed) / static_cast<double>(of_head.count) + fixed;
  const Seconds longest =
      multiprocessors * pair * static_cast<double>(tile_rows * rounded_up(of_head.widest, tile_columns)) + fixed;
  const Seconds computing =
      of_head.even ? std::ceil(tiles / multiprocessors) * mean : std::max(longest, tiles / multiprocessors * mean + mean / 2);
  const Seconds moving = static_cast<double>(cost.bytes) / (device.efficiency.memory * device.memory_bandwidth);
  return device.efficiency.launch + std::max(computing / clock, moving);
}

/// A tile is a token: its heads are the rows of the products, in warp groups of 64 rows each, the keys that it chose the columns.
Seconds sparse_time(const Device& device, const AttentionPass& pass, const TimedKernel& kernel, double clock) {
  constexpr std::int64_t group_rows = 64;
  const auto& attributes = std::get<SparseAttentionAttributes>(kernel.attributes);
  const Shape &q = kernel.operands.at(0).shape, &chosen = kernel.operands.at(2).shape, &out = kernel.operands.at(3).shape;
  const OpCost cost = cost_of(kernel);
  const std::int64_t tokens = q[0] * q[1], heads = q[2], pairs = q[1] * chosen_pairs(attributes, chosen[2]);
  if (pairs == 0 || heads == 0) return device.efficiency.launch;
  const double multiprocessors = device.multiprocessors, tiles = static_cast<double>(tokens);
  const double dim = static_cast<double>(q[3] + out[3]) / 2;
  const Seconds pair = time_of_pair(device, cost.math, pass, cost.flops / static_cast<double>(pairs * heads), dim);
  const double rows = static_cast<double>(rounded_up(heads, group_rows));
  const Seconds mean = multiprocessors * pair * rows * static_cast<double>(pairs) / tiles + pass.tile * dim / 128;
  const Seconds computing = tiles / multiprocessors * mean + mean / 2;
  const Seconds moving = static_cast<double>(cost.bytes) / (device.efficiency.memory * device.memory_bandwidth);
  return device.efficiency.launch + std::max(computing / clock, moving);
}

/// Times the kernels of unfused attention, which run one after the other.
class Unfused {
 public:
  Unfused(const Device& device, const TimedKernel& kernel)
      : device_(device), sizes_(sizes_of(kernel)), type_(kernel.operands.front().dtype) {
    const std::int64_t heads = sizes_.micro_batch * sizes_.heads;
    all_ = static_cast<double>(heads * sizes_.queries * sizes_.keys);
    seen_ = static_cast<double>(sizes_.heads *
                                seen_pairs_of_batch(attributes_of(kernel), sizes_.queries, sizes_.keys, sizes_.micro_batch));
  }

  Seconds forward() const {
    const auto [q, t, d, e] = dims();
    return product({q, t, d}) + moving(seen_ + all_) + product({q, e, t});
  }
  Seconds backward() const {
    const auto [q, t, d, e] = dims();
    return product({t, e, q}) + product({q, t, e}) + moving(3 * all_) + product({q, d, t}) + product({t, d, q});
  }

 private:
  const Device& device_;
  AttentionSizes sizes_;
  DType type_;
  double all_ = 0, seen_ = 0;

  std::array<std::int64_t, 4> dims() const { return {sizes_.queries, sizes_.keys, sizes_.head_dim, sizes_.value_dim}; }
  Seconds product(const GemmSize& size) const {
    const GemmBatch batch{size, sizes_.micro_batch * sizes_.heads};
    return gemm_time(device_, {&batch, 1}, {type_, type_});
  }
  Seconds moving(double elements) const {
    const double bytes = elements * static_cast<double>(size_of(type_));
    return device_.efficiency.launch +
           bytes / (device_.efficiency.unfused * device_.efficiency.memory * device_.memory_bandwidth);
  }
};

const AttentionPass& pass_of(const Device& device, bool backward) {
  const auto& efficiency = device.efficiency.attention[static_cast<std::size_t>(device.efficiency.attention_kernel)];
  return backward ? efficiency.backward : efficiency.forward;
}

}  // namespace

bool states_attention(const Device& device, DType type) {
  if (device.efficiency.attention_kernel == AttentionKernel::unfused) return is_tiled(device, type);
  return device.multiprocessors > 0 && device.peak[static_cast<std::size_t>(type)] > 0 && pass_of(device, false).rate[0] > 0;
}

bool works_on_scores(OpKind op) {
  return op == OpKind::softmax || op == OpKind::softmax_backward || op == OpKind::dropout || op == OpKind::dropout_backward;
}

Seconds attention_time(const Device& device, const TimedKernel& kernel, Clock at) {
  if (!states_attention(device, kernel.operands.at(0).dtype))
    throw std::logic_error(device.name + " does not state how fast its attention is");
  const bool backward = operation(kernel.op).op_class == OpClass::attention_backward;
  const double clock = at == Clock::sustained ? device.efficiency.attention_sustained : 1;
  if (std::holds_alternative<SparseAttentionAttributes>(kernel.attributes))
    return sparse_time(device, pass_of(device, backward), kernel, clock);
  if (device.efficiency.attention_kernel == AttentionKernel::unfused) {
    const Unfused unfused(device, kernel);
    return backward ? unfused.backward() : unfused.forward();
  }
  return fused_time(device, pass_of(device, backward), kernel, clock);
}

}  // namespace tandem::sim
