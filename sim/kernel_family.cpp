#include "sim/kernel_family.h"

#include <tuple>

#include "runtime/ops/attention_mask.h"
#include "runtime/ops/batched_gemm.h"
#include "runtime/ops/head_gemm.h"
#include "runtime/ops/operands.h"
#include "runtime/ops/sparse_attention.h"

namespace tandem::sim {
namespace {

// `deciding` keeps the attributes that decide how long a kernel takes, and resets all others to their defaults ...
OpAttributes deciding(const OpAttributes& any) { return any; }
OpAttributes deciding(const NormAttributes& a) { return NormAttributes{.kind = a.kind}; }
OpAttributes deciding(const SplitHeadsAttributes& a) {
  return SplitHeadsAttributes{
      .heads = a.heads, .kv_heads = a.kv_heads, .rotate = a.rotate, .positions = {}, .rotated = a.rotated};
}
OpAttributes deciding(const MlaHeadsAttributes& a) { return MlaHeadsAttributes{.rope_dim = a.rope_dim, .positions = {}}; }
OpAttributes deciding(AttentionAttributes a) {
  a.scale = 1;
  if (a.documents.starts.empty()) a.queries = a.keys = {};
  a.softcap = a.softcap > 0 ? 1.0F : 0.0F;
  return a;
}
OpAttributes deciding(const EmbeddingAttributes&) { return EmbeddingAttributes{}; }
OpAttributes deciding(const CrossEntropyAttributes&) { return CrossEntropyAttributes{}; }
OpAttributes deciding(const AdamAttributes&) { return AdamAttributes{}; }
OpAttributes deciding(const MuonAttributes&) { return MuonAttributes{}; }
OpAttributes deciding(const AdafactorAttributes& a) { return AdafactorAttributes{.factored = a.factored}; }
OpAttributes deciding(const ScaleAttributes&) { return ScaleAttributes{}; }
OpAttributes deciding(BatchedGemmAttributes a) {
  a.factor = 1;
  return a;
}
OpAttributes deciding(const DropoutAttributes&) { return DropoutAttributes{}; }
OpAttributes deciding(const SignAttributes&) { return SignAttributes{}; }
OpAttributes deciding(const CausalConvAttributes&) { return CausalConvAttributes{}; }
OpAttributes deciding(GroupNormAttributes a) {
  a.gate_column = 0;
  return a;
}
OpAttributes deciding(DeltaRuleAttributes a) {
  a.first_head = 0;
  a.documents = {};
  return a;
}
OpAttributes deciding(LightningAttributes a) {
  a.heads = a.first_head = 0;
  a.decay = 1;
  return a;
}
OpAttributes deciding(const SplitNormAttributes&) { return SplitNormAttributes{}; }
OpAttributes deciding(const WeightedSumAttributes&) { return WeightedSumAttributes{}; }
OpAttributes deciding(SsdAttributes a) {
  a.first_head = 0;
  a.documents = {};
  return a;
}
OpAttributes deciding(HeadGemmAttributes a) {
  a.head_rows = a.first_row = 0;
  return a;
}
OpAttributes deciding(const SparseAttentionAttributes& a) {
  return SparseAttentionAttributes{.queries = {}, .keys = {}, .all_keys = a.all_keys};
}
OpAttributes deciding(RoutingAttributes a) {
  a.balance = 0;
  return a;
}

// ... and `mode_of` tells apart the attributes that choose another kernel.
int mode_of(const OpAttributes&) { return 0; }
int mode_of(const GemmAttributes& a) { return (a.transpose_a ? 1 : 0) + (a.transpose_b ? 2 : 0) + (a.accumulate ? 4 : 0); }
int mode_of(const GroupedGemmAttributes& a) { return (a.transpose_a ? 1 : 0) + (a.transpose_b ? 2 : 0) + (a.accumulate ? 4 : 0); }
int mode_of(const BatchedGemmAttributes& a) { return (a.transpose_a ? 1 : 0) + (a.transpose_b ? 2 : 0); }
int mode_of(const HeadGemmAttributes& a) { return (a.transpose_a ? 1 : 0) + (a.transpose_b ? 2 : 0); }
int mode_of(const SparseAttentionAttributes& a) { return a.all_keys ? 1 : 0; }
int mode_of(const NormAttributes& a) { return static_cast<int>(a.kind); }
int mode_of(const SplitHeadsAttributes& a) { return a.rotate ? 1 : 0; }
int mode_of(const AttentionAttributes& a) {
  return (a.causal ? 1 : 0) + (a.window > 0 ? 2 : 0) + (a.chunk > 0 ? 4 : 0) + (a.softcap > 0 ? 8 : 0) +
         (a.documents.starts.empty() ? 0 : 16);
}
int mode_of(const AdafactorAttributes& a) { return a.factored ? 1 : 0; }
int mode_of(const ActivationAttributes& a) { return static_cast<int>(a.kind); }

bool is_matrix_product(OpKind op) { return op == OpKind::gemm || op == OpKind::grouped_gemm; }

std::vector<DType> dtypes_of(const TimedKernel& kernel) {
  std::vector<DType> dtypes;
  for (const OperandType& operand : kernel.operands) dtypes.push_back(operand.dtype);
  return dtypes;
}

std::vector<double> gemm_size(const TimedKernel& kernel, bool transpose_a) {
  const Shape &a = kernel.operands[0].shape, &c = kernel.operands[2].shape;
  return {static_cast<double>(rows_of(c)), static_cast<double>(columns_of(c)),
          static_cast<double>(transpose_a ? rows_of(a) : columns_of(a))};
}

std::vector<double> grouped_gemm_size(const TimedKernel& kernel, const GroupedGemmAttributes& attributes) {
  const auto experts = static_cast<double>(attributes.rows.size());
  const Shape& weight = kernel.operands[attributes.transpose_a ? 2 : 1].shape;
  return {static_cast<double>(rows_of(kernel.operands[0].shape)), static_cast<double>(rows_of(weight)) / experts,
          static_cast<double>(columns_of(weight)), experts};
}

std::vector<double> batched_gemm_size(const TimedKernel& kernel, const BatchedGemmAttributes& attributes) {
  const auto& o = kernel.operands;
  const auto [size, count] = tandem::batched_gemm_size(o[0].shape, o[1].shape, o[2].shape, attributes);
  return {static_cast<double>(size.m), static_cast<double>(size.n), static_cast<double>(size.k), static_cast<double>(count)};
}

std::vector<double> head_gemm_size(const TimedKernel& kernel, const HeadGemmAttributes& attributes) {
  const auto& o = kernel.operands;
  const std::vector<MatrixProduct> products = head_gemm_products(o[0].shape, o[1].shape, o[2].shape, attributes);
  const GemmSize& size = products.front().size;
  return {static_cast<double>(size.m), static_cast<double>(size.n), static_cast<double>(size.k),
          static_cast<double>(products.size())};
}

/// Pairs of a query and a chosen key, rows of heads, and the widths of a key and its value.
std::vector<double> sparse_attention_size(const TimedKernel& kernel, const SparseAttentionAttributes& attributes) {
  const Shape &q = kernel.operands[0].shape, &chosen = kernel.operands[2].shape, &out = kernel.operands[3].shape;
  return {static_cast<double>(chosen_pairs(attributes, chosen[2])), static_cast<double>(q[1] * q[2]),
          static_cast<double>(q[3] + out[3])};
}

std::vector<double> attention_size(const TimedKernel& kernel, const AttentionAttributes& attributes) {
  const Shape &q = kernel.operands[0].shape, &k = kernel.operands[1].shape, &v = kernel.operands[2].shape;
  const double pairs = static_cast<double>(seen_pairs_of_batch(attributes, q[0], k[0], q[1])) / static_cast<double>(q[1]);
  return {pairs, static_cast<double>(q[1] * q[2]), static_cast<double>(q[3] + v[3])};
}

}  // namespace

bool KernelKey::operator<(const KernelKey& other) const {
  return std::tie(op, flops, dims, dtypes, attributes) <
         std::tie(other.op, other.flops, other.dims, other.dtypes, other.attributes);
}

KernelKey key_of(const TimedKernel& kernel) {
  KernelKey key{.op = kernel.op, .dims = {}, .dtypes = dtypes_of(kernel), .attributes = {}, .flops = cost_of(kernel).flops};
  key.attributes = std::visit([](const auto& attributes) { return deciding(attributes); }, kernel.attributes);
  for (const OperandType& operand : kernel.operands) {
    if (is_matrix_product(kernel.op)) {
      key.dims.insert(key.dims.end(), {rows_of(operand.shape), columns_of(operand.shape)});
    } else {
      key.dims.insert(key.dims.end(), operand.shape.dims.begin(), operand.shape.dims.end());
    }
  }
  return key;
}

KernelFamily family_of(const TimedKernel& kernel) {
  return {kernel.op, dtypes_of(kernel),
          std::visit([](const auto& attributes) { return mode_of(attributes); }, kernel.attributes)};
}

std::vector<double> size_of(const TimedKernel& kernel) {
  switch (kernel.op) {
    case OpKind::gemm:
      return gemm_size(kernel, std::get<GemmAttributes>(kernel.attributes).transpose_a);
    case OpKind::grouped_gemm:
      return grouped_gemm_size(kernel, std::get<GroupedGemmAttributes>(kernel.attributes));
    case OpKind::batched_gemm:
      return batched_gemm_size(kernel, std::get<BatchedGemmAttributes>(kernel.attributes));
    case OpKind::attention:
    case OpKind::attention_backward:
      return attention_size(kernel, std::get<AttentionAttributes>(kernel.attributes));
    case OpKind::head_gemm:
      return head_gemm_size(kernel, std::get<HeadGemmAttributes>(kernel.attributes));
    case OpKind::sparse_attention:
    case OpKind::sparse_attention_backward:
      return sparse_attention_size(kernel, std::get<SparseAttentionAttributes>(kernel.attributes));
    default:
      return {static_cast<double>(cost_of(kernel).bytes)};
  }
}

}  // namespace tandem::sim
