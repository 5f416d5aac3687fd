#include "studies/search/step_bound.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "scenarios/schedules/stage_actions.h"

namespace tandem::studies {
namespace {

std::int32_t micro_batches_of(const Scenario& scenario) {
  return static_cast<std::int32_t>(scenario.training.micro_batches(scenario.parallelism));
}

bool overlaps_data(const Scenario& scenario) { return scenario.training.overlap_dp; }

/// Whether each layer's weights are gathered when a pass comes to it, and its gradients reduced when the last has come, while the
/// rank computes nothing (scenarios/lowering/sharded_weights.h). Elsewhere that comes after all passes, if no pass hides it.
bool exchanges_within_passes(const Scenario& scenario) { return !overlaps_data(scenario) && scenario.parallelism.zero == 3; }

/// Everything that goes over a stage's data-parallel stream, one after the other.
Seconds data_stream(const Scenario& scenario, const StageCosts& costs, const ChunkPlacement& placement, std::int32_t stage) {
  const ParallelismSpec& p = scenario.parallelism;
  Seconds busy = 0;
  for (std::int32_t chunk = 0; chunk < placement.chunks(); ++chunk) {
    const PartCosts& part = costs.parts[static_cast<std::size_t>(placement.part(stage, chunk))];
    double gathers = 1;
    if (p.zero == 3 && p.gather_per_micro_batch && p.prefetch == 1) {
      // Of each micro-batch twice, but for a unit at the turn and one between micro-batches: the first and the last of the chunk.
      const double layers = p.pipeline_layout.empty()
                                ? static_cast<double>(scenario.model.layers) / static_cast<double>(p.pp * p.vpp)
                                : static_cast<double>(part.layers);
      const double twice = p.reshard_after_forward ? 2 * std::max(0.0, 1 - 2 / layers) : 1;
      gathers = std::max(1.0, twice * micro_batches_of(scenario));
    }
    busy += gathers * part.gather + part.reduce;
  }
  return busy;
}

/// How long a micro-batch's passes through a part occupy their rank.
Seconds time_after_each_other(const PartCosts& part) {
  return part.forward.from_stream + part.backward.from_stream + part.weights;
}

/// The same where some of them go on in turns with others, and some backwards may be split.
Seconds time_in_turns(const PartCosts& part, const Scenario& scenario) {
  if (scenario.overlaps_ep()) return part.forward.kernels + part.backward.kernels + part.weights;
  return part.forward.in_turns.pieces + std::min(part.whole.in_turns.pieces, part.backward.in_turns.pieces + part.weights);
}

/// A path of passes through the stages' schedules.
class Pipeline {
 public:
  Pipeline(const Scenario& scenario, const StageCosts& costs, const std::vector<std::vector<Action>>& actions)
      : scenario_(scenario),
        costs_(costs),
        actions_(actions),
        placement_(scenario),
        micro_batches_(micro_batches_of(scenario)),
        stages_(static_cast<std::int32_t>(scenario.parallelism.pp)),
        exchanges_are_hidden_(scenario.overlaps_ep()),
        puts_off_weights_(exchanges_are_hidden_ && traits_of(scenario.training.schedule).splits_backward),
        sent_forward_(parts() * static_cast<std::size_t>(micro_batches_) * copies(), unknown),
        sent_backward_(sent_forward_.size(), unknown),
        stage_(static_cast<std::size_t>(stages_)) {
    for (std::int32_t s = 0; s < stages_; ++s) {
      Stage& stage = stage_[static_cast<std::size_t>(s)];
      stage.forwards_to_come.assign(static_cast<std::size_t>(placement_.chunks()), true);
      stage.backwards_left.assign(static_cast<std::size_t>(placement_.chunks()), 0);
      for (const Action& action : actions_[static_cast<std::size_t>(s)])
        if (adds_gradients(action.kind)) ++stage.backwards_left[static_cast<std::size_t>(action.chunk)];
      stage.gathered.assign(stage.backwards_left.size(), 0);
      Seconds gathered = 0;
      for (const std::int16_t c : placement_.chunks_by_part(s)) {
        if (overlaps_data(scenario_)) gathered += part_of(s, c).gather;
        stage.gathered[static_cast<std::size_t>(c)] = gathered;
      }
    }
  }

