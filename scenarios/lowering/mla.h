#pragma once

#include <optional>

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/indexer.h"

namespace tandem::scenarios {

struct MlaParameters {
  ParameterId query_down = 0, query_norm = 0;  ///< only where queries are compressed
  ParameterId query_up = 0;
  ParameterId latent_down = 0, latent_norm = 0, latent_up = 0;
  ParameterId output = 0;
  std::optional<IndexerParameters> indexer = {};
};

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). Every token is projected down to a latent, from
/// which the keys and values of all heads are projected up, and to the one part of the keys that carries the position.
///
///   query    x -> down [q_rank] -> norm -> up [heads * (nope + rope)]
///   latent   x -> down [kv_rank | rope] -> norm of the first part -> up [heads * (nope + v)]
///
/// With an indexer, sparse_attention.h attends. The projections down are whole on every tensor-parallel rank; under sp each works
/// on its shard of the sequence. Those up are column parallel.
MlaParameters declare_mla(const Context& context, ChunkParameters& parameters, const std::string& layer, Mixer mixer);

BufferId mla(Context& context, Tape& tape, const MlaParameters& weights, BufferId x);

}  // namespace tandem::scenarios
