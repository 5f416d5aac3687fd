#include "scenarios/lowering/experts.h"

#include <numeric>

#include "scenarios/lowering/exchange.h"
#include "scenarios/lowering/gemm_operand.h"

namespace tandem::scenarios {
namespace {

/// Rows of each expert of this rank, from all sources.
std::vector<std::int32_t> rows_by_expert(const RegroupAttributes& blocks) {
  std::vector<std::int32_t> rows = blocks.rows;
  for (std::int32_t& r : rows) r *= blocks.blocks;
  return rows;
}

/// What arrives here: a block from each group of each source.
RegroupAttributes arrivals(const Context& context) {
  const LocalSizes& n = context.sizes;
  const RoutingAttributes& routing = context.routing;
  const auto first = routing.slots.begin() + n.ep_rank * n.experts;
  return {.blocks = static_cast<std::int32_t>(n.ep * n.etp) * routing.groups,
          .block = routing.block,
          .rows = {first, first + n.experts}};
}

BufferId gather_shards(Context& context, BufferId rows, std::string_view name) {
  if (context.communicator(Slot::expert_tensor) == no_id) return rows;
  const Shape shape = context.shape_of(rows);
  const BufferId all = context.gathered(Shape(shape[0] * context.sizes.etp, shape[1]), context.type_of(rows));
  context.collective(OpKind::all_gather, Slot::expert_tensor, Stream::tp, name, rows, all);
  return all;
}

BufferId reduce_shards(Context& context, BufferId rows, std::string_view name) {
  if (context.communicator(Slot::expert_tensor) == no_id) return rows;
  const Shape shape = context.shape_of(rows);
  const BufferId sum = context.gathered(Shape(shape[0] / context.sizes.etp, shape[1]), context.type_of(rows));
  context.collective(OpKind::reduce_scatter, Slot::expert_tensor, Stream::tp, name, rows, sum);
  return sum;
}

BufferId regroup(Context& context, RegroupAttributes blocks, bool inverse, BufferId x, std::string_view name) {
  const std::int64_t filled = std::accumulate(blocks.rows.begin(), blocks.rows.end(), std::int64_t{0});
  if (blocks.rows.size() == 1 && filled == blocks.block) return x;  // by source is by expert already
  blocks.inverse = inverse;
  const Shape shape(blocks.blocks * (inverse ? blocks.block : filled), context.shape_of(x)[1]);
  const BufferId y = context.activation(shape, context.type_of(x));
  context.kernel(OpKind::regroup, blocks, name, {x}, {y});
  return y;
}

Rows to_experts(Context& context, const RegroupAttributes& blocks, const Rows& sent, OperandRole role, const std::string& name) {
  Rows rows = exchange(context, sent, Way::dispatch, name);
  const auto sort = [&](BufferId x, const std::string& named) {
    return regroup(context, blocks, false, gather_shards(context, x, named), named);
  };
  rows.rows = sort(rows.rows, name);
  if (rows.gates != no_id) rows.gates = sort(rows.gates, gates_of(name));
  arrive_in_fp8(context, rows.rows, role, rows_by_expert(blocks));
  return rows;
}

Rows to_sources(Context& context, const RegroupAttributes& blocks, Rows rows, const std::string& name) {
  const auto unsort = [&](BufferId x, const std::string& named) {
    return reduce_shards(context, regroup(context, blocks, true, x, named), named);
  };
  if (rows.gates != no_id) rows.gates = unsort(rows.gates, gates_of(name));
  rows.rows = unsort(rows.rows, name);
  return exchange(context, rows, Way::combine, name);
}

/// Of all experts here.
GemmOperand operand(Context& context, BufferId x, OperandRole role, const std::vector<std::int32_t>& rows) {
  return gemm_operand(context, x, role, GemmMath::as_trained, rows);
}
GemmOperand weights_of(Context& context, ParameterId weight) {
  const BufferId w = context.parameters().weight(weight);
  const auto experts = static_cast<std::size_t>(context.sizes.experts);
  const auto rows = static_cast<std::int32_t>(context.shape_of(w)[0] / context.sizes.experts);
  return operand(context, w, OperandRole::weight, std::vector<std::int32_t>(experts, rows));
}

/// Whether the gates weight what a linear layer of the experts makes, and so their biases, which no product then adds.
enum class Returns : std::uint8_t {
  no,
  to_gates
};

/// One linear layer of every expert, with their biases where they have any.
BufferId grouped_linear(Context& context, Tape& tape, ParameterId weight, std::optional<ParameterId> bias,
                        const std::vector<std::int32_t>& rows, BufferId x, Returns returns, const std::string& name) {
  const BufferId w = context.parameters().weight(weight);
  const std::int64_t outputs = context.shape_of(w)[0] / context.sizes.experts;
  const BufferId y = context.activation(Shape(context.shape_of(x)[0], outputs));
  const BufferId in = operand(context, x, OperandRole::input, rows).by_row, weights = weights_of(context, weight).by_row;
  context.kernel(OpKind::grouped_gemm, GroupedGemmAttributes{.transpose_b = true, .rows = rows}, name, {in, weights}, {y});
  const GroupedGemmAttributes by_expert{.rows = rows, .fused = context.scenario.software.fuses_bias && returns == Returns::no};
  if (bias) context.kernel(OpKind::add_bias, by_expert, name, {context.parameters().weight(*bias)}, {}, {y});
  tape.push([=, rows = rows, by_expert = by_expert, name = name](Context& c, BufferId dy) {
    const BufferId dx = c.activation(c.shape_of(x));
    const BufferId out = operand(c, dy, OperandRole::gradient, rows).by_row, by_column = weights_of(c, weight).by_column;
    c.kernel(OpKind::grouped_gemm, GroupedGemmAttributes{.rows = rows}, name, {out, by_column}, {dx});
    const BufferId kept = c.kept(x);
    c.weight_gradient(weight, [=](Context& later, BufferId gradient) {
      const GroupedGemmAttributes product{.transpose_a = true, .accumulate = true, .rows = rows};
      const BufferId a = operand(later, dy, OperandRole::gradient, rows).by_column,
                     b = operand(later, kept, OperandRole::input, rows).by_column;
      later.kernel(OpKind::grouped_gemm, product, name, {a, b}, {}, {gradient});
    });
    if (bias)
      c.weight_gradient(*bias, [=](Context& later, BufferId gradient) {
        later.kernel(OpKind::bias_gradient, by_expert, name, {dy}, {}, {gradient});
      });
    return dx;
  });
  return y;
}

/// Whether the products apply the activation and cast what comes of it, as Transformer Engine's ForwardGroupedMLP and
/// BackwardGroupedMLP do on Blackwell (pytorch/ops/fused), by kernels whose tiles have 256 columns: gated experts without biases
/// that cast, where nothing of them is recomputed (validate_grouped_mlp_dims).
bool fuses_activation(const Context& context) {
  constexpr std::int64_t tile = 256;
  const ModelSpec& model = context.scenario.model;
  const bool has_kernel = model.gated && (model.activation == MlpFunction::silu || model.activation == MlpFunction::quick_gelu);
  const bool fills_tiles = model.moe.row_width(context.sizes.hidden) % tile == 0 && context.sizes.expert_ffn % tile == 0;
  const bool again = context.recompute().activation || context.scenario.training.fp8_activation_input;
  return context.scenario.fuses_experts() && is_cast(context, GemmMath::as_trained) && has_kernel && fills_tiles &&
         !model.moe.linear_bias && !again;
}

}  // namespace

MlpParameters declare_experts(const Context& context, ChunkParameters& parameters, const std::string& layer) {
  const LocalSizes& n = context.sizes;
  const std::int64_t h = context.scenario.model.moe.row_width(n.hidden), f = n.expert_ffn;
  ParameterSpec up, down;
  up.kind = down.kind = ParameterKind::expert;
  for (std::int64_t e = n.ep_rank * n.experts; e < (n.ep_rank + 1) * n.experts; ++e) {
    const std::string expert = layer + ".expert" + std::to_string(e);
    const auto rows_of = [&](const char* name) { return ParameterPiece{expert + name, f * n.etp, h, f * n.etp_rank, 0, f, h}; };
    if (context.scenario.model.gated) up.pieces.push_back(rows_of(".gate"));
    up.pieces.push_back(rows_of(".up"));
    down.pieces.push_back({expert + ".down", h, f * n.etp, 0, f * n.etp_rank, h, f});
  }
  const ParameterId up_id = parameters.declare(std::move(up));
  MlpParameters weights{up_id, parameters.declare(std::move(down)), f};
  if (!context.scenario.model.moe.linear_bias) return weights;
  ParameterSpec up_bias, down_bias;
  up_bias.kind = down_bias.kind = ParameterKind::expert;
  for (std::int64_t e = n.ep_rank * n.experts; e < (n.ep_rank + 1) * n.experts; ++e) {
    const std::string expert = layer + ".expert" + std::to_string(e);
    if (context.scenario.model.gated) up_bias.pieces.push_back({expert + ".gate.bias", f, 1, 0, 0, f, 1});
    up_bias.pieces.push_back({expert + ".up.bias", f, 1, 0, 0, f, 1});
    down_bias.pieces.push_back({expert + ".down.bias", h, 1, 0, 0, h, 1});
  }
  weights.up_bias = {parameters.declare(std::move(up_bias))};
  weights.down_bias = parameters.declare(std::move(down_bias));
  return weights;
}

BufferId experts(Context& context, Tape& tape, const MlpParameters& weights, const Rows& sent,
                 const std::shared_ptr<BufferId>& gate_gradients) {
  const RegroupAttributes blocks = arrivals(context);
  const std::vector<std::int32_t> of_expert = rows_by_expert(blocks);
  const Rows sorted = to_experts(context, blocks, sent, OperandRole::input, "dispatch");
  const bool weighted = sorted.gates != no_id;
  tape.push([=](Context& c, BufferId dy) {
    const Rows back = to_sources(c, blocks, {dy, weighted ? *gate_gradients : no_id}, "dispatch");
    if (weighted) *gate_gradients = back.gates;
    return back.rows;
  });
  const std::optional<ParameterId> up_bias = weights.up_bias.empty() ? std::optional<ParameterId>() : weights.up_bias.front();
  const BufferId inner = grouped_linear(context, tape, weights.up, up_bias, of_expert, sorted.rows, Returns::no, "experts up");
  const Activates how = fuses_activation(context) ? Activates::fused : Activates::alone;
  const Module middle = [=](Context& c, Tape& t, BufferId in) {
    if (how == Activates::fused) {
      t.push([=](Context& back, BufferId din) {
        cast_where_made(back, din, OperandRole::gradient, of_expert);
        return din;
      });
    }
    const BufferId out = weighted ? activate_weighted(c, t, in, weights.width, sorted.gates, gate_gradients, how)
                                  : activate(c, t, in, weights.width, how);
    if (how == Activates::fused) cast_where_made(c, out, OperandRole::input, of_expert);
    return out;
  };
  const Module down = [=](Context& c, Tape& t, BufferId in) {
    return grouped_linear(c, t, weights.down, weights.down_bias, of_expert, in, Returns::to_gates, "experts down");
  };
  const BufferId out = down_of_activation(context, tape, middle, down, inner);
  tape.push([=](Context& c, BufferId dy) { return to_experts(c, blocks, {dy}, OperandRole::gradient, "combine").rows; });
  return to_sources(context, blocks, {out}, "combine").rows;
}

}  // namespace tandem::scenarios