  Seconds end() {
    for (bool moves = true; moves;) {
      moves = false;
      for (std::int32_t s = 0; s < stages_; ++s)
        while (advance(s)) moves = true;
    }
    Seconds last = 0;
    for (std::int32_t s = 0; s < stages_; ++s) {
      const Stage& stage = stage_[static_cast<std::size_t>(s)];
      if (stage.next != actions_[static_cast<std::size_t>(s)].size()) throw std::logic_error("a schedule waits for itself");
      Seconds update = 0, gather = 0, reduce = 0;
      for (std::int32_t c = 0; c < placement_.chunks(); ++c) {
        update += part_of(s, c).update;
        gather += part_of(s, c).gather;
        reduce += part_of(s, c).reduce;
      }
      const bool after_passes = !overlaps_data(scenario_) && !exchanges_within_passes(scenario_);
      const Seconds passed = std::max(stage.free, stage.reduced) + (after_passes ? reduce : 0);
      const Seconds stage_end = passed + update + (after_passes ? gather : 0);
      last = std::max({last, stage_end, data_stream(scenario_, costs_, placement_, s)});
    }
    return last;
  }

 private:
  static constexpr Seconds unknown = -1;
  struct Stage {
    std::size_t next = 0;
    Seconds free = 0;     ///< when its compute is
    Seconds reached = 0;  ///< when the first layer of the pass that comes next may be gathered (ZeRO-3)
    Seconds reduced = 0;  ///< when its data-parallel stream has done what came so far
    std::vector<bool> forwards_to_come;
    std::vector<std::int32_t> backwards_left;
    std::vector<Seconds> gathered;  ///< by chunk: its weights, and those gathered before, from the begin of the step
    Seconds gathered_by_pass = 0;   ///< with ZeRO-3, those of chunks that a forward has come to
  };
  const Scenario& scenario_;
  const StageCosts& costs_;
  const std::vector<std::vector<Action>>& actions_;
  const ChunkPlacement placement_;
  const std::int32_t micro_batches_, stages_;
  const bool exchanges_are_hidden_;                    ///< passes in turns are cut within their layers
  const bool puts_off_weights_;                        ///< so that a whole backward is in the order of a split one
  std::vector<Seconds> sent_forward_, sent_backward_;  ///< when the pass's result leaves its stage
  std::vector<Stage> stage_;

  std::size_t parts() const { return static_cast<std::size_t>(placement_.parts()); }
  std::size_t copies() const { return static_cast<std::size_t>(placement_.copies()); }
  const PartCosts& part_of(std::int32_t stage, std::int32_t chunk) const {
    return costs_.parts[static_cast<std::size_t>(placement_.part(stage, chunk))];
  }
  static bool adds_gradients(Action::Kind kind) {
    return kind == Action::Kind::backward || kind == Action::Kind::backward_weight;
  }

  /// Copies of the model have parts of the same numbers, and micro-batches of their own.
  std::size_t index(std::int32_t part, const Action& action) const {
    return static_cast<std::size_t>(part) * static_cast<std::size_t>(micro_batches_) +
           static_cast<std::size_t>(action.micro_batch);
  }

  Seconds transfer(std::int32_t from, std::int32_t to) const {
    if (from == to || costs_.to_next.empty()) return 0;
    const bool wraps = std::abs(from - to) != 1;
    return costs_.to_next[static_cast<std::size_t>(wraps ? stages_ - 1 : std::min(from, to))];
  }

  /// The stage that holds `part` for this action's copy of the model.
  std::int32_t stage_of(std::int32_t part, const Action& action) const {
    const bool mirrored = placement_.copies() > 1 && action.chunk == 1;
    return mirrored ? stages_ - 1 - part : placement_.stage(part);
  }

