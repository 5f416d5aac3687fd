#include "scenarios/lowering/chunk_program.h"

#include <memory>

#include "scenarios/lowering/delayed_scales.h"

namespace tandem::scenarios {

ChunkProgram::ChunkProgram(Context& context, const ChunkLayout& layout)
    : context_(context), number_(static_cast<std::int16_t>(context.chunks.size())), layout_(layout) {
  ChunkParameters& parameters = context.chunks.emplace_back();
  if (layout.embedding) {
    sections_.push_back({-1, {parameters.begin_unit()}});
    embedding_ = declare_embedding(context, parameters);
  }
  for (std::int64_t l = layout.first_layer; l < layout.first_layer + layout.layers; ++l) {
    sections_.push_back({static_cast<std::int16_t>(l), {parameters.begin_unit()}});
    layers_.push_back(declare_layer(context, parameters, l));
  }
  if (layout.predicts_for_another()) {
    sections_.push_back({-1, {parameters.begin_unit()}});
    mtp_ = declare_mtp(context, parameters, nullptr, true);
  }
  if (layout.loss) {
    const bool tied_here = context.scenario.model.tied_embeddings && layout.embedding;
    sections_.push_back({-1, {parameters.begin_unit()}});
    const bool embeds_here = context.scenario.model.embeds_at_the_end() && layout.embedding;
    if (embeds_here) sections_.back().units.push_back(parameters.unit_of(embedding_.tokens));
    loss_ = declare_loss(context, parameters, tied_here ? &embedding_.tokens : nullptr, layout.mtp > 0, layout.states_in == 1);
    if (layout.mtp > 0)
      mtp_ = declare_mtp(context, parameters,
                         layout.embedding                         ? &embedding_.tokens
                         : context.scenario.model.tied_embeddings ? &loss_.head
                                                                  : nullptr,
                         false);
  }
  const LocalSizes& n = context.sizes;
  parameters.allocate(context.builder, context.rank, context.scenario.training, context.scenario.parallelism, n.ownership,
                      n.expert_ownership);
}

std::optional<std::size_t> ChunkProgram::section_of(std::size_t piece) const {
  if (piece == 0 && !layout_.embedding) return std::nullopt;
  if (piece == last_piece() && !layout_.loss) return std::nullopt;
  return layout_.embedding ? piece : piece - 1;
}

std::vector<std::optional<Visit>> ChunkProgram::visits(const Action& action) const {
  if (action.kind == Action::Kind::backward_weight) return {};  // needs no weights
  const bool backward = action.kind != Action::Kind::forward;
  std::vector<std::optional<Visit>> visits;
  const auto add = [&](std::size_t piece, bool back, bool again) {
    const std::optional<std::size_t> section = section_of(piece);
    visits.emplace_back();
    if (section) visits.back() = {static_cast<std::size_t>(number_), *section, action.micro_batch, back, again};
  };
  for (std::size_t i = 0; i <= last_piece(); ++i) {
    const std::size_t piece = backward ? last_piece() - i : i;
    if (backward)
      for (const std::size_t again : recomputed_before(piece)) add(again, false, true);
    add(piece, backward, false);
  }
  return visits;
}

LayerPass ChunkProgram::pass_of(std::size_t piece, std::int32_t micro_batch) const {
  const std::optional<std::size_t> section = piece <= last_piece() ? section_of(piece) : std::nullopt;
  return {context_.steps_before, number_, section ? sections_[*section].layer : std::int16_t{-1}, micro_batch};
}

std::vector<std::size_t> ChunkProgram::recomputed_before(std::size_t piece) const {
  const RecomputeSpec& recompute = context_.scenario.training.recompute;
  if (!recompute.in_segments() || !is_layer(piece)) return {};
  const auto length = static_cast<std::size_t>(recompute.segment);
  if (piece % length != 0 && piece != layers_.size()) return {};
  std::vector<std::size_t> pieces;
  for (std::size_t first = (piece - 1) / length * length + 1; first <= piece; ++first) pieces.push_back(first);
  return pieces;
}

BufferId ChunkProgram::lower_layer(std::int32_t micro_batch, std::size_t piece, Tape& tape, BufferId x) {
  const RecomputeSpec& recompute = context_.scenario.training.recompute;
  if (!recompute.in_segments()) return layer(context_, tape, layers_[piece - 1], x);
  if ((piece - 1) % static_cast<std::size_t>(recompute.segment) == 0) segments_[{micro_batch, piece}] = x;
  Tape dropped;
  return layer(context_, dropped, layers_[piece - 1], x);
}

/// Megatron-Core's TransformerBlock clones what an empty one passes on, lest its output be its input in the autograd graph.
BufferId ChunkProgram::passed_on(BufferId x) {
  const BufferId copy = context_.activation(context_.shape_of(x));
  context_.kernel(OpKind::scale, ScaleAttributes{1.0F}, "pass on", {x}, {copy});
  return copy;
}

/// The layer's forward once more, whose tape the backward goes through.
std::function<void()> ChunkProgram::recompute(std::int32_t micro_batch, std::size_t piece, const std::shared_ptr<BufferId>& x) {
  return [=, this] {
    lower_piece(piece, Phase::recompute, micro_batch, [&] {
      if (const auto kept = segments_.extract({micro_batch, piece}); !kept.empty()) *x = kept.mapped();
      *x = layer(context_, tapes_.at(micro_batch)[piece], layers_[piece - 1], *x);
    });
  };
}

void ChunkProgram::lower_piece(std::size_t piece, Phase phase, std::int32_t micro_batch, const std::function<void()>& lower) {
  const std::optional<std::size_t> section = section_of(piece);
  context_.phase = phase;
  context_.chunk = number_;
  context_.begin_micro_batch(micro_batch);
  context_.layer = section ? sections_[*section].layer : std::int16_t{-1};
  const bool gathers = sharded_ != nullptr && section;
  if (gathers)
    sharded_->enter(
        {static_cast<std::size_t>(number_), *section, micro_batch, phase == Phase::backward_input, phase == Phase::recompute});
  const LayerPass pass = pass_of(piece, micro_batch);
  if (phase == Phase::forward) context_.offload.begin_forward(context_, pass);
  if (phase == Phase::backward_input) context_.offload.begin_backward(context_, pass, pass_of(piece - 1, micro_batch));
  lower();
  if (phase == Phase::forward) context_.offload.end_forward(context_, pass);
  if (phase == Phase::backward_input) context_.offload.end_backward(pass);
  if (gathers) sharded_->leave();
  context_.layer = -1;
}

ChunkProgram::Pieces ChunkProgram::forward(std::int32_t micro_batch, PipelineLink& link) {
  std::vector<Tape>& tapes = tapes_[micro_batch];
  tapes.resize(last_piece() + 1);
  const auto x = std::make_shared<BufferId>(no_id);  // between the pieces
  const auto lower = [=, this, &tapes, &link](std::size_t piece) {
    if (piece == 0) {
      if (layout_.embedding) {
        *x = embedding(context_, tapes[piece], embedding_);
      } else {
        context_.issue([=, this, &link] { *x = link.receive(PipelineLink::Direction::forward, layout_.states_in); });
      }
    } else if (is_layer(piece)) {
      *x = lower_layer(micro_batch, piece, tapes[piece], *x);
      if (piece == layers_.size()) reduce_amax(context_);
      if (!layers_[piece - 1].has_experts()) context_.cut();
    } else if (piece < last_piece()) {
      *x = predict_for_another(context_, tapes[piece], mtp_, *x);
    } else if (layout_.loss) {
      if (layout_.states_in > 1)
        losses_of_predicted(context_, tapes[piece], loss_, *x);
      else
        losses(context_, tapes[piece], loss_, mtp_, *x);
    } else {
      if (layout_.is_empty()) *x = passed_on(*x);
      context_.issue([x, &link] { link.send(PipelineLink::Direction::forward, *x); });
    }
  };
  Pieces pieces;
  pieces.reserve(last_piece() + 1);
  for (std::size_t piece = 0; piece <= last_piece(); ++piece) {
    pieces.emplace_back([=, this] { lower_piece(piece, Phase::forward, micro_batch, [&] { lower(piece); }); });
  }
  return pieces;
}

ChunkProgram::Pieces ChunkProgram::backward(std::int32_t micro_batch, PipelineLink& link, PutOffWeights* put_off) {
  const std::vector<Tape>& tapes = tapes_.at(micro_batch);
  const auto dy = std::make_shared<BufferId>(no_id);
  const bool overlaps = context_.scenario.overlaps_ep();
  const auto waiting = std::make_shared<PutOffWeights>(true);
  const auto lower = [=, this, &tapes, &link](std::size_t piece) {
    if (piece == last_piece() && !layout_.loss) {
      context_.issue([=, this, &link] { *dy = link.receive(PipelineLink::Direction::backward, layout_.states_out()); });
      return;
    }
    context_.put_off = overlaps && put_off == nullptr ? waiting.get() : put_off;
    *dy = tapes[piece].backward(context_, *dy);
    if (piece == 1 && !layers_.empty()) reduce_amax(context_);
    if (piece == 0 && !layout_.embedding) {
      if (layout_.is_empty()) *dy = passed_on(*dy);
      context_.issue([dy, &link] { link.send(PipelineLink::Direction::backward, *dy); });
    }
    const bool exchanges = piece > 0 && (!is_layer(piece) || layers_[piece - 1].has_experts());  // those of the loss in the next
    if (overlaps && !exchanges) {
      context_.lower_waiting_weights();
      context_.cut();
    }
    context_.put_off = nullptr;
    if (piece == 0) tapes_.erase(micro_batch);
  };
  Pieces pieces;
  pieces.reserve(last_piece() + 1);
  const auto again = std::make_shared<BufferId>(no_id);  // between the recomputed pieces of a segment
  for (std::size_t i = 0; i <= last_piece(); ++i) {
    const std::size_t piece = last_piece() - i;
    for (const std::size_t first : recomputed_before(piece)) pieces.push_back(recompute(micro_batch, first, again));
    pieces.emplace_back([=, this] { lower_piece(piece, Phase::backward_input, micro_batch, [&] { lower(piece); }); });
  }
  return pieces;
}

ChunkProgram::Pieces ChunkProgram::backward_weight(std::int32_t micro_batch) {
  return {[=, this] {
    context_.phase = Phase::backward_weight;
    context_.chunk = number_;
    context_.begin_micro_batch(micro_batch);
    weights_.at(micro_batch).lower(context_);
    weights_.erase(micro_batch);
  }};
}

}  // namespace tandem::scenarios
