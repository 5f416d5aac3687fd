#include "runtime/cuda/module/cudnn_attention.h"

namespace tandem {

const CudnnAttention* cudnn_attention(const FusedAttention&, AttentionDirection) { return nullptr; }

std::optional<std::string> cudnn_version() { return std::nullopt; }

}  // namespace tandem
