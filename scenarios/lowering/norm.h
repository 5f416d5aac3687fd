#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// RMSNorm or LayerNorm, replicated over tp; under sp each rank normalises its shard of the sequence.
ParameterId declare_norm(const Context& context, ChunkParameters& parameters, const std::string& tensor, std::int64_t width);
ParameterId declare_norm(const Context& context, ChunkParameters& parameters,
                         const std::string& tensor);  ///< as wide as the model

/// Norm of queries or keys, of which each rank has its own heads.
ParameterId declare_norm_of_heads(const Context& context, ChunkParameters& parameters, const std::string& tensor,
                                  std::int64_t width);

BufferId norm(Context& context, Tape& tape, ParameterId weight, BufferId x, std::string_view name);
/// The same into `y`.
void norm(Context& context, Tape& tape, ParameterId weight, BufferId x, BufferId y, std::string_view name);

}  // namespace tandem::scenarios
