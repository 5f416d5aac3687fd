#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/units.h"
#include "runtime/ops/attributes.h"

namespace tandem {

enum class OpKind : std::uint8_t {
  // kernels; the operand lists stand in the header of each operation's file; files of profiles hold these numbers: a new kernel
  // is the last one
  gemm,
  norm,
  norm_backward,
  split_heads,
  split_heads_backward,
  mla_queries,
  mla_queries_backward,
  mla_keys_values,
  mla_keys_values_backward,
  attention,
  attention_backward,
  attention_merge,
  join_sequence,
  split_sequence,
  pack_groups,
  unpack_groups,
  activation,
  activation_backward,
  add,
  cast,
  split_columns,
  join_columns,
  embedding,
  embedding_backward,
  cross_entropy_max,
  cross_entropy_sum,
  cross_entropy_target,
  cross_entropy_loss,
  cross_entropy_backward,
  fill,
  scale,
  square_sum,
  adam,
  route,
  route_backward,
  permute,
  permute_backward,
  combine,
  combine_backward,
  regroup,
  grouped_gemm,
  batched_gemm,
  softmax,
  softmax_backward,
  dropout,
  dropout_backward,
  dropout_add,
  dropout_add_backward,
  add_bias,
  bias_gradient,
  weighted_activation,
  weighted_activation_backward,
  top_k_select,
  sparse_sum,
  sign_compress,
  sign_sum,
  sign_expand,
  orthogonalize,
  attention_sink,
  attention_sink_backward,
  rotary,
  rotary_backward,
  causal_conv,
  causal_conv_backward,
  ssd_scan,
  ssd_scan_backward,
  group_norm,
  group_norm_backward,
  pack_parts,
  order_parts,
  delta_rule,
  delta_rule_backward,
  muon_momentum,
  muon_normalize,
  muon_polynomial,
  muon_update,
  count_choices,
  update_expert_bias,
  head_gemm,
  index_select,
  sparse_attention,
  sparse_attention_backward,
  index_target,
  index_loss_backward,
  softcap,
  softcap_backward,
  adafactor_sums,
  adafactor_factors,
  adafactor_variance,
  adafactor_norms,
  adafactor_update,
  count_by_sequence,
  lightning_attention,
  lightning_attention_backward,
  split_norm_squares,
  split_norm,
  split_norm_products,
  split_norm_backward,
  weighted_sum,
  sigmoid_gate,
  sigmoid_gate_backward,
  unit_norm,
  unit_norm_backward,
  compress_keys,
  compress_keys_backward,
  window_select,
  hyper_expand,
  hyper_expand_backward,
  hyper_gates,
  hyper_gates_backward,
  hyper_gather,
  hyper_gather_backward,
  hyper_merge,
  hyper_merge_backward,
  pool_rows,
  pool_rows_backward,
  // communication
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  barrier,
  send,
  receive,
  copy,  ///< between a GPU and its host
};
inline constexpr std::size_t op_kind_count = static_cast<std::size_t>(OpKind::copy) + 1;

constexpr bool is_communication(OpKind kind) { return kind >= OpKind::all_reduce; }

/// The class of a kernel, which decides the efficiency that applies to it.
enum class OpClass : std::uint8_t {
  gemm,
  attention_forward,
  attention_backward,
  scan,  ///< of a state over the sequence, in chunks, or of keys by an indexer: kernels of products and of memory by turns
  memory,
  communication
};

/// The part of an operand that a cost function sees.
struct OperandType {
  Shape shape;
  DType dtype = DType::f32;
  Scaling scaling = Scaling::none;
  Bytes bytes() const { return size_of(dtype, shape.elements()) + scale_bytes(scaling, shape.elements()); }
};

/// The work of one kernel: the FLOPs of its matrix products, done in `math` (memory-bound kernels count none, the convention of
/// MFU and HFU), and the bytes that must cross the device's memory at least once.
struct OpCost {
  Flops flops = 0;
  DType math = DType::f32;
  Bytes bytes = 0;
};

/// A host operand: always fp32 (a mask, too), or int32 for token ids, whatever the DAG's dtype says (which sets sizes and
/// speeds).
struct HostTensor {
  void* data = nullptr;
  Shape shape;
  float* f32() const { return static_cast<float*>(data); }
  std::int32_t* i32() const { return static_cast<std::int32_t*>(data); }
};

/// The costs of the kernels that an operation of class `scan` launches, one after the other; its cost is their sum.
using PartsFunction = std::vector<OpCost>(std::span<const OperandType>, const OpAttributes&);
using CostFunction = OpCost(std::span<const OperandType>, const OpAttributes&);
using HostKernel = void(std::span<const HostTensor>, const OpAttributes&);

/// One row of the table of operations. Operands come in the order written in the operation's header: first those read, then
/// those written; an operand that is updated in place stands among those written.
struct Operation {
  std::string_view name;
  OpClass op_class = OpClass::memory;
  CostFunction* cost = nullptr;    ///< null for communication
  HostKernel* host = nullptr;      ///< null for communication
  int kernels = 1;                 ///< that it launches
  PartsFunction* parts = nullptr;  ///< null where the operation is one kernel
};

const Operation& operation(OpKind kind);

}  // namespace tandem
