#include "scenarios/lowering/stage_program.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "scenarios/lowering/data_parallel.h"
#include "scenarios/lowering/local_steps.h"
#include "scenarios/lowering/optimizer.h"
#include "scenarios/lowering/repeated_passes.h"
#include "scenarios/lowering/turns.h"
#include "scenarios/schedules/stage_actions.h"

namespace tandem::scenarios {
namespace {

/// The items of both lists, in turns.
template <typename Item>
std::vector<Item> in_turns(std::vector<Item> one, const std::vector<Item>& other) {
  std::vector<Item> both;
  for (std::size_t i = 0; i < std::max(one.size(), other.size()); ++i) {
    if (i < one.size()) both.push_back(std::move(one[i]));
    if (i < other.size()) both.push_back(other[i]);
  }
  return both;
}

}  // namespace

StageProgram::StageProgram(Context& context)
    : context_(context),
      placement_(context.scenario),
      link_(context, placement_),
      cleared_(static_cast<std::size_t>(placement_.chunks()), false) {
  const std::vector<ChunkLayout> layouts = lay_out_chunks(context.scenario);
  for (std::int32_t chunk = 0; chunk < placement_.chunks(); ++chunk) {
    const std::int32_t part = placement_.part(context.world.ranks[context.rank].pp, chunk);
    chunks_.emplace_back(context, layouts[static_cast<std::size_t>(part)]);
  }
  context.expert_biases = ExpertBiases(context.builder, context.rank, context.chunks, context.scenario.model.moe.experts);
}

std::vector<Action> StageProgram::actions(std::int32_t micro_batches) const {
  const Scenario& scenario = context_.scenario;
  const auto all = static_cast<std::int32_t>(scenario.training.micro_batches(scenario.parallelism));
  return stage_actions(scenario, context_.world.ranks[context_.rank].pp, micro_batches > 0 ? micro_batches : all);
}

void StageProgram::lower(const StepRange& steps) {
  const std::int64_t stride = steps.stride > 0 ? steps.stride : context_.scenario.training.global_batch;
  context_.restores_residuals = steps.restores_residuals;
  context_.copies_passes = steps.copies_passes;
  for (std::int32_t step = 0; step < steps.count; ++step) {
    context_.steps_before = step;
    context_.first_sequence = steps.first_sequence + step * stride;
    lower_step(actions(steps.micro_batches));
    context_.cast_operands.clear();  // the weights are others now
    context_.gathered_weights.clear();
    cleared_.assign(cleared_.size(), false);
  }
  if (steps.averages && context_.scenario.training.local_steps()) average_weights(context_);
}

void StageProgram::lower_step(const std::vector<Action>& schedule) {
  std::vector<int> passes(chunks_.size(), 0);
  for (const Action& action : schedule) {
    if (action.kind == Action::Kind::forward) ++passes[static_cast<std::size_t>(action.chunk)];
  }
  GradientReduction gradients(context_, passes);
  context_.on_gradient = [&](std::size_t chunk, ParameterId parameter) { gradients.add(chunk, parameter); };
  const bool gather_first = context_.scenario.training.overlap_dp;
  context_.phase = Phase::optimizer;
  if (gather_first) gather_parameters(context_);
  clear_expert_load(context_);
  if (keeps_slices_of_weights(context_)) shard_weights(schedule);
  follow(schedule);
  context_.begin_micro_batch(-1);
  context_.phase = Phase::optimizer;
  gradients.finish();
  update_parameters(context_);
  if (!gather_first) gather_parameters(context_);
}

void StageProgram::shard_weights(const std::vector<Action>& actions) {
  std::vector<std::vector<Section>> sections;
  for (const ChunkProgram& chunk : chunks_) sections.push_back(chunk.sections());
  std::vector<Visit> plan;
  const auto visits = [&](const Action& action) { return chunks_[static_cast<std::size_t>(action.chunk)].visits(action); };
  for (std::size_t i = 0; i < actions.size(); ++i) {
    std::vector<std::optional<Visit>> pieces = visits(actions[i]);
    if (actions[i].beside_next) pieces = in_turns(std::move(pieces), visits(actions.at(++i)));
    for (const std::optional<Visit>& visit : pieces) {
      if (visit) plan.push_back(*visit);
    }
  }
  sharded_weights_.emplace(context_, std::move(sections), std::move(plan));
  for (ChunkProgram& chunk : chunks_) chunk.take_weights_from(*sharded_weights_);
}

void StageProgram::follow(const std::vector<Action>& actions) {
  const auto repeated = context_.copies_passes ? RepeatedPasses::among(context_, link_, actions) : nullptr;
  const auto pass_of = [&](std::size_t action) {
    std::unique_ptr<PassInTurns> copy = repeated ? repeated->copy_of(action) : nullptr;
    copied_ += copy ? 1 : 0;
    if (copy) return copy;
    return lowered_pass(context_, pieces_of(actions[action]), repeated ? &repeated->notes_of(action) : nullptr);
  };
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const auto pass = pass_of(i);
    if (actions[i].beside_next) {
      const auto beside = pass_of(++i);
      take_turns(context_.scenario, *pass, *beside);
    } else {
      while (!pass->is_done()) pass->take_piece();
    }
    if (repeated) repeated->look_at(i);
    if (actions[i].kind != Action::Kind::backward_weight) link_.end_action(!actions[i].exchanges_with_next);
  }
}

ChunkProgram::Pieces StageProgram::pieces_of(const Action& action) {
  const auto number = static_cast<std::size_t>(action.chunk);
  ChunkProgram& chunk = chunks_[number];
  if (action.kind != Action::Kind::forward && !cleared_[number] && !sharded_weights_) {
    context_.chunk = static_cast<std::int16_t>(action.chunk);
    context_.begin_micro_batch(action.micro_batch);
    clear_gradients(context_);
    cleared_[number] = true;
  }
  switch (action.kind) {
    case Action::Kind::forward:
      return chunk.forward(action.micro_batch, link_);
    case Action::Kind::backward:
      return chunk.backward(action.micro_batch, link_);
    case Action::Kind::backward_input:
      return chunk.backward_input(action.micro_batch, link_);
    case Action::Kind::backward_weight:
      return chunk.backward_weight(action.micro_batch);
  }
  throw std::logic_error("unknown action");
}

}  // namespace tandem::scenarios
