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
    if (chunk.layout.embedding) {
      chunk.sections.push_back({-1, {parameters.begin_unit()}});
      chunk.embedding = declare_embedding(context_, parameters);
    }
    for (std::int64_t l = 0; l < chunk.layout.layers; ++l) {
      chunk.sections.push_back({static_cast<std::int16_t>(chunk.layout.first_layer + l), {parameters.begin_unit()}});
      chunk.layers.push_back(declare_layer(context_, parameters, chunk.layout.first_layer + l));
    }
    if (chunk.layout.loss) {
      const bool tied_here = context_.scenario.model.tied_embeddings && chunk.layout.embedding;
      chunk.sections.push_back({-1, {parameters.begin_unit()}});
      const bool embeds_here = context_.scenario.model.embeds_at_the_end() && chunk.layout.embedding;
      if (embeds_here) chunk.sections.back().units.push_back(parameters.unit_of(chunk.embedding.tokens));
      chunk.loss = declare_loss(context_, parameters, tied_here ? &chunk.embedding.tokens : nullptr);
      chunk.mtp = declare_mtp(context_, parameters, chunk.layout.embedding ? &chunk.embedding.tokens : nullptr, chunk.loss.head);
    }
    const LocalSizes& n = context_.sizes;
    parameters.allocate(context_.builder, context_.rank, context_.scenario.training, p.zero, n.ownership, n.expert_ownership);
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
  if (keeps_slices_of_weights(context_)) {
    std::vector<std::vector<Section>> sections;
    for (const Chunk& chunk : chunks_) sections.push_back(chunk.sections);
    sharded_weights_.emplace(context_, std::move(sections), plan_visits(actions));
  }
  std::vector<bool> cleared(chunks_.size(), false);
  PipelineLink link(context_);
  for (const Action& action : actions) {
    const auto chunk = static_cast<std::size_t>(action.chunk);
    context_.chunk = static_cast<std::int16_t>(action.chunk);
    context_.micro_batch = action.micro_batch;
    if (action.kind != Action::Kind::forward && !cleared[chunk]) {
      if (!sharded_weights_) clear_gradients(context_);
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

std::vector<Visit> StageProgram::plan_visits(const std::vector<Action>& actions) const {
  std::vector<Visit> plan;
  for (const Action& action : actions) {
    const auto chunk = static_cast<std::size_t>(action.chunk);
    const std::size_t count = chunks_[chunk].sections.size();
    if (action.kind == Action::Kind::backward_weight) continue;  // needs no weights
    const bool backward = action.kind != Action::Kind::forward;
    for (std::size_t i = 0; i < count; ++i) plan.push_back({chunk, backward ? count - 1 - i : i, action.micro_batch, backward});
  }
  return plan;
}

void StageProgram::enter(std::size_t section) {
  const auto chunk = static_cast<std::size_t>(context_.chunk);
  context_.layer = chunks_[chunk].sections[section].layer;
  if (sharded_weights_) sharded_weights_->enter({chunk, section, context_.micro_batch, context_.phase != Phase::forward});
}

void StageProgram::leave() {
  if (sharded_weights_) sharded_weights_->leave();
  context_.layer = -1;
}

BufferId StageProgram::in_section(Tape& tape, std::size_t section, const std::function<BufferId()>& lower) {
  enter(section);
  tape.push([this](Context&, BufferId dy) {  // the tape runs backwards: what is pushed first is reached last
    leave();
    return dy;
  });
  const BufferId y = lower();
  tape.push([this, section](Context&, BufferId dy) {
    enter(section);
    return dy;
  });
  leave();
  return y;
}

void StageProgram::forward(PipelineLink& link) {
  context_.phase = Phase::forward;
  const Chunk& chunk = chunks_[static_cast<std::size_t>(context_.chunk)];
  Tape& tape = tapes_[{context_.chunk, context_.micro_batch}];
  std::size_t section = 0;
  BufferId x = chunk.layout.embedding ? in_section(tape, section++, [&] { return embedding(context_, tape, chunk.embedding); })
                                      : link.receive(PipelineLink::Direction::forward);
  for (const LayerParameters& weights : chunk.layers) {
    x = in_section(tape, section++, [&] { return layer(context_, tape, weights, x); });
  }
  if (chunk.layout.loss) {
    in_section(tape, section, [&] {
      losses(context_, tape, chunk.loss, chunk.mtp, x);
      return no_id;
    });
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
