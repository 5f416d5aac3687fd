#pragma once

#include <optional>

#include "scenarios/lowering/gemm_operand.h"

namespace tandem::scenarios {

// Megatron's pair of linear layers. The weight is [outputs, inputs]; y = x W^T.
//
//             forward                      backward
//   column    x: shard -> all-gather,      all-gather x again for the weight, dx = dy W -> reduce-scatter (sp) or all-reduce
//             y = x W^T, outputs sharded   beside the weight gradient dW += dy^T x
//   row       inputs sharded, y = x W^T    dy -> all-gather (sp); dx = dy W; dW += dy^T x
//             -> reduce-scatter/all-reduce
//
// A bias b is added to y when it is whole: db += the sum of dy's rows. That of a row layer is on every rank, and under sp sees
// the rank's own rows alone.
//
// Where the schedule splits the backward, the column's second all-gather of x goes with the weight gradient, so that shards are
// all that is kept of x in between; the row's gathered dy, which dx needs anyway, is kept until then. With
// training.overlap.tp, tp_overlap.h cuts the products that would wait for their communication.

/// Outputs sharded over tp. `x` is the sequence shard under sp.
BufferId column_parallel(Context& context, Tape& tape, ParameterId weight, BufferId x, std::string_view name,
                         GemmMath math = GemmMath::as_trained);

/// Several weights for one `x`, which is gathered once, as the gradient of x is reduced once, each with its bias where there are
/// any. Returns their outputs, one after the other in one buffer.
BufferId column_parallel(Context& context, Tape& tape, const std::vector<ParameterId>& weights, BufferId x, std::string_view name,
                         GemmMath math = GemmMath::as_trained, const std::vector<ParameterId>& biases = {});

/// Those outputs apart: views of `y`, or of its gradient.
std::vector<BufferId> outputs_apart(Context& context, const std::vector<ParameterId>& weights, BufferId y);

/// Inputs sharded over tp. Returns the sequence shard under sp.
BufferId row_parallel(Context& context, Tape& tape, ParameterId weight, BufferId x, std::string_view name,
                      std::optional<ParameterId> bias = {});

/// The product alone, of the rows and the part of the weight that are here: y = x W^T. Backward, dx = dy W and dW += dy^T x.
BufferId multiply(Context& context, ParameterId weight, BufferId x, std::string_view name);
void multiply_into(Context& context, ParameterId weight, BufferId x, BufferId y, std::string_view name);
void multiply_backward(Context& context, ParameterId weight, BufferId x, BufferId dy, BufferId dx, std::string_view name);

/// The weight's gradient alone, where x gets none: dW += dy^T x.
void add_weight_gradient(Context& context, ParameterId weight, BufferId x, BufferId dy, std::string_view name);

/// A bias of as many elements as the pieces have rows, for outputs that are on every tensor-parallel rank.
ParameterSpec replicated_bias(const Context& context, const std::string& tensor, std::int64_t outputs);

/// A weight that every tensor-parallel rank holds whole.
ParameterSpec replicated_matrix(const Context& context, std::vector<ParameterPiece> pieces);

/// A replicated weight, applied to the rank's own rows; under sp its gradient lacks the other rows.
BufferId replicated_linear(Context& context, Tape& tape, ParameterId weight, BufferId x, std::string_view name);

}  // namespace tandem::scenarios
