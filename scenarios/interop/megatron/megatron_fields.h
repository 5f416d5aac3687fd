#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tandem::scenarios {

/// What becomes of a field's value as an argument of pretrain_gpt.py.
enum class FieldKind : std::uint8_t {
  value,         ///< the argument's value; of a list: its values
  flag,          ///< the argument stands where the field is true
  inverse_flag,  ///< the argument stands where the field is false
  type           ///< an element type: {_target_: torch.bfloat16}, "torch.bfloat16" or "bf16"
};

/// A field of a configuration class of Megatron-Core and the argument that sets it.
struct MegatronField {
  std::string_view field;     ///< "num_moe_experts"
  std::string_view argument;  ///< "num-experts"
  FieldKind kind = FieldKind::value;
};

// Fields: megatron/core/transformer/transformer_config.py, megatron/core/model_parallel_config.py, and those that
// Megatron-Bridge's providers add (bridge/models/gpt_provider.py, mamba/mamba_provider.py); megatron/core/distributed/
// distributed_data_parallel_config.py; megatron/core/optimizer/optimizer_config.py. Arguments: megatron/training/arguments.py.

/// Of every model.
std::span<const MegatronField> transformer_fields();
/// Those that count with multi_latent_attention alone, with num_moe_experts alone, and with layers of Mamba.
std::span<const MegatronField> latent_attention_fields();
std::span<const MegatronField> expert_fields();
std::span<const MegatronField> mamba_fields();
/// How a model lies on ranks.
std::span<const MegatronField> parallel_fields();
std::span<const MegatronField> data_parallel_fields();
std::span<const MegatronField> optimizer_fields();
/// Which count with use_precision_aware_optimizer alone.
std::span<const MegatronField> optimizer_type_fields();

/// Fields of TransformerConfig that change no step of a scenario.
std::span<const std::string_view> neutral_transformer_fields();

}  // namespace tandem::scenarios