  struct Input {
    bool is_there = true, is_received = false;
    Seconds at = 0;
  };
  Input input(std::int32_t stage, const Action& action) const {
    const std::int32_t part = placement_.part(stage, action.chunk);
    const bool forward = action.kind == Action::Kind::forward;
    const std::int32_t before = forward ? part - 1 : part + 1;
    if (action.kind == Action::Kind::backward_weight || before < 0 || before == placement_.parts()) return {};
    const Seconds sent = (forward ? sent_forward_ : sent_backward_)[index(before, action)];
    if (sent == unknown) return {.is_there = false};
    return {.is_received = true, .at = sent + transfer(stage_of(before, action), stage)};
  }

  Seconds end_of(std::int32_t stage, const Action& action, const Input& in, Seconds begin) const {
    if (action.kind == Action::Kind::backward_weight) return begin + part_of(stage, action.chunk).weights;
    const PartPass& pass = pass_of(stage, action);
    return in.is_received ? std::max(begin + pass.from_stream, in.at + pass.from_input) : begin + pass.from_stream;
  }

  /// Of a pass that is no weights' alone.
  const PartPass& pass_of(std::int32_t stage, const Action& action) const {
    const PartCosts& part = part_of(stage, action.chunk);
    if (action.kind == Action::Kind::forward) return part.forward;
    return action.kind == Action::Kind::backward && !puts_off_weights_ ? part.whole : part.backward;
  }

  /// Of a backward that is whole although the schedule splits others, where its costs are those of the split.
  Seconds weights_besides(std::int32_t stage, const Action& action) const {
    return action.kind == Action::Kind::backward && puts_off_weights_ ? part_of(stage, action.chunk).weights : 0;
  }

  void leave(std::int32_t stage, const Action& action, Seconds end) {
    if (action.kind != Action::Kind::backward_weight) send(stage, action, end + pass_of(stage, action).to_send);
  }
  void send(std::int32_t stage, const Action& action, Seconds at) {
    const std::size_t place = index(placement_.part(stage, action.chunk), action);
    (action.kind == Action::Kind::forward ? sent_forward_ : sent_backward_)[place] = at;
  }

  /// The first forward of a chunk ends when the last of its weights are there, and those of chunks that forwards came to before.
  /// With ZeRO-3 those of a layer are gathered no more than `prefetch` layers ahead (scenarios/lowering/sharded_weights.h): all
  /// when the pass before has begun, if that has so many; all but so many when the pass itself has begun; all but one more when
  /// its first layer has ended. The last layer comes after. Without overlap none is gathered ahead.
  Seconds with_weights(std::int32_t s, Stage& stage, const Action& action, const Input& in, Seconds begin, Seconds end) {
    if (action.kind != Action::Kind::forward || !stage.forwards_to_come[static_cast<std::size_t>(action.chunk)]) return end;
    stage.forwards_to_come[static_cast<std::size_t>(action.chunk)] = false;
    const ParallelismSpec& p = scenario_.parallelism;
    const PartCosts& part = part_of(s, action.chunk);
    if (p.zero < 3) return std::max(end, stage.gathered[static_cast<std::size_t>(action.chunk)]);
    if (exchanges_within_passes(scenario_)) return std::max(end, begin + part.gather);  // of a layer's kernels, some need it not
    const Seconds gathered = stage.gathered_by_pass += part.gather;
    const PassInTurns& pieces = part.forward.in_turns;
    const auto with_those_after = [&](Seconds date, std::int64_t layers) {
      const Seconds gathers = part.layers_gather - static_cast<double>(layers) * part.most_gather;
      return layers < part.layers && gathers > 0 ? date + gathers + pieces.last : 0;
    };
    const Seconds first_end = in.is_received ? in.at + pieces.from_input : begin + pieces.first;
    return std::max({end, gathered, with_those_after(stage.reached, 0), with_those_after(begin, p.prefetch),
                     with_those_after(first_end, std::int64_t{p.prefetch} + 1)});
  }

