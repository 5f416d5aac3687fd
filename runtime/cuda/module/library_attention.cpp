#include "runtime/cuda/module/library_attention.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace tandem {
namespace {

thread_local int forbidden = 0;

const CudnnAttention* find(std::span<const OperandType> operands, const AttentionAttributes& attributes,
                           AttentionDirection direction) {
  const std::optional<FusedAttention> attention = fused_attention(operands, attributes);
  if (forbidden > 0) return nullptr;
  if (attention && direction == AttentionDirection::backward && !libraries_have_backward(*attention)) return nullptr;
  return attention.has_value() ? cudnn_attention(*attention, direction) : nullptr;
}

bool is_aligned(const DeviceTensor& tensor) {
  constexpr std::uintptr_t alignment = 16;
  return std::bit_cast<std::uintptr_t>(tensor.data) % alignment == 0;
}

}  // namespace

WithoutLibraries::WithoutLibraries() { ++forbidden; }
WithoutLibraries::~WithoutLibraries() { --forbidden; }

bool run_library_attention(Queue& queue, std::span<const DeviceTensor> operands, const AttentionAttributes& attributes,
                           AttentionDirection direction) {
  if (!std::ranges::all_of(operands, is_aligned)) return false;
  std::vector<OperandType> types;
  for (const DeviceTensor& operand : operands) types.push_back({operand.shape, operand.dtype});
  const CudnnAttention* const kernel = find(types, attributes, direction);
  if (kernel == nullptr) return false;
  kernel->run(queue, operands, attributes.scale);
  return true;
}

std::size_t library_attention_scratch(std::span<const OperandType> operands, const AttentionAttributes& attributes,
                                      AttentionDirection direction) {
  const CudnnAttention* const kernel = find(operands, attributes, direction);
  return kernel == nullptr ? 0 : kernel->scratch_bytes();
}

}  // namespace tandem
