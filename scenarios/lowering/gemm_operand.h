#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// What a linear layer multiplies in. Everything outside of the layers' linear GEMMs stays in bf16 when training in fp8 or fp4,
/// but for the LM head's with `training.fp8_output_proj`.
enum class GemmMath {
  as_trained,
  of_output_proj
};

/// What an operand is, which says how it is cast.
enum class OperandRole {
  input,
  weight,
  gradient  ///< of the output
};

/// `x` as the operand of linear GEMMs: `x` itself, or with fp8 and fp4 its two casts. The product of a forward pass, y = x W^T,
/// reads both operands by rows; the gradient of the input reads W by columns, that of the weight both of its operands.
///
/// Cast when first needed and kept for as long as it is read: weights are cast once per step, as Transformer Engine caches them.
///
/// The recipe (`training.recipe`) says the scales, those of Transformer Engine (common/recipe/__init__.py): gradients are e5m2
/// where tensors have one scale, and else e4m3 as all others; in fp4 gradients are rounded at random, and what weights' gradients
/// are made of is transformed. `rows`: those of the tensors of equal width that lie below each other in `x`, as experts' do.
/// Weights that are kept in the narrow type (`training.param_gather`) are read by rows as they are.
GemmOperand gemm_operand(Context& context, BufferId x, OperandRole role, GemmMath math,
                         const std::vector<std::int32_t>& rows = {});
bool is_cast(const Context& context, GemmMath math);

/// `x` as an operand of attention: itself, or with `training.fp8_attention` in fp8, with one scale for all. Scores and
/// probabilities, which no kernel writes, are not rounded where the step is executed.
BufferId attention_operand(Context& context, BufferId x, OperandRole role);

/// The same for a linear layer's `whole` that comes in parts, of which `part` holds the elements from `offset` on: each is cast
/// to its place, once. `gemm_operand` gives the whole when all parts have come.
GemmOperand gemm_operand_part(Context& context, BufferId whole, OperandRole role, std::int64_t offset, BufferId part);

/// The casts of `x`, which the kernel that makes it writes on its way.
void cast_where_made(Context& context, BufferId x, OperandRole role, const std::vector<std::int32_t>& rows);

// Where the framework casts shards of the sequence before they are gathered (`Software::gathers_casts`), as Transformer Engine
// does (pytorch/module: layernorm_linear.py, linear.py, base.py, grad_output_preprocess):
//
//   one scale for the tensor   the shard is cast by rows; what is gathered is read by columns where the GPU can, and else
//                              transposed before the product that does
//   scales for blocks          the shard is cast by rows and by columns; each is gathered for the products that read it
//
// Likewise by rows alone where a norm casts its output itself (`Software::norm_casts`), gathered or not.

/// Whether `shard` is cast before it is gathered, or by the norm that gave it.
bool casts_first(const Context& context, BufferId shard, GemmMath math);
/// The shard's casts; `by_column` is `by_row` where one scale is the tensor's.
GemmOperand shard_operand(Context& context, BufferId shard, OperandRole role);
/// A buffer for all shards, of the type and scales of one.
BufferId gathered_like(Context& context, BufferId shard);
BufferId gather_cast(Context& context, BufferId shard, std::string_view name);
/// Notes what `whole`, gathered as it was cast with one scale, is read as.
void note_gathered(Context& context, BufferId whole);

enum class OperandUse {
  by_row,
  by_column,
  both
};

/// Gathers an operand under sequence parallelism: cast, or in bf16, to be cast when it is multiplied. Returns the whole, for
/// `gemm_operand`, of which `use` will be read.
BufferId gather_operand(Context& context, BufferId shard, OperandRole role, GemmMath math, OperandUse use, std::string_view name);

/// The operand by columns, transposed now where it is there by rows alone.
BufferId operand_by_column(Context& context, BufferId x, OperandRole role, GemmMath math);

/// Buffers for the casts of a tensor, or one for both (`Scenario::casts_once`), the cast into them, and how it is done.
GemmOperand casts_of(Context& context, const Shape& shape, OperandRole role);
void cast_into(Context& context, BufferId x, const GemmOperand& into, const CastAttributes& attributes);
Scaling scaling_of(Recipe recipe, OperandRole role);
CastAttributes cast_attributes(const Context& context, OperandRole role, std::vector<std::int32_t> rows = {});

}  // namespace tandem::scenarios
