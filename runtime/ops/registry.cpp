#include <array>

#include "runtime/ops/activation.h"
#include "runtime/ops/adafactor.h"
#include "runtime/ops/adam.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/attention_merge.h"
#include "runtime/ops/attention_sink.h"
#include "runtime/ops/batched_gemm.h"
#include "runtime/ops/bias.h"
#include "runtime/ops/cast.h"
#include "runtime/ops/causal_conv.h"
#include "runtime/ops/column_parts.h"
#include "runtime/ops/columns.h"
#include "runtime/ops/compress_keys.h"
#include "runtime/ops/cross_entropy.h"
#include "runtime/ops/delta_rule.h"
#include "runtime/ops/dropout.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/embedding.h"
#include "runtime/ops/expert_bias.h"
#include "runtime/ops/gemm.h"
#include "runtime/ops/group_norm.h"
#include "runtime/ops/grouped_gemm.h"
#include "runtime/ops/groups.h"
#include "runtime/ops/head_gemm.h"
#include "runtime/ops/hyper_connection.h"
#include "runtime/ops/indexer.h"
#include "runtime/ops/join_sequence.h"
#include "runtime/ops/lightning_attention.h"
#include "runtime/ops/mla_heads.h"
#include "runtime/ops/muon.h"
#include "runtime/ops/norm.h"
#include "runtime/ops/operation.h"
#include "runtime/ops/orthogonalize.h"
#include "runtime/ops/permute.h"
#include "runtime/ops/pool_rows.h"
#include "runtime/ops/route.h"
#include "runtime/ops/sigmoid_gate.h"
#include "runtime/ops/sign.h"
#include "runtime/ops/softmax.h"
#include "runtime/ops/sparse_attention.h"
#include "runtime/ops/split_heads.h"
#include "runtime/ops/split_norm.h"
#include "runtime/ops/ssd_scan.h"
#include "runtime/ops/top_k.h"
#include "runtime/ops/unit_norm.h"
#include "runtime/ops/window_select.h"