  /// The first layer of the pass that comes next is gathered when all of this one's layers but `prefetch` have ended.
  void reach(std::int32_t s, Stage& stage, const Action& action, const Input& in, Seconds begin) {
    const std::int64_t layers = part_of(s, action.chunk).layers, ahead = scenario_.parallelism.prefetch;
    if (action.kind == Action::Kind::backward_weight || layers < ahead) return;
    stage.reached = begin;
    if (layers == ahead) return;
    const PassInTurns& pieces = pass_of(s, action).in_turns;
    const Seconds first_end = in.is_received ? in.at + pieces.from_input : begin + pieces.first;
    stage.reached = std::max(begin + pieces.pieces - pieces.closing - static_cast<double>(ahead) * pieces.longest, first_end);
  }

  /// Reductions of a chunk begin in its last backward. Where they go on within it, the rank computes nothing meanwhile.
  void reduce(std::int32_t s, Stage& stage, const Action& action, Seconds begin) {
    if (!adds_gradients(action.kind) || --stage.backwards_left[static_cast<std::size_t>(action.chunk)] > 0) return;
    const PartCosts& part = part_of(s, action.chunk);
    if (overlaps_data(scenario_))
      stage.reduced = std::max(stage.reduced, begin) + part.reduce;
    else if (exchanges_within_passes(scenario_))
      stage.reduced =
          begin + part.reduce + (action.kind == Action::Kind::backward_weight ? part.weights : pass_of(s, action).kernels);
  }

  bool advance(std::int32_t s) {
    Stage& stage = stage_[static_cast<std::size_t>(s)];
    const std::vector<Action>& actions = actions_[static_cast<std::size_t>(s)];
    if (stage.next == actions.size()) return false;
    const Action& action = actions[stage.next];
    const Input in = input(s, action);
    if (!in.is_there) return false;
    const Seconds begin = stage.free;
    if (!action.beside_next) {
      const Seconds end = with_weights(s, stage, action, in, begin, end_of(s, action, in, begin));
      leave(s, action, end);
      reduce(s, stage, action, begin);
      reach(s, stage, action, in, begin);
      stage.free = end + weights_besides(s, action);
      if (exchanges_within_passes(scenario_)) stage.free = std::max(stage.free, stage.reduced);
      ++stage.next;
      return true;
    }
    const Action& other = actions[stage.next + 1];  // a backward
    const Input other_in = input(s, other);
    if (!other_in.is_there) return false;
    const PairEnds ends = exchanges_are_hidden_ ? beside_exchanges(s, {action, in}, {other, other_in}, begin)
                                                : in_turns(s, {action, in}, {other, other_in}, begin);
    const Seconds weights = with_weights(s, stage, action, in, begin, 0), forward_end = std::max(ends.forward, weights);
    if (exchanges_are_hidden_) {
      send(s, action, forward_end);
      send(s, other, ends.backward);
    } else {
      leave(s, action, forward_end);
      leave(s, other, ends.backward);
    }
    reduce(s, stage, action, begin);
    reduce(s, stage, other, begin);
    reach(s, stage, action, in, begin);
    stage.free = std::max(ends.both, weights);
    if (exchanges_within_passes(scenario_)) stage.free = std::max(stage.free, stage.reduced);
    stage.next += 2;
    return true;
  }

  /// Of a pair's kernels; of passes that hide exchanges, when what each gives can be sent, and of all kernels.
  struct PairEnds {
    Seconds forward = 0, backward = 0, both = 0;
  };
  using Received = std::pair<const Action&, const Input&>;

