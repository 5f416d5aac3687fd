#pragma once

#include <vector>

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/embedding.h"
#include "scenarios/lowering/layer.h"
#include "scenarios/lowering/loss.h"

namespace tandem::scenarios {

/// What predicts one more token.
struct MtpDepth {
  ParameterId hidden_norm = 0, token_norm = 0;
  ParameterId projection = 0;        ///< [hidden, 2 hidden]; or with model.hyper_connections [hidden, hidden], of each stream
  ParameterId token_projection = 0;  ///< [hidden, hidden], with these alone
  LayerParameters layer;
  EndParameters end;
};

struct MtpParameters {
  ParameterId tokens = 0;                                 ///< the token table
  std::optional<HyperConnectionParameters> streams = {};  ///< the end of the model's, where the loss is on another stage
  std::vector<MtpDepth> depths;
};

/// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2), on the stage that has the loss or, by a pipeline layout,
/// on one before it. Depth k takes what depth k - 1 (the model's last layer for k = 1) made of each position and the token k
/// positions later:
///
///   h_k = layer(projection [norm(h_(k-1)); norm(embedding(token + k))]),    loss += weight / depths *
///   cross_entropy(head(norm(h_k)))
///
/// With several residual streams (DeepSeek-V4, MTPBlock of its inference/model.py; Megatron-LM's pull request 4518) a depth takes
/// them before they end, each by itself: stream j of h_k begins as projection norm(stream j of h_(k-1)) + token_projection
/// norm(embedding(token + k)). Every depth has an end of its streams of its own.
///
/// The token table and the head are the model's own; with several stages this one has a copy of the table, whose gradient is
/// added up with the first stage's. The projection is whole on every tensor-parallel rank.
///
/// `table`: where it is on this stage already, as the embedding's or as a tied head; else nullptr. `ends_streams`: the model's
/// own end here, too.
MtpParameters declare_mtp(const Context& context, ChunkParameters& parameters, const ParameterId* table, bool ends_streams);

/// Ends a micro-batch like `loss`, with all terms of the loss.
void losses(Context& context, Tape& tape, const LossParameters& next, const MtpParameters& further, BufferId x);

/// On a stage before the loss: returns h_0 and the normed h_1, h_2, ..., one after the other along the sequence, as Megatron-Core
/// sends them on (megatron/core/transformer/multi_token_prediction.py). Of several residual streams the ends.
BufferId predict_for_another(Context& context, Tape& tape, const MtpParameters& further, BufferId x);
/// All terms of the loss from what `predict_for_another` returned.
void losses_of_predicted(Context& context, Tape& tape, const LossParameters& next, BufferId states);

}  // namespace tandem::scenarios