namespace tandem {
namespace {

struct Row {
  OpKind kind;
  Operation operation;
};

constexpr auto memory = OpClass::memory;
constexpr auto communication = OpClass::communication;

constexpr std::array<Row, op_kind_count> table{{
    {OpKind::gemm, {"gemm", OpClass::gemm, gemm_cost, gemm_host}},
    {OpKind::norm, {"norm", memory, norm_cost, norm_host}},
    {OpKind::norm_backward, {"norm_backward", memory, norm_backward_cost, norm_backward_host}},
    {OpKind::split_heads, {"split_heads", memory, split_heads_cost, split_heads_host}},
    {OpKind::split_heads_backward, {"split_heads_backward", memory, split_heads_backward_cost, split_heads_backward_host}},
    {OpKind::mla_queries, {"mla_queries", memory, mla_queries_cost, mla_queries_host}},
    {OpKind::mla_queries_backward, {"mla_queries_backward", memory, mla_queries_backward_cost, mla_queries_backward_host}},
    {OpKind::mla_keys_values, {"mla_keys_values", memory, mla_keys_values_cost, mla_keys_values_host}},
    {OpKind::mla_keys_values_backward,
     {"mla_keys_values_backward", memory, mla_keys_values_backward_cost, mla_keys_values_backward_host}},
    {OpKind::attention, {"attention", OpClass::attention_forward, attention_cost, attention_host}},
    {OpKind::attention_backward,
     {"attention_backward", OpClass::attention_backward, attention_backward_cost, attention_backward_host}},
    {OpKind::attention_merge, {"attention_merge", memory, attention_merge_cost, attention_merge_host}},
    {OpKind::join_sequence, {"join_sequence", memory, join_sequence_cost, join_sequence_host}},
    {OpKind::split_sequence, {"split_sequence", memory, split_sequence_cost, split_sequence_host}},
    {OpKind::pack_groups, {"pack_groups", memory, pack_groups_cost, pack_groups_host}},
    {OpKind::unpack_groups, {"unpack_groups", memory, unpack_groups_cost, unpack_groups_host}},
    {OpKind::activation, {"activation", memory, activation_cost, activation_host}},
    {OpKind::activation_backward, {"activation_backward", memory, activation_backward_cost, activation_backward_host}},
    {OpKind::add, {"add", memory, add_cost, add_host}},
    {OpKind::cast, {"cast", memory, cast_cost, cast_host}},
    {OpKind::split_columns, {"split_columns", memory, split_columns_cost, split_columns_host}},
    {OpKind::join_columns, {"join_columns", memory, join_columns_cost, join_columns_host}},
    {OpKind::embedding, {"embedding", memory, embedding_cost, embedding_host}},
    {OpKind::embedding_backward, {"embedding_backward", memory, embedding_backward_cost, embedding_backward_host}},
    {OpKind::cross_entropy_max, {"cross_entropy_max", memory, cross_entropy_max_cost, cross_entropy_max_host}},
    {OpKind::cross_entropy_sum, {"cross_entropy_sum", memory, cross_entropy_sum_cost, cross_entropy_sum_host}},
    {OpKind::cross_entropy_target, {"cross_entropy_target", memory, cross_entropy_target_cost, cross_entropy_target_host}},
    {OpKind::cross_entropy_loss, {"cross_entropy_loss", memory, cross_entropy_loss_cost, cross_entropy_loss_host}},
    {OpKind::cross_entropy_backward,
     {"cross_entropy_backward", memory, cross_entropy_backward_cost, cross_entropy_backward_host}},
    {OpKind::fill, {"fill", memory, fill_cost, fill_host}},
    {OpKind::scale, {"scale", memory, scale_cost, scale_host}},
    {OpKind::square_sum, {"square_sum", memory, square_sum_cost, square_sum_host}},
    {OpKind::adam, {"adam", memory, adam_cost, adam_host}},
    {OpKind::route, {"route", memory, route_cost, route_host}},
    {OpKind::route_backward, {"route_backward", memory, route_backward_cost, route_backward_host}},
    {OpKind::permute, {"permute", memory, permute_cost, permute_host}},
    {OpKind::permute_backward, {"permute_backward", memory, permute_backward_cost, permute_backward_host}},
    {OpKind::combine, {"combine", memory, combine_cost, combine_host}},
    {OpKind::combine_backward, {"combine_backward", memory, combine_backward_cost, combine_backward_host}},
    {OpKind::regroup, {"regroup", memory, regroup_cost, regroup_host}},
    {OpKind::grouped_gemm, {"grouped_gemm", OpClass::gemm, grouped_gemm_cost, grouped_gemm_host}},
    {OpKind::batched_gemm, {"batched_gemm", OpClass::gemm, batched_gemm_cost, batched_gemm_host}},
    {OpKind::softmax, {"softmax", memory, softmax_cost, softmax_host}},
    {OpKind::softmax_backward, {"softmax_backward", memory, softmax_backward_cost, softmax_backward_host}},
    {OpKind::dropout, {"dropout", memory, dropout_cost, dropout_host}},
    {OpKind::dropout_backward, {"dropout_backward", memory, dropout_backward_cost, dropout_backward_host}},
    {OpKind::dropout_add, {"dropout_add", memory, dropout_add_cost, dropout_add_host}},
    {OpKind::dropout_add_backward, {"dropout_add_backward", memory, dropout_backward_cost, dropout_backward_host}},
    {OpKind::add_bias, {"add_bias", memory, add_bias_cost, add_bias_host}},
    {OpKind::bias_gradient, {"bias_gradient", memory, bias_gradient_cost, bias_gradient_host}},
    {OpKind::weighted_activation, {"weighted_activation", memory, weighted_activation_cost, weighted_activation_host}},
    {OpKind::weighted_activation_backward,
     {"weighted_activation_backward", memory, weighted_activation_backward_cost, weighted_activation_backward_host}},
    {OpKind::top_k_select, {"top_k_select", memory, top_k_select_cost, top_k_select_host}},
    {OpKind::sparse_sum, {"sparse_sum", memory, sparse_sum_cost, sparse_sum_host}},
    {OpKind::sign_compress, {"sign_compress", memory, sign_compress_cost, sign_compress_host}},
    {OpKind::sign_sum, {"sign_sum", memory, sign_sum_cost, sign_sum_host}},
    {OpKind::sign_expand, {"sign_expand", memory, sign_expand_cost, sign_expand_host}},
    {OpKind::orthogonalize, {"orthogonalize", memory, orthogonalize_cost, orthogonalize_host}},
    {OpKind::attention_sink, {"attention_sink", memory, attention_sink_cost, attention_sink_host}},
    {OpKind::attention_sink_backward,
     {"attention_sink_backward", memory, attention_sink_backward_cost, attention_sink_backward_host}},
    {OpKind::rotary, {"rotary", memory, rotary_cost, rotary_host}},
    {OpKind::rotary_backward, {"rotary_backward", memory, rotary_cost, rotary_backward_host}},
    {OpKind::causal_conv, {"causal_conv", memory, causal_conv_cost, causal_conv_host}},
    {OpKind::causal_conv_backward, {"causal_conv_backward", memory, causal_conv_backward_cost, causal_conv_backward_host}},
    {OpKind::ssd_scan, {"ssd_scan", OpClass::scan, ssd_scan_cost, ssd_scan_host, 5, ssd_scan_parts}},
    {OpKind::ssd_scan_backward,
     {"ssd_scan_backward", OpClass::scan, ssd_scan_backward_cost, ssd_scan_backward_host, 15, ssd_scan_backward_parts}},
    {OpKind::group_norm, {"group_norm", memory, group_norm_cost, group_norm_host}},
    {OpKind::group_norm_backward, {"group_norm_backward", memory, group_norm_backward_cost, group_norm_backward_host}},
    {OpKind::pack_parts, {"pack_parts", memory, pack_parts_cost, pack_parts_host}},
    {OpKind::order_parts, {"order_parts", memory, order_parts_cost, order_parts_host}},
    {OpKind::delta_rule, {"delta_rule", OpClass::scan, delta_rule_cost, delta_rule_host, 9, delta_rule_parts}},
    {OpKind::delta_rule_backward,
     {"delta_rule_backward", OpClass::scan, delta_rule_backward_cost, delta_rule_backward_host, 16, delta_rule_backward_parts}},
    {OpKind::muon_momentum, {"muon_momentum", memory, muon_momentum_cost, muon_momentum_host}},
    {OpKind::muon_normalize, {"muon_normalize", memory, muon_normalize_cost, muon_normalize_host}},
    {OpKind::muon_polynomial, {"muon_polynomial", memory, muon_polynomial_cost, muon_polynomial_host}},
    {OpKind::muon_update, {"muon_update", memory, muon_update_cost, muon_update_host}},
    {OpKind::count_choices, {"count_choices", memory, count_choices_cost, count_choices_host}},
    {OpKind::update_expert_bias, {"update_expert_bias", memory, update_expert_bias_cost, update_expert_bias_host}},
    {OpKind::head_gemm, {"head_gemm", OpClass::gemm, head_gemm_cost, head_gemm_host}},
    {OpKind::index_select, {"index_select", OpClass::scan, index_select_cost, index_select_host, 2, index_select_parts}},
    {OpKind::sparse_attention, {"sparse_attention", OpClass::attention_forward, sparse_attention_cost, sparse_attention_host}},
    {OpKind::sparse_attention_backward,
     {"sparse_attention_backward", OpClass::attention_backward, sparse_attention_backward_cost, sparse_attention_backward_host}},
    {OpKind::index_target, {"index_target", OpClass::scan, index_target_cost, index_target_host, 1, index_target_parts}},
    {OpKind::index_loss_backward,
     {"index_loss_backward", OpClass::scan, index_loss_backward_cost, index_loss_backward_host, 1, index_loss_backward_parts}},
    {OpKind::softcap, {"softcap", memory, softcap_cost, softcap_host}},
    {OpKind::softcap_backward, {"softcap_backward", memory, softcap_backward_cost, softcap_backward_host}},
    {OpKind::adafactor_sums, {"adafactor_sums", memory, adafactor_sums_cost, adafactor_sums_host, 2}},
    {OpKind::adafactor_factors, {"adafactor_factors", memory, adafactor_factors_cost, adafactor_factors_host}},
    {OpKind::adafactor_variance, {"adafactor_variance", memory, adafactor_variance_cost, adafactor_variance_host}},
    {OpKind::adafactor_norms, {"adafactor_norms", memory, adafactor_norms_cost, adafactor_norms_host, 2}},
    {OpKind::adafactor_update, {"adafactor_update", memory, adafactor_update_cost, adafactor_update_host}},
    {OpKind::count_by_sequence, {"count_by_sequence", memory, count_by_sequence_cost, count_by_sequence_host}},
    {OpKind::lightning_attention,
     {"lightning_attention", OpClass::scan, lightning_attention_cost, lightning_attention_host, 4, lightning_attention_parts}},
    {OpKind::lightning_attention_backward,
     {"lightning_attention_backward", OpClass::scan, lightning_attention_backward_cost, lightning_attention_backward_host, 6,
      lightning_attention_backward_parts}},
    {OpKind::split_norm_squares, {"split_norm_squares", memory, split_norm_squares_cost, split_norm_squares_host}},
    {OpKind::split_norm, {"split_norm", memory, split_norm_cost, split_norm_host}},
    {OpKind::split_norm_products, {"split_norm_products", memory, split_norm_products_cost, split_norm_products_host}},
    {OpKind::split_norm_backward, {"split_norm_backward", memory, split_norm_backward_cost, split_norm_backward_host}},
    {OpKind::weighted_sum, {"weighted_sum", memory, weighted_sum_cost, weighted_sum_host}},
    {OpKind::sigmoid_gate, {"sigmoid_gate", memory, sigmoid_gate_cost, sigmoid_gate_host}},
    {OpKind::sigmoid_gate_backward, {"sigmoid_gate_backward", memory, sigmoid_gate_backward_cost, sigmoid_gate_backward_host}},
    {OpKind::unit_norm, {"unit_norm", memory, unit_norm_cost, unit_norm_host}},
    {OpKind::unit_norm_backward, {"unit_norm_backward", memory, unit_norm_backward_cost, unit_norm_backward_host}},
    {OpKind::compress_keys, {"compress_keys", memory, compress_keys_cost, compress_keys_host}},
    {OpKind::compress_keys_backward,
     {"compress_keys_backward", memory, compress_keys_backward_cost, compress_keys_backward_host}},
    {OpKind::window_select, {"window_select", memory, window_select_cost, window_select_host}},
    {OpKind::hyper_expand, {"hyper_expand", memory, hyper_expand_cost, hyper_expand_host}},
    {OpKind::hyper_expand_backward, {"hyper_expand_backward", memory, hyper_expand_backward_cost, hyper_expand_backward_host}},
    {OpKind::hyper_gates, {"hyper_gates", memory, hyper_gates_cost, hyper_gates_host}},
    {OpKind::hyper_gates_backward, {"hyper_gates_backward", memory, hyper_gates_backward_cost, hyper_gates_backward_host}},
    {OpKind::hyper_gather, {"hyper_gather", memory, hyper_gather_cost, hyper_gather_host}},
    {OpKind::hyper_gather_backward, {"hyper_gather_backward", memory, hyper_gather_backward_cost, hyper_gather_backward_host}},
    {OpKind::hyper_merge, {"hyper_merge", memory, hyper_merge_cost, hyper_merge_host}},
    {OpKind::hyper_merge_backward, {"hyper_merge_backward", memory, hyper_merge_backward_cost, hyper_merge_backward_host}},
    {OpKind::pool_rows, {"pool_rows", memory, pool_rows_cost, pool_rows_host}},
    {OpKind::pool_rows_backward, {"pool_rows_backward", memory, pool_rows_backward_cost, pool_rows_backward_host}},
    {OpKind::all_reduce, {"all_reduce", communication}},
    {OpKind::all_gather, {"all_gather", communication}},
    {OpKind::reduce_scatter, {"reduce_scatter", communication}},
    {OpKind::all_to_all, {"all_to_all", communication}},
    {OpKind::broadcast, {"broadcast", communication}},
    {OpKind::reduce, {"reduce", communication}},
    {OpKind::gather, {"gather", communication}},
    {OpKind::scatter, {"scatter", communication}},
    {OpKind::barrier, {"barrier", communication}},
    {OpKind::send, {"send", communication}},
    {OpKind::receive, {"receive", communication}},
    {OpKind::copy, {"copy", communication}},
}};

constexpr bool in_the_order_of_op_kind() {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (static_cast<std::size_t>(table[i].kind) != i) return false;
  return true;
}
static_assert(in_the_order_of_op_kind());

}  // namespace

const Operation& operation(OpKind kind) { return table[static_cast<std::size_t>(kind)].operation; }

}  // namespace tandem
