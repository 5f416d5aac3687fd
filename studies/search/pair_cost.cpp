#include "studies/search/pair_cost.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "scenarios/lowering/lower_rank.h"
#include "scenarios/mesh/mesh.h"
#include "scenarios/schedules/chunk_placement.h"
#include "scenarios/schedules/stage_actions.h"
#include "studies/search/buffer_lives.h"
#include "studies/search/exchange_waits.h"
#include "studies/search/in_children.h"
#include "studies/search/small_step.h"

namespace tandem::studies {
namespace {

constexpr std::int64_t micro_batches_of_pair = 8;  ///< more than are lowered: copies of the model have half of them each

Scenario step_of_pair(const Scenario& scenario) {
  Scenario step = on_small_cluster(scenario, scenario.parallelism.pp);
  step.training.global_batch = step.parallelism.data_replicas() * step.training.micro_batch * micro_batches_of_pair;
  return step;
}

/// The pair, after what is done once for a chunk's first passes, and before the backward of its forward.
class PairActions {
 public:
  PairActions(const ChunkPlacement& placement, std::int32_t forward_chunk, std::int32_t backward_chunk) : placement_(placement) {
    pass(Action::Kind::forward, forward_chunk, next(forward_chunk));
    pass(Action::Kind::backward, forward_chunk, last(forward_chunk));
    if (backward_chunk != forward_chunk) {
      pass(Action::Kind::forward, backward_chunk, next(backward_chunk));
      pass(Action::Kind::backward, backward_chunk, last(backward_chunk));
    }
    backward = {Action::Kind::backward, next(backward_chunk), backward_chunk};
    pass(Action::Kind::forward, backward_chunk, backward.micro_batch);
    forward = {Action::Kind::forward, next(forward_chunk), forward_chunk, true};
    all.push_back(forward);
    all.push_back(backward);
    pass(Action::Kind::backward, forward_chunk, forward.micro_batch);
  }

  std::vector<Action> all;
  Action forward, backward;

 private:
  const ChunkPlacement& placement_;
  std::map<std::int32_t, std::int32_t> begun_;  ///< by chunk: its micro-batches

  void pass(Action::Kind kind, std::int32_t chunk, std::int32_t micro_batch) { all.push_back({kind, micro_batch, chunk}); }
  std::int32_t first(std::int32_t chunk) const {
    return placement_.copies() > 1 ? chunk * static_cast<std::int32_t>(micro_batches_of_pair / 2) : 0;
  }
  std::int32_t next(std::int32_t chunk) { return first(chunk) + begun_[chunk]++; }
  std::int32_t last(std::int32_t chunk) { return first(chunk) + begun_[chunk] - 1; }
};

bool goes_forward(Stream stream) {
  return stream == Stream::pp_send_forward || stream == Stream::pp_receive_forward ||
         stream == Stream::pp_send_forward_descending || stream == Stream::pp_receive_forward_descending;
}

/// A pass of the pair: its transfers, and its first and last kernel.
struct PassOfPair {
  TaskId receive = no_id, send = no_id, first = no_id, last = no_id;
};

PassOfPair find_pass(const Dag& dag, const Action& action) {
  const bool forward = action.kind == Action::Kind::forward;
  PassOfPair pass;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.micro_batch != action.micro_batch || task.chunk != action.chunk || task.phase == Phase::optimizer) continue;
    if (task.axis == Axis::pp) {
      if (goes_forward(task.stream) == forward) (task.op == OpKind::receive ? pass.receive : pass.send) = id;
    } else if (task.stream == Stream::compute && (task.phase == Phase::forward) == forward) {
      if (pass.first == no_id) pass.first = id;
      pass.last = id;
    }
  }
  return pass;
}

PairCost cost_of(const IdlePaths& paths, const PassOfPair& forward, const PassOfPair& backward) {
  const auto ends = [&](TaskId source, bool from_end) {
    if (source == no_id) return PairCost::Ends{};
    const IdlePaths::Reached reached = paths.from(source, from_end);
    const auto end_of = [&](const PassOfPair& pass) {
      return pass.send != no_id ? reached.start[pass.send] : reached.end[pass.last];
    };
    return PairCost::Ends{end_of(forward), end_of(backward), reached.end[std::max(forward.last, backward.last)]};
  };
  return {.from_stream = ends(std::min(forward.first, backward.first), false),
          .from_forward_input = ends(forward.receive, true),
          .from_backward_input = ends(backward.receive, true),
          .memory = 0};
}

/// Of what kernels of the two micro-batches touch first.
Bytes memory_of(const Dag& dag, const IdlePaths& paths, RankIndex rank, const PassOfPair& forward, const PassOfPair& backward) {
  const auto is_of = [&](const Task& task, const PassOfPair& pass) {
    return task.micro_batch == dag.tasks[pass.first].micro_batch && task.chunk == dag.tasks[pass.first].chunk;
  };
  const std::vector<BufferLife> lives = buffer_lives(dag, paths.order(), rank);
  const TaskId begin = std::min(forward.first, backward.first), end = std::max(forward.last, backward.last);
  std::vector<std::pair<TaskId, Bytes>> changes;
  for (BufferId id = 0; id < lives.size(); ++id) {
    if (lives[id].first == no_id || is_persistent(dag.buffers[id].kind) || lives[id].first > end || lives[id].last < begin)
      continue;
    const Task& first = dag.tasks[lives[id].first];
    if (!is_of(first, forward) && !is_of(first, backward)) continue;
    changes.emplace_back(std::max(lives[id].first, begin), dag.buffers[id].bytes());
    changes.emplace_back(lives[id].last + 1, -dag.buffers[id].bytes());
  }
  std::ranges::sort(changes);  // what is freed comes first
  Bytes now = 0, most = 0;
  for (const auto& [at, bytes] : changes) {
    now += bytes;
    if (at <= end) most = std::max(most, now);
  }
  return most;
}

