#include <array>
#include <stdexcept>
#include <string>

#include "runtime/cuda/module/kernels.h"

namespace tandem {
namespace {

struct Row {
  OpKind kind;
  DeviceOperation operation;
};

constexpr std::array table{
    Row{OpKind::gemm, {gemm_device, gemm_scratch, prepare_gemm}},
    Row{OpKind::norm, {norm_device}},
    Row{OpKind::norm_backward, {norm_backward_device, norm_backward_scratch}},
    Row{OpKind::split_heads, {split_heads_device, split_heads_scratch}},
    Row{OpKind::split_heads_backward, {split_heads_backward_device, split_heads_scratch}},
    Row{OpKind::mla_queries, {mla_queries_device, mla_heads_scratch}},
    Row{OpKind::mla_queries_backward, {mla_queries_backward_device, mla_heads_scratch}},
    Row{OpKind::mla_keys_values, {mla_keys_values_device, mla_heads_scratch}},
    Row{OpKind::mla_keys_values_backward, {mla_keys_values_backward_device, mla_heads_scratch}},
    Row{OpKind::attention, {attention_device, attention_scratch}},
    Row{OpKind::attention_backward, {attention_backward_device, attention_backward_scratch}},
    Row{OpKind::attention_merge, {attention_merge_device}},
    Row{OpKind::join_sequence, {join_sequence_device}},
    Row{OpKind::split_sequence, {split_sequence_device}},
    Row{OpKind::pack_groups, {pack_groups_device}},
    Row{OpKind::unpack_groups, {unpack_groups_device}},
    Row{OpKind::activation, {activation_device}},
    Row{OpKind::activation_backward, {activation_backward_device}},
    Row{OpKind::weighted_activation, {weighted_activation_device}},
    Row{OpKind::weighted_activation_backward, {weighted_activation_backward_device}},
    Row{OpKind::add, {add_device}},
    Row{OpKind::cast, {cast_device, cast_scratch}},
    Row{OpKind::split_columns, {split_columns_device}},
    Row{OpKind::join_columns, {join_columns_device}},
    Row{OpKind::embedding, {embedding_device}},
    Row{OpKind::embedding_backward, {embedding_backward_device, embedding_backward_scratch}},
    Row{OpKind::cross_entropy_max, {cross_entropy_max_device}},
    Row{OpKind::cross_entropy_sum, {cross_entropy_sum_device}},
    Row{OpKind::cross_entropy_target, {cross_entropy_target_device}},
    Row{OpKind::cross_entropy_loss, {cross_entropy_loss_device, cross_entropy_loss_scratch}},
    Row{OpKind::cross_entropy_backward, {cross_entropy_backward_device}},
    Row{OpKind::fill, {fill_device}},
    Row{OpKind::scale, {scale_device, scale_scratch}},
    Row{OpKind::square_sum, {square_sum_device, square_sum_scratch}},
    Row{OpKind::adam, {adam_device}},
    Row{OpKind::route, {route_device, route_scratch}},
    Row{OpKind::route_backward, {route_backward_device, route_backward_scratch}},
    Row{OpKind::permute, {permute_device, permute_scratch}},
    Row{OpKind::permute_backward, {permute_backward_device}},
    Row{OpKind::combine, {combine_device}},
    Row{OpKind::combine_backward, {combine_backward_device, combine_backward_scratch}},
    Row{OpKind::regroup, {regroup_device}},
    Row{OpKind::grouped_gemm, {grouped_gemm_device, grouped_gemm_scratch, prepare_grouped_gemm}},
    Row{OpKind::batched_gemm, {batched_gemm_device, batched_gemm_scratch, prepare_batched_gemm}},
    Row{OpKind::softmax, {softmax_device, softmax_scratch}},
    Row{OpKind::softmax_backward, {softmax_backward_device}},
    Row{OpKind::dropout, {dropout_device}},
    Row{OpKind::dropout_backward, {dropout_backward_device}},
    Row{OpKind::dropout_add, {dropout_add_device}},
    Row{OpKind::dropout_add_backward, {dropout_add_backward_device}},
    Row{OpKind::add_bias, {add_bias_device}},
    Row{OpKind::bias_gradient, {bias_gradient_device}},
    Row{OpKind::top_k_select, {top_k_select_device, top_k_select_scratch}},
    Row{OpKind::sparse_sum, {sparse_sum_device}},
    Row{OpKind::sign_compress, {sign_compress_device, sign_compress_scratch}},
    Row{OpKind::sign_sum, {sign_sum_device}},
    Row{OpKind::sign_expand, {sign_expand_device}},
    Row{OpKind::orthogonalize, {orthogonalize_device, orthogonalize_scratch}},
    Row{OpKind::attention_sink, {attention_sink_device}},
    Row{OpKind::attention_sink_backward, {attention_sink_backward_device}},
    Row{OpKind::rotary, {rotary_device, split_heads_scratch}},
    Row{OpKind::rotary_backward, {rotary_backward_device, split_heads_scratch}},
    Row{OpKind::causal_conv, {causal_conv_device, causal_conv_scratch}},
    Row{OpKind::causal_conv_backward, {causal_conv_backward_device, causal_conv_scratch}},
    Row{OpKind::ssd_scan, {ssd_scan_device, ssd_scan_scratch}},
    Row{OpKind::ssd_scan_backward, {ssd_scan_backward_device, ssd_scan_backward_scratch}},
    Row{OpKind::group_norm, {group_norm_device}},
    Row{OpKind::group_norm_backward, {group_norm_backward_device, group_norm_backward_scratch}},
    Row{OpKind::pack_parts, {pack_parts_device}},
    Row{OpKind::order_parts, {order_parts_device}},
    Row{OpKind::delta_rule, {delta_rule_device, delta_rule_scratch}},
    Row{OpKind::delta_rule_backward, {delta_rule_backward_device, delta_rule_backward_scratch}},
    Row{OpKind::muon_momentum, {muon_momentum_device}},
    Row{OpKind::muon_normalize, {muon_normalize_device}},
    Row{OpKind::muon_polynomial, {muon_polynomial_device}},
    Row{OpKind::muon_update, {muon_update_device}},
    Row{OpKind::count_choices, {count_choices_device}},
    Row{OpKind::update_expert_bias, {update_expert_bias_device}},
    Row{OpKind::head_gemm, {head_gemm_device, head_gemm_scratch, prepare_head_gemm}},
    Row{OpKind::index_select, {index_select_device, index_select_scratch}},
    Row{OpKind::sparse_attention, {sparse_attention_device}},
    Row{OpKind::sparse_attention_backward, {sparse_attention_backward_device}},
    Row{OpKind::index_target, {index_target_device}},
    Row{OpKind::index_loss_backward, {index_loss_backward_device, index_loss_backward_scratch}},
    Row{OpKind::softcap, {softcap_device}},
    Row{OpKind::softcap_backward, {softcap_backward_device}},
    Row{OpKind::count_by_sequence, {count_by_sequence_device}},
    Row{OpKind::adafactor_sums, {adafactor_sums_device}},
    Row{OpKind::adafactor_factors, {adafactor_factors_device}},
    Row{OpKind::adafactor_variance, {adafactor_variance_device}},
    Row{OpKind::adafactor_norms, {adafactor_norms_device, adafactor_norms_scratch}},
    Row{OpKind::adafactor_update, {adafactor_update_device}},
    Row{OpKind::lightning_attention, {lightning_attention_device, lightning_attention_scratch}},
    Row{OpKind::lightning_attention_backward, {lightning_attention_backward_device, lightning_attention_backward_scratch}},
    Row{OpKind::split_norm_squares, {split_norm_squares_device}},
    Row{OpKind::split_norm, {split_norm_device}},
    Row{OpKind::split_norm_products, {split_norm_products_device}},
    Row{OpKind::split_norm_backward, {split_norm_backward_device}},
    Row{OpKind::weighted_sum, {weighted_sum_device}},
    Row{OpKind::sigmoid_gate, {sigmoid_gate_device}},
    Row{OpKind::sigmoid_gate_backward, {sigmoid_gate_backward_device}},
};

}  // namespace

const DeviceOperation& device_operation(OpKind kind) {
  for (const Row& row : table)
    if (row.kind == kind) return row.operation;
  throw std::logic_error("no GPU kernel for " + std::string(operation(kind).name));
}

}  // namespace tandem
