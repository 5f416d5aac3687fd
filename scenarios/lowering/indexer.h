#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

struct IndexerParameters {
  ParameterId query = 0;  ///< from the compressed queries, or from the layer's input
  ParameterId key = 0, key_norm = 0;
  ParameterId weight = 0;  ///< to a number for each head of the indexer
};

/// The lightning indexer (DeepSeek-V3.2, arXiv 2512.02556, section 2.1) as Megatron-Core lowers it (`dsa.py`, DSAIndexer): its
/// projections are whole on every tensor-parallel rank, and all of these compute them for all positions, which sp gathers for
/// that. The key goes through a LayerNorm; the first rope_dim elements of queries and key are rotated. Nothing goes back to what
/// it reads, which the main loss alone trains.
///
/// The gradients, which all tensor-parallel ranks have alike, are averaged over these at the end of the step: added up, of a loss
/// whose coefficient is as much smaller.
IndexerParameters declare_indexer(const Context& context, ChunkParameters& parameters, const std::string& layer);

/// What the indexer makes of this rank's positions.
struct Indexed {
  BufferId x = no_id, query = no_id;  ///< what it read, of all positions
  BufferId down = no_id;              ///< keys before their norm
  BufferId q = no_id, key = no_id;    ///< [s, b, n, d], [s, b, 1, d]; rotated
  BufferId w = no_id;                 ///< [s, b, n]
};

/// Writes the keys to `key`.
Indexed index_tokens(Context& context, const IndexerParameters& weights, BufferId x, BufferId query, BufferId key);

/// Adds to the gradients of its parameters, by those of what it made. Overwrites dq and dkey.
void index_tokens_backward(Context& context, const IndexerParameters& weights, const Indexed& indexed, BufferId dq, BufferId dkey,
                           BufferId dw);

}  // namespace tandem::scenarios
