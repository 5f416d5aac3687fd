#pragma once

#include <optional>

#include "scenarios/lowering/hyper_connection.h"

namespace tandem::scenarios {

/// One of the terms that add up to the loss.
struct LossTerm {
  std::int32_t ahead = 0;  ///< the target is the token after the next `ahead` ones
  double weight = 1;
};

/// Between the last layer and the head.
struct EndParameters {
  ParameterId norm = 0;
  std::optional<HyperConnectionParameters> streams = {};  ///< with model.hyper_connections, unless they have ended before
};

struct LossParameters {
  EndParameters end;
  ParameterId head = 0;
};

EndParameters declare_end(const Context& context, ChunkParameters& parameters, const std::string& prefix, bool ends_streams);
/// The end of several residual streams, and the final norm.
BufferId end_of_layers(Context& context, Tape& tape, const EndParameters& weights, BufferId x);

/// Final norm, LM head with the vocabulary sharded over tp, and cross entropy on the shards: all-reduces of the maximum, of the
/// sum of exponentials and of the target's logit, one number per token each. A tied head on the embedding's own stage uses
/// `tied_table`; pass nullptr elsewhere. `looks_up`: the stage embeds further tokens with a tied head. `ends_streams`: what it is
/// given are residual streams side by side, where the model has several.
LossParameters declare_loss(const Context& context, ChunkParameters& parameters, const ParameterId* tied_table, bool looks_up,
                            bool ends_streams);

/// The term of the loss that `normed`, what the final norm made, gives.
void loss_of_normed(Context& context, Tape& tape, ParameterId head, BufferId normed, const LossTerm& term);

/// Ends a micro-batch: nothing comes out but the loss, and the backward starts here.
void loss(Context& context, Tape& tape, const LossParameters& weights, BufferId x, const LossTerm& term = {});

}  // namespace tandem::scenarios