  PairEnds beside_exchanges(std::int32_t s, Received forward, Received backward, Seconds begin) const {
    const PairCost& pair = costs_.pair_of(placement_, s, forward.first, backward.first);
    const auto last = [&](Seconds PairCost::Ends::*end) {
      Seconds at = begin + pair.from_stream.*end;
      if (forward.second.is_received) at = std::max(at, forward.second.at + pair.from_forward_input.*end);
      if (backward.second.is_received) at = std::max(at, backward.second.at + pair.from_backward_input.*end);
      return at;
    };
    return {last(&PairCost::Ends::forward), last(&PairCost::Ends::backward), last(&PairCost::Ends::both)};
  }

  /// Piece by piece, the forward's first. What comes after a pass's input is all of it but its beginning, and all of the other
  /// but its own; what comes after a pass's end is how many layers the other has more, and an end of the model.
  PairEnds in_turns(std::int32_t s, Received forward, Received backward, Seconds begin) const {
    const PassInTurns &forth = pass_of(s, forward.first).in_turns, &back = pass_of(s, backward.first).in_turns;
    const std::int64_t forths = part_of(s, forward.first.chunk).layers, backs = part_of(s, backward.first.chunk).layers;
    const Seconds all = forth.pieces + back.pieces;
    Seconds end = begin + all;
    if (forward.second.is_received) end = std::max(end, forward.second.at + forth.from_input + all - forth.first - back.opening);
    // A forward of one layer has ended when the backward's input is awaited.
    const Seconds without_wait = end;
    if (backward.second.is_received) end = std::max(end, backward.second.at + back.from_input + all - forth.first - back.first);
    const auto more = [](std::int64_t layers, std::int64_t others) {
      return static_cast<double>(std::max<std::int64_t>(0, layers - others));
    };
    const Seconds after_forward = back.last + more(backs, forths) * back.longest;
    const Seconds after_backward = forth.closing + more(forths, backs) * forth.longest;
    return {(forths > 1 ? end : without_wait) - after_forward, end - after_backward, end};
  }
};

}  // namespace

Seconds coarse_step_bound(const Scenario& scenario, const StageCosts& costs) {
  const ChunkPlacement placement(scenario);
  const bool in_turns = pairs_passes(scenario);
  const double passes = static_cast<double>(micro_batches_of(scenario)) / placement.copies();
  const bool ends_with_first_backward = !traits_of(scenario.training.schedule).splits_backward;
  const auto stages = static_cast<std::int32_t>(scenario.parallelism.pp);
  Seconds most = 0, there = 0, back = 0;  // to the stage, and from it to the first
  for (std::int32_t s = 0; s < stages; ++s) {
    Seconds busy = 0, update = 0, reduce = 0, gather = 0;
    for (std::int32_t c = 0; c < placement.chunks(); ++c) {
      const PartCosts& part = costs.parts[static_cast<std::size_t>(placement.part(s, c))];
      busy += passes * (in_turns ? time_in_turns(part, scenario) : time_after_each_other(part));
      update += part.update;
      gather += part.gather;
      reduce += part.reduce;
    }
    const Seconds after = overlaps_data(scenario) || exchanges_within_passes(scenario) ? update : update + gather + reduce;
    // What comes after a stage's own passes goes on while others come to their last.
    const Seconds own_end = there + busy + (s == 0 || !overlaps_data(scenario) ? after : 0);
    most = std::max({most, there + busy + back, own_end, data_stream(scenario, costs, placement, s)});
    if (in_turns || s + 1 == stages) continue;
    const PartCosts& part = costs.parts[static_cast<std::size_t>(placement.part(s, 0))];
    there += (s == 0 ? part.forward.from_stream : part.forward.from_input) + part.forward.to_send +
             costs.to_next[static_cast<std::size_t>(s)];
    if (ends_with_first_backward)
      back += part.backward.from_input + costs.parts[static_cast<std::size_t>(placement.part(s + 1, 0))].backward.to_send +
              costs.to_next[static_cast<std::size_t>(s)];
  }
  return most;
}

Seconds step_bound(const Scenario& scenario, const StageCosts& costs, Schedules& schedules) {
  return Pipeline(scenario, costs, schedules.of(scenario, micro_batches_of(scenario))).end();
}

}  // namespace tandem::studies
