#include "studies/search/memory_bound.h"

#include <algorithm>
#include <vector>

#include "scenarios/schedules/stage_actions.h"

namespace tandem::studies {

MemoryBound memory_bound(const Scenario& scenario, const StageCosts& costs, Schedules& schedules) {
  const ChunkPlacement placement(scenario);
  const auto stages = static_cast<std::int32_t>(scenario.parallelism.pp);
  const auto all = static_cast<std::int32_t>(scenario.training.micro_batches(scenario.parallelism));
  // As many micro-batches as fill the pipeline: those that come after them find no less in flight.
  const bool fills = traits_of(scenario.training.schedule).holds_whole_batch;
  const std::int32_t micro_batches = fills ? all : std::min(all, 2 * stages);
  const auto& actions = schedules.of(scenario, micro_batches);
  MemoryBound bound;
  // ZeRO-3 gathers weights once in a step where it does not for every micro-batch.
  const bool keeps_weights = scenario.parallelism.zero == 3 && !scenario.parallelism.gather_per_micro_batch;
  for (std::int32_t s = 0; s < stages; ++s) {
    Bytes states = 0, now = 0;
    for (std::int32_t c = 0; c < placement.chunks(); ++c)
      states += costs.parts[static_cast<std::size_t>(placement.part(s, c))].states;
    std::vector<std::int32_t> forwards(static_cast<std::size_t>(placement.chunks()), 0), backwards = forwards;
    Bytes most = 0;
    Bytes whole = 0;  // of weights and gradients that are slices else
    Bytes casts = 0;  // of weights
    // A forward and a backward that go on in turns: at no moment of them must all be there that either needs alone.
    const bool in_turns = pairs_passes(scenario);
    const bool knows_pairs = !costs.pairs.empty() && scenario.training.offload.activations == 0;
    const Action* before = nullptr;
    Bytes casts_before = 0;
    for (const Action& action : actions[static_cast<std::size_t>(s)]) {
      const PartCosts& part = costs.parts[static_cast<std::size_t>(placement.part(s, action.chunk))];
      const auto chunk = static_cast<std::size_t>(action.chunk);
      const std::int32_t passes = micro_batches / placement.copies();
      const bool forward = action.kind == Action::Kind::forward;
      const bool backward = action.kind == Action::Kind::backward || action.kind == Action::Kind::backward_input;
      const std::int32_t pass = forward ? ++forwards[chunk] : backward ? ++backwards[chunk] : 0;
      const bool begins = pass == 1 && passes > 1, ends = pass == passes && passes > 1;
      // In their last backward weights and gradients of ZeRO-3 go layer by layer, and so do casts in the last pass that reads
      // them.
      if (keeps_weights && backward && ends) whole -= part.whole_weights;
      if (scenario.parallelism.zero == 3 && backward && ends) whole -= part.whole_gradients;
      if (ends) casts -= forward ? part.casts_for_forward : part.casts_for_backward;
      if (knows_pairs && before != nullptr && before->beside_next) {
        const Bytes own = costs.parts[static_cast<std::size_t>(placement.part(s, before->chunk))].kept + part.kept;
        const Bytes there = casts_before - (ends ? part.casts_for_backward : 0);
        most = std::max(most, now - own + there + costs.pair_of(placement, s, *before, action).memory);
      }
      before = &action;
      casts_before = casts;
      if (forward) now += part.kept;
      if (!in_turns) most = std::max(most, now + whole + casts + (backward ? part.passing : 0));
      if (keeps_weights && forward && begins) whole += part.whole_weights;
      if (begins && (forward || backward)) casts += forward ? part.casts_for_forward : part.casts_for_backward;
      if (backward) {
        now -= part.kept;
        // ZeRO-2 keeps a chunk's gradients whole from its first backward to its last, then slices of them.
        if (scenario.parallelism.zero >= 2 && begins) whole += part.whole_gradients;
        if (scenario.parallelism.zero == 2 && ends) whole -= part.whole_gradients;
      }
      if (action.kind == Action::Kind::backward_input) now += part.kept_for_weights;
      if (action.kind == Action::Kind::backward_weight) now -= part.kept_for_weights;
      if ((in_turns && !action.beside_next) || action.kind == Action::Kind::backward_input)
        most = std::max(most, now + whole + casts);
    }
    if (states + most > bound.peak) bound = {states + most, s};
  }
  return bound;
}

}  // namespace tandem::studies
