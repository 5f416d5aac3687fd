#pragma once

#include "runtime/cuda/module/kernel.h"

namespace tandem {

// The operations' GPU kernels, each in runtime/ops beside its host kernel; operands and formulas stand in the header there.
DeviceKernel gemm_device;
DeviceKernel norm_device;
DeviceKernel norm_backward_device;
DeviceKernel split_heads_device;
DeviceKernel split_heads_backward_device;
DeviceKernel mla_queries_device;
DeviceKernel mla_queries_backward_device;
DeviceKernel mla_keys_values_device;
DeviceKernel mla_keys_values_backward_device;
DeviceKernel attention_device;
DeviceKernel attention_backward_device;
DeviceKernel attention_merge_device;
DeviceKernel join_sequence_device;
DeviceKernel split_sequence_device;
DeviceKernel pack_groups_device;
DeviceKernel unpack_groups_device;
DeviceKernel activation_device;
DeviceKernel activation_backward_device;
DeviceKernel weighted_activation_device;
DeviceKernel weighted_activation_backward_device;
DeviceKernel add_device;
DeviceKernel cast_device;
DeviceKernel split_columns_device;
DeviceKernel join_columns_device;
DeviceKernel embedding_device;
DeviceKernel embedding_backward_device;
DeviceKernel cross_entropy_max_device;
DeviceKernel cross_entropy_sum_device;
DeviceKernel cross_entropy_target_device;
DeviceKernel cross_entropy_loss_device;
DeviceKernel cross_entropy_backward_device;
DeviceKernel fill_device;
DeviceKernel scale_device;
DeviceKernel square_sum_device;
DeviceKernel adam_device;
DeviceKernel route_device;
DeviceKernel route_backward_device;
DeviceKernel permute_device;
DeviceKernel permute_backward_device;
DeviceKernel combine_device;
DeviceKernel combine_backward_device;
DeviceKernel regroup_device;
DeviceKernel grouped_gemm_device;
DeviceKernel batched_gemm_device;
DeviceKernel softmax_device;
DeviceKernel softmax_backward_device;
DeviceKernel dropout_device;
DeviceKernel dropout_backward_device;
DeviceKernel dropout_add_device;
DeviceKernel dropout_add_backward_device;
DeviceKernel add_bias_device;
DeviceKernel bias_gradient_device;
DeviceKernel top_k_select_device;
DeviceKernel sparse_sum_device;
DeviceKernel sign_compress_device;
DeviceKernel sign_sum_device;
DeviceKernel sign_expand_device;
DeviceKernel orthogonalize_device;

// Scratch of those that need it.
ScratchFunction cast_scratch;
ScratchFunction embedding_backward_scratch;
ScratchFunction cross_entropy_loss_scratch;
ScratchFunction norm_backward_scratch;
ScratchFunction scale_scratch;
ScratchFunction square_sum_scratch;
ScratchFunction permute_scratch;
ScratchFunction combine_backward_scratch;
ScratchFunction route_scratch;
ScratchFunction route_backward_scratch;
ScratchFunction gemm_scratch;
ScratchFunction attention_scratch, attention_backward_scratch;
ScratchFunction grouped_gemm_scratch;
ScratchFunction batched_gemm_scratch;
ScratchFunction top_k_select_scratch;
ScratchFunction sign_compress_scratch;
ScratchFunction orthogonalize_scratch;

PrepareFunction prepare_gemm;
PrepareFunction prepare_grouped_gemm;
PrepareFunction prepare_batched_gemm;

}  // namespace tandem