/// By stage, by the forward's chunk, by the backward's; none where passes hide no exchanges.
template <typename Visit>
void for_each_pair(const Scenario& scenario, const Visit& visit) {
  if (!hides_exchanges(scenario)) return;
  const std::int32_t chunks = ChunkPlacement(scenario).chunks();
  for (std::int32_t stage = 0; stage < scenario.parallelism.pp; ++stage)
    for (std::int32_t forward = 0; forward < chunks; ++forward)
      for (std::int32_t backward = 0; backward < chunks; ++backward) visit(stage, forward, backward);
}

}  // namespace

bool hides_exchanges(const Scenario& scenario) { return scenario.overlaps_ep() && pairs_passes(scenario); }

PairCosts::Key PairCosts::key_of(const Scenario& scenario, std::int32_t stage, std::int32_t forward_chunk,
                                 std::int32_t backward_chunk) {
  const ChunkPlacement placement(scenario);
  const std::vector<ChunkLayout> layouts = lay_out_chunks(scenario);
  const auto contents = [&](std::int32_t chunk) {
    const ChunkLayout& layout = layouts[static_cast<std::size_t>(placement.part(stage, chunk))];
    std::vector<LayerClass> kinds;
    for (std::int64_t layer = 0; layer < layout.layers; ++layer)
      kinds.push_back(layer_class(scenario, layout.first_layer + layer));
    for (std::int64_t depth = 0; depth < layout.mtp; ++depth)
      kinds.push_back(layer_class(scenario, scenario.model.layers + depth));
    return Contents{kinds, layout.embedding, layout.loss, layout.mtp, layout.states_in};
  };
  return {.step = PassCosts::key_of(scenario, {}, PassRanks::of_stages, Backwards::whole),
          .forward = contents(forward_chunk),
          .backward = contents(backward_chunk)};
}

PairCosts::MeshKey PairCosts::mesh_of(const Key& key, const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  return {PassCosts::mesh_of(key.step, scenario), p.pp, p.vpp, scenario.training.schedule};
}

PairCost PairCosts::measured(const Key& key, const Pair& pair) {
  const Scenario step = step_of_pair(pair.scenario);
  const MeshKey mesh_key = mesh_of(key, pair.scenario);
  auto world = worlds_.find(mesh_key);
  if (world == worlds_.end()) world = worlds_.emplace(mesh_key, make_world(step, true)).first;
  const ChunkPlacement placement(step);
  const PairActions actions(placement, pair.forward_chunk, pair.backward_chunk);
  Coordinates place;
  place[Axis::pp] = pair.stage;
  const RankIndex rank = world->second.class_of[Mesh(step.parallelism).rank(place)];
  DagBuilder builder;
  builder.dag().software = step.software;
  builder.dag().devices = world->second.devices;
  builder.dag().links = world->second.links;
  add_ranks_and_communicators(world->second, builder);
  lower_rank(
      builder, step, world->second, rank, [&](StageProgram& program) { program.lower_step(actions.all); },
      scenarios::blocks_of_sharded(step));
  Dag dag = builder.finish();
  IdlePaths paths(dag, pair.scenario);
  for (const auto& [earlier, later, least] : kernels_apart(dag, paths, rank)) paths.hold_apart(earlier, later, least);
  const PassOfPair forward = find_pass(dag, actions.forward), backward = find_pass(dag, actions.backward);
  PairCost cost = cost_of(paths, forward, backward);
  cost.memory = memory_of(dag, paths, rank, forward, backward);
  return cost;
}

const PairCost& PairCosts::of(const Scenario& scenario, std::int32_t stage, std::int32_t forward_chunk,
                              std::int32_t backward_chunk) {
  const Key key = key_of(scenario, stage, forward_chunk, backward_chunk);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, measured(key, {scenario, stage, forward_chunk, backward_chunk})).first->second;
}

std::vector<PairCost> PairCosts::all_of(const Scenario& scenario) {
  std::vector<PairCost> costs;
  for_each_pair(scenario, [&](std::int32_t stage, std::int32_t forward, std::int32_t backward) {
    costs.push_back(of(scenario, stage, forward, backward));
  });
  return costs;
}

void PairCosts::ask_for(const Scenario& scenario) {
  for_each_pair(scenario, [&](std::int32_t stage, std::int32_t forward, std::int32_t backward) {
    const Key key = key_of(scenario, stage, forward, backward);
    if (!known_.contains(key)) asked_for_.try_emplace(key, Pair{scenario, stage, forward, backward});
  });
}

void PairCosts::find(std::size_t jobs, const std::function<void(std::size_t done, std::size_t of)>& progress) {
  std::vector<std::pair<Key, Pair>> asked(asked_for_.begin(), asked_for_.end());
  asked_for_.clear();
  std::ranges::sort(asked, {}, [](const auto& one) { return mesh_of(one.first, one.second.scenario); });
  const std::vector<PairCost> costs = found_in_children<PairCost>(
      asked.size(), jobs, [&](std::size_t i) { return measured(asked[i].first, asked[i].second); }, progress);
  for (std::size_t i = 0; i < asked.size(); ++i) known_.emplace(asked[i].first, costs[i]);
}

}  // namespace tandem::studies
