#include "scenarios/lowering/stage_program.h"

#include "scenarios/lowering/optimizer.h"

namespace tandem {

StageProgram::StageProgram(Context& context) : context_(context) { declare(); }

void StageProgram::declare() {
  const ParallelismSpec& p = context_.scenario.parallelism;
  const std::vector<ChunkLayout> layouts = lay_out_chunks(context_.scenario);
  for (std::int64_t c = 0; c < p.vpp; ++c) {
    Chunk chunk;
    chunk.layout = layouts[static_cast<std::size_t>(c * p.pp + context_.world.ranks[context_.rank].pp)];
    ChunkParameters& parameters = context_.chunks.emplace_back();
    if (chunk.layout.embedding) chunk.embedding = declare_embedding(context_, parameters);
    for (std::int64_t l = 0; l < chunk.layout.layers; ++l) {
      chunk.layers.push_back(declare_layer(context_, parameters, chunk.layout.first_layer + l));
    }
    if (chunk.layout.loss) {
      const bool tied_here = context_.scenario.model.tied_embeddings && chunk.layout.embedding;
      chunk.loss = declare_loss(context_, parameters, tied_here ? &chunk.embedding.tokens : nullptr);
    }
    const LocalSizes& n = context_.sizes;
    parameters.allocate(context_.builder, context_.rank, context_.scenario.training, p.zero, n.owners, n.owned_slice);
    chunks_.push_back(std::move(chunk));
  }
}

void StageProgram::lower() {
  const std::vector<Action> schedule = actions();
  std::vector<int> passes(chunks_.size(), 0);
  for (const Action& action : schedule) {
    if (action.kind == Action::Kind::forward) ++passes[static_cast<std::size_t>(action.chunk)];
  }
  GradientReduction gradients(context_, passes);
  context_.on_gradient = [&](std::size_t chunk, ParameterId parameter) { gradients.add(chunk, parameter); };
  const bool gather_first = context_.scenario.training.overlap_dp;
  context_.phase = Phase::optimizer;
  if (gather_first) gather_parameters(context_);
  follow(schedule);
  context_.micro_batch = -1;
  context_.phase = Phase::optimizer;
  gradients.finish();
  update_parameters(context_);
  if (!gather_first) gather_parameters(context_);
}

std::vector<Action> StageProgram::actions() const {
  const ParallelismSpec& p = context_.scenario.parallelism;
  return schedule(context_.scenario.training.schedule,
                  {.stage = context_.world.ranks[context_.rank].pp,
                   .stages = static_cast<std::int32_t>(p.pp),
                   .micro_batches = static_cast<std::int32_t>(context_.scenario.training.micro_batches(p)),
                   .chunks = static_cast<std::int32_t>(p.vpp)});
}

void StageProgram::follow(const std::vector<Action>& actions) {
  std::vector<bool> cleared(chunks_.size(), false);
  PipelineLink link(context_);
  for (const Action& action : actions) {
    const auto chunk = static_cast<std::size_t>(action.chunk);
    context_.chunk = static_cast<std::int16_t>(action.chunk);
    context_.micro_batch = action.micro_batch;
    if (action.kind != Action::Kind::forward && !cleared[chunk]) {
      clear_gradients(context_);
      cleared[chunk] = true;
    }
    switch (action.kind) {
      case Action::Kind::forward:
        forward(link);
        break;
      case Action::Kind::backward:
        backward(link);
        break;
      case Action::Kind::backward_input:
        backward_input(link);
        break;
      case Action::Kind::backward_weight:
        backward_weight();
        break;
    }
  }
}

void StageProgram::forward(PipelineLink& link) {
  context_.phase = Phase::forward;
  const Chunk& chunk = chunks_[static_cast<std::size_t>(context_.chunk)];
  Tape& tape = tapes_[{context_.chunk, context_.micro_batch}];
  BufferId x =
      chunk.layout.embedding ? embedding(context_, tape, chunk.embedding) : link.receive(PipelineLink::Direction::forward);
  for (std::size_t l = 0; l < chunk.layers.size(); ++l) {
    const auto number = static_cast<std::int16_t>(chunk.layout.first_layer + static_cast<std::int64_t>(l));
    const auto enter = [](std::int16_t n) {
      return [n](Context& c, BufferId dy) {
        c.layer = n;
        return dy;
      };
    };
    context_.layer = number;
    tape.push(enter(-1));  // the tape runs backwards: what is pushed first is reached last
    x = layer(context_, tape, chunk.layers[l], x);
    tape.push(enter(number));
  }
  context_.layer = -1;
  if (chunk.layout.loss) {
    loss(context_, tape, chunk.loss, x);
  } else {
    link.send(PipelineLink::Direction::forward, x);
  }
  link.end_action();
}

void StageProgram::backward(PipelineLink& link) {
  context_.phase = Phase::backward_input;
  const Chunk& chunk = chunks_[static_cast<std::size_t>(context_.chunk)];
  const auto tape = tapes_.find({context_.chunk, context_.micro_batch});
  const BufferId dy = chunk.layout.loss ? no_id : link.receive(PipelineLink::Direction::backward);
  const BufferId dx = tape->second.backward(context_, dy);
  tapes_.erase(tape);
  if (!chunk.layout.embedding) link.send(PipelineLink::Direction::backward, dx);
  link.end_action();
}

void StageProgram::backward_input(PipelineLink& link) {
  context_.put_off = &weights_[{context_.chunk, context_.micro_batch}];
  backward(link);
  context_.put_off = nullptr;
}

void StageProgram::backward_weight() {
  const auto weights = weights_.find({context_.chunk, context_.micro_batch});
  weights->second.lower(context_);
  weights_.erase(weights);
}

}  // namespace tandem
