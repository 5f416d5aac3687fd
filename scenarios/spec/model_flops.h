#pragma once

#include <cstdint>

#include "scenarios/spec/packed_documents.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// FLOPs of the model's matrix products and attention for one token, forward and backward (three times the forward), with the
/// causal half of attention. Per token, forward:
///   layers * (2 h (heads + 2 kv_heads) d + 2 heads d h + 2 h f (3 if gated, else 2)) + 2 h vocab + layers * 2 s heads d
/// and for each depth of multi-token prediction a layer, a head and 2 (2 h) h more.
/// An encoder counts three times its forward, too, or once where it is frozen, shared out over the sequence's tokens: for each
/// patch its product and layers, where attention is to the patches of its image, for each of its tokens the projector. With
/// latent attention the projections are those of lowering/mla.h, and 2 d is the width of a query and a value together.
double model_flops_per_token(const ModelSpec& model, std::int64_t sequence);
double encoder_flops_per_token(const ModelSpec& model, std::int64_t sequence);
/// The same, but for an encoder, where sequences are packed of documents: s of attention is a document's, and the mean is over
/// their tokens.
double model_flops_per_token(const ModelSpec& model, const DocumentTotals& packed);

/// Of the model FLOPs, the share of tokens that pad, and of the pairs that they are in.
double padding_flops_share(const ModelSpec& model, const DocumentTotals& packed);

}  // namespace tandem::scenarios
