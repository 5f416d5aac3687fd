#include <stdexcept>

#include "runtime/cuda/module/kernels.h"

// Kernels that no source compiled here defines: those that call CUDA's libraries. A definition elsewhere takes the place of
// these.
#define NOT_EMULATED(kernel)                                                                      \
  __attribute__((weak)) void kernel(Queue&, std::span<const DeviceTensor>, const OpAttributes&) { \
    throw std::runtime_error(#kernel " is not emulated");                                         \
  }

namespace tandem {

NOT_EMULATED(gemm_device)
NOT_EMULATED(grouped_gemm_device)
NOT_EMULATED(attention_device)
NOT_EMULATED(attention_backward_device)
NOT_EMULATED(norm_device)
NOT_EMULATED(norm_backward_device)
NOT_EMULATED(split_heads_device)
NOT_EMULATED(split_heads_backward_device)
NOT_EMULATED(mla_queries_device)
NOT_EMULATED(mla_queries_backward_device)
NOT_EMULATED(mla_keys_values_device)
NOT_EMULATED(mla_keys_values_backward_device)
NOT_EMULATED(attention_merge_device)
NOT_EMULATED(join_sequence_device)
NOT_EMULATED(split_sequence_device)
NOT_EMULATED(pack_groups_device)
NOT_EMULATED(unpack_groups_device)
NOT_EMULATED(activation_device)
NOT_EMULATED(activation_backward_device)
NOT_EMULATED(add_device)
NOT_EMULATED(cast_device)
NOT_EMULATED(split_columns_device)
NOT_EMULATED(join_columns_device)
NOT_EMULATED(embedding_device)
NOT_EMULATED(embedding_backward_device)
NOT_EMULATED(cross_entropy_max_device)
NOT_EMULATED(cross_entropy_sum_device)
NOT_EMULATED(cross_entropy_target_device)
NOT_EMULATED(cross_entropy_loss_device)
NOT_EMULATED(cross_entropy_backward_device)
NOT_EMULATED(fill_device)
NOT_EMULATED(scale_device)
NOT_EMULATED(square_sum_device)
NOT_EMULATED(adam_device)
NOT_EMULATED(route_device)
NOT_EMULATED(route_backward_device)
NOT_EMULATED(permute_device)
NOT_EMULATED(permute_backward_device)
NOT_EMULATED(combine_device)
NOT_EMULATED(combine_backward_device)
NOT_EMULATED(regroup_device)

}  // namespace tandem
