#pragma once

#include <span>
#include <string>
#include <string_view>

#include "scenarios/interop/foreign_tree.h"
#include "scenarios/interop/program_arguments.h"

namespace tandem::scenarios {

/// What becomes of a field's value as an argument of pretrain_gpt.py.
enum class FieldKind : std::uint8_t {
  value,         ///< the argument's value; a list: its values
  flag,          ///< the argument stands where the field is true
  inverse_flag,  ///< the argument stands where the field is false
  type,          ///< an element type: {_target_: torch.bfloat16}, torch.bfloat16 or bf16
};

/// A field of a configuration class of Megatron-Core and the argument that sets it.
struct MegatronField {
  std::string_view field;     ///< "num_moe_experts"
  std::string_view argument;  ///< "num-experts"
  FieldKind kind = FieldKind::value;
};

// megatron/core/transformer/transformer_config.py and model_parallel_config.py with the fields that Megatron-Bridge's providers add
// (bridge/models/gpt_provider.py, mamba/mamba_provider.py); core/distributed/distributed_data_parallel_config.py;
// core/optimizer/optimizer_config.py. The arguments' names: megatron/training/arguments.py.
std::span<const MegatronField> transformer_fields();
std::span<const MegatronField> parallel_fields();
std::span<const MegatronField> data_parallel_fields();
std::span<const MegatronField> optimizer_fields();

/// Puts every field of `fields` that stands below `section` among the arguments.
void take_fields(ForeignTree& tree, const std::string& section, std::span<const MegatronField> fields,
                 ProgramArguments& arguments);

/// The fields of TransformerConfig whose values are no scalars or mean several arguments: the activation function, attention's
/// implementation, grouped queries, layers with experts, graphs, the pipeline layout. `heads`: query heads.
void take_transformer_fields(ForeignTree& tree, const std::string& section, ProgramArguments& arguments,
                             std::vector<std::string>& notes);

/// Says of the fields of TransformerConfig that change no step of a scenario that they may be passed over.
void pass_over_neutral_fields(ForeignTree& tree, const std::string& section);

/// A name of the form torch.bfloat16, or the mapping with it that Hydra writes, as pretrain_gpt.py takes it: "bf16".
std::string type_name(const YamlNode& node);

/// Rereads what Megatron's reader says ("--hidden-size is missing") in the words of the file, and tells its ignored arguments
/// likewise. `fields` are those that were taken, with the section of each.
struct FieldOrigin {
  std::string argument, path;
};
std::string in_words_of_fields(std::string sentence, std::span<const FieldOrigin> origins);

}  // namespace tandem::scenarios
