#include "studies/search/pass_cost.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/mesh.h"
#include "scenarios/mesh/world.h"
#include "scenarios/schedules/chunk_layout.h"
#include "scenarios/schedules/schedule_table.h"
#include "studies/search/buffer_lives.h"
#include "studies/search/in_children.h"
#include "studies/search/small_step.h"

namespace tandem::studies {
namespace {

constexpr std::int64_t stages = 3, layers_per_stage = 2;

bool splits(const Scenario& scenario, Backwards backwards) {
  return backwards == Backwards::of_schedule && traits_of(scenario.training.schedule).splits_backward;
}

/// The scenario's layers, two of one kind on each of three stages.
Scenario small(const Scenario& scenario, const LayerClass& kind, bool split) {
  Scenario s = on_small_cluster(scenario, stages);
  ParallelismSpec& p = s.parallelism;
  p.vpp = 1;
  p.account_for_embedding = p.account_for_loss = false;
  p.first_stage_layers = p.last_stage_layers = 0;
  if (mtp_is_apart(scenario)) s.model.mtp_depth = 0;  // the loss's stage is what it is without them
  p.pipeline_layout.clear();
  s.model.layers = stages * layers_per_stage;
  s.model.layer_types = {{kind.kind.mixer, kind.kind.feed}};
  s.model.moe.first_dense_layers = kind.kind.feed == Feed::experts ? 0 : s.model.layers + s.model.mtp_depth;
  s.model.moe.every = 1;
  TrainingSpec& t = s.training;
  t.first_last_layers_bf16 = false;
  t.fp8_attention = t.fp8_attention && kind.cast;
  t.param_gather = t.param_gather && kind.cast;
  if (!kind.cast && t.fp8_output_proj) {  // the head is
    t.first_last_layers_bf16 = true;
    t.num_layers_at_start_in_bf16 = s.model.layers;
  } else if (!kind.cast) {
    t.precision = t.storage();
    t.recipe = usual_recipe(t.precision);
  }
  // What is cast is weights, too, once in a step: the second micro-batch shows what every one takes.
  const std::int64_t micro_batches = t.casts() ? 2 : 1;
  t.global_batch = p.data_replicas() * t.micro_batch * micro_batches;
  t.schedule = split ? ScheduleKind::zero_bubble_h1 : ScheduleKind::one_f_one_b;
  t.recompute.every = kind.recomputed ? 1 : 0;
  t.recompute.mlp = kind.mlp_recomputed;
  t.recompute.mlp_every = 1;
  return s;
}

/// One pass of the last micro-batch on the rank that stands for a stage: the tasks of its kernels, in their order.
struct Pass {
  std::array<std::vector<TaskId>, layers_per_stage> layers;
  std::vector<TaskId> others;
  TaskId first = no_id, last = no_id;
  TaskId receive = no_id, send = no_id;
};

class Measured {
 public:
  /// `step`: what `small` makes of the original; `world`: its ranks, folded.
  Measured(const Scenario& original, Scenario step, const World& world, PassRanks ranks, bool split)
      : scenario_(std::move(step)), split_(split) {
    const Mesh mesh(scenario_.parallelism);
    for (std::int32_t stage = 0; stage < stages; ++stage) {
      Coordinates place;
      place[Axis::pp] = stage;
      ranks_[static_cast<std::size_t>(stage)] = world.class_of[mesh.rank(place)];
    }
    has_all_ranks_ = ranks == PassRanks::all || world.ranks.size() == ranks_.size();
    dag_ = has_all_ranks_ ? lower(scenario_, world) : lower_alone(scenario_, world, {ranks_.begin(), ranks_.end()});
    paths_.emplace(dag_, original);
    find_passes();
  }

  PassCost cost() {
    PassCost cost;
    cost.has_all_ranks = has_all_ranks_;
    cost.forward = times(forward_, true);
    cost.backward = times(backward_, false);
    cost.weight_kernels = weight_kernels_;
    add_memory(cost);
    add_parameters(cost);
    return cost;
  }

 private:
  Scenario scenario_;
  bool split_, has_all_ranks_ = true;
  Dag dag_;
  std::optional<IdlePaths> paths_;
  std::array<RankIndex, stages> ranks_{};
  std::array<Pass, stages> forward_, backward_;
  Seconds weight_kernels_ = 0;

  std::int64_t first_layer(std::size_t stage) const { return static_cast<std::int64_t>(stage) * layers_per_stage; }

  void find_passes() {
    const auto micro_batch = static_cast<std::int32_t>(scenario_.training.micro_batches(scenario_.parallelism)) - 1;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      for (TaskId id = 0; id < dag_.tasks.size(); ++id) {
        const Task& task = dag_.tasks[id];
        if (task.rank != ranks_[stage] || task.micro_batch != micro_batch || task.phase == Phase::optimizer) continue;
        const bool goes_forward = task.phase == Phase::forward;
        const bool ascends = task.stream == Stream::pp_send_forward || task.stream == Stream::pp_receive_forward;
        Pass& pass = (task.axis == Axis::pp ? ascends : goes_forward) ? forward_[stage] : backward_[stage];
        if (task.axis == Axis::pp) {
          (task.op == OpKind::receive ? pass.receive : pass.send) = id;
          continue;
        }
        if (is_communication(task.op)) continue;
        const std::int64_t layer = task.layer - first_layer(stage);
        const bool in_layer = layer >= 0 && layer < layers_per_stage;
        if (split_ && task.phase == Phase::backward_weight) {
          if (stage == 1 && in_layer) weight_kernels_ += paths_->duration(id) / layers_per_stage;
          continue;
        }
        if (pass.first == no_id) pass.first = id;
        pass.last = id;
        (in_layer ? pass.layers[static_cast<std::size_t>(layer)] : pass.others).push_back(id);
      }
    }
  }

  static Seconds at_least_nothing(Seconds time) { return std::max(time, 0.0); }

  Seconds sum(const std::vector<TaskId>& tasks) const {
    return std::accumulate(tasks.begin(), tasks.end(), 0.0, [&](Seconds all, TaskId id) { return all + paths_->duration(id); });
  }

  /// Of kernels in their order: how many there are up to the last that is no weight gradient's.
  std::size_t before_cut(const std::vector<TaskId>& tasks) const {
    const auto is_weights = [&](TaskId id) { return dag_.tasks[id].phase == Phase::backward_weight; };
    const auto last = std::find_if_not(tasks.rbegin(), tasks.rend(), is_weights);
    return static_cast<std::size_t>(tasks.rend() - last);
  }
  TaskId cut(const std::vector<TaskId>& layer) const { return layer.at(before_cut(layer) - 1); }
  Seconds put_off(const std::vector<TaskId>& tasks) const {
    return sum({tasks.begin() + static_cast<std::ptrdiff_t>(before_cut(tasks)), tasks.end()});
  }

  PassTimes times(const std::array<Pass, stages>& passes, bool forward) const {
    PassTimes times;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      const Pass& pass = passes[stage];
      const std::vector<TaskId>& earlier = pass.layers[forward ? 0 : 1];
      const std::vector<TaskId>& later = pass.layers[forward ? 1 : 0];
      PassTimes::Begin& begin = times.begin[stage];
      begin.from_stream = at_least_nothing(paths_->from(pass.first, false).end[cut(earlier)]);
      if (pass.receive != no_id) begin.from_input = at_least_nothing(paths_->from(pass.receive, true).end[cut(earlier)]);
      const IdlePaths::Reached after = paths_->from(cut(later), true);
      if (pass.send != no_id) times.end[stage].to_send = at_least_nothing(after.start[pass.send]);
      times.end[stage].to_last = at_least_nothing(after.end[pass.last]);
      times.other_kernels[stage] = sum(pass.others);
      times.other_put_off[stage] = put_off(pass.others);
      if (stage != 1) continue;
      times.next = at_least_nothing(paths_->from(cut(earlier), true).end[cut(later)]);
      times.layer_kernels = (sum(pass.layers[0]) + sum(pass.layers[1])) / layers_per_stage;
      times.layer_put_off = put_off(later);
      // The earlier layer's that were put off may be among the later one's kernels.
      times.layer_alone = at_least_nothing(paths_->from(later.front(), false).end[cut(later)] - put_off(earlier));
    }
    return times;
  }

  /// By buffer: the last of a micro-batch's kernels on the rank that touches it.
  std::vector<TaskId> last_kernels(RankIndex rank, std::int32_t micro_batch) const {
    std::vector<TaskId> last(dag_.buffers.size(), no_id);
    for (TaskId id = 0; id < dag_.tasks.size(); ++id) {
      const Task& task = dag_.tasks[id];
      if (task.rank != rank || task.micro_batch != micro_batch || task.stream != Stream::compute) continue;
      for (const Operand& operand : dag_.operands_of(id)) last[dag_.buffers[operand.buffer].base] = id;
    }
    return last;
  }

  void add_memory(PassCost& cost) const {
    std::array<Bytes, stages> kept{}, for_weights{};
    for (std::size_t stage = 0; stage < stages; ++stage) {
      const std::vector<BufferLife> all = buffer_lives(dag_, paths_->order(), ranks_[stage]);
      const Pass &forth = forward_[stage], &back = backward_[stage];
      const std::vector<TaskId> read_last = last_kernels(ranks_[stage], dag_.tasks[forth.first].micro_batch);
      std::vector<std::pair<TaskId, Bytes>> changes;
      for (BufferId id = 0; id < all.size(); ++id) {
        if (all[id].first == no_id || is_persistent(dag_.buffers[id].kind)) continue;
        const Bytes bytes = dag_.buffers[id].bytes();
        if (all[id].first >= forth.first && all[id].first <= forth.last && all[id].last >= back.first) kept[stage] += bytes;
        if (dag_.tasks[all[id].first].micro_batch != dag_.tasks[forth.first].micro_batch) {
          if (stage == 1 && read_last[id] != no_id && dag_.tasks[all[id].first].layer >= 0)
            (read_last[id] <= forth.last ? cost.casts_for_forward : cost.casts_for_backward) += bytes / layers_per_stage;
          continue;
        }
        if (split_ && all[id].first <= back.last && all[id].last > back.last) for_weights[stage] += bytes;
        changes.emplace_back(all[id].first, bytes);
        changes.emplace_back(all[id].last + 1, -bytes);
      }
      std::ranges::sort(changes);
      Bytes now = 0, most = 0;
      for (const auto& [at, bytes] : changes) {
        now += bytes;
        if (at <= back.layers[1].back()) most = std::max(most, now);  // the chunk may have no other layer
      }
      cost.passing[stage] = std::max<Bytes>(0, most - kept[stage]);
    }
    cost.kept_by_layer = kept[1] / layers_per_stage;  // each its input and what its own kernels write
    cost.kept_for_weights_by_layer = for_weights[1] / layers_per_stage;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      cost.kept_beside[stage] = std::max<Bytes>(0, kept[stage] - layers_per_stage * cost.kept_by_layer);
      cost.kept_for_weights_beside[stage] =
          std::max<Bytes>(0, for_weights[stage] - layers_per_stage * cost.kept_for_weights_by_layer);
    }
    if (scenario_.training.recompute.segment > 1)  // its segment's input, if it is the first
      cost.kept_by_layer = cost.kept_for_weights_by_layer = 0;
  }

  void add_parameters(PassCost& cost) const {
    std::array<std::int64_t, stages> elements{};
    std::set<BufferId> frozen;  // which have neither gradients nor states
    for (const ParameterShard& shard : dag_.shards)
      if (shard.frozen) frozen.insert(dag_.buffers[shard.buffer].base);
    for (BufferId id = 0; id < dag_.buffers.size(); ++id) {
      const Buffer buffer = dag_.buffers[id];
      if (buffer.kind != BufferKind::parameter || buffer.base != id || frozen.contains(id)) continue;
      for (std::size_t stage = 0; stage < stages; ++stage)
        if (buffer.rank == ranks_[stage]) elements[stage] += buffer.shape.elements();
    }
    const std::int64_t of_layer = elements[1] / layers_per_stage;
    const MoeSpec& moe = scenario_.model.moe;
    const ParallelismSpec& p = scenario_.parallelism;
    if (scenario_.model.layer_kind(0).feed == Feed::experts)
      cost.layer_expert_parameters =
          moe.experts / p.ep * (scenario_.model.gated ? 3 : 2) * moe.row_width(scenario_.model.hidden) * (moe.ffn / p.etp);
    cost.layer_parameters = of_layer - cost.layer_expert_parameters;
    for (const std::size_t stage : {0, 2}) cost.other_parameters[stage] = elements[stage] - elements[1];
    cost.last_expert_parameters = scenario_.model.mtp_depth * cost.layer_expert_parameters;
    cost.other_parameters[2] -= cost.last_expert_parameters;

    Seconds updating = 0;
    for (TaskId id = 0; id < dag_.tasks.size(); ++id)
      if (dag_.tasks[id].rank == ranks_[1] && dag_.tasks[id].op == OpKind::adam) updating += paths_->duration(id);
    constexpr double without_launches = 0.95;  // more kernels of fewer elements take no less
    cost.optimizer_per_parameter = without_launches * updating / static_cast<double>(std::max<std::int64_t>(1, elements[1]));
  }
};

}  // namespace

LayerClass layer_class(const Scenario& scenario, std::int64_t layer) {
  const RecomputeSpec& recompute = scenario.training.recompute;
  return {.kind = scenario.model.layer_kind(layer),
          .recomputed = recompute.whole(layer) && !recompute.in_segments(),  // when a segment is recomputed depends on its others
          .mlp_recomputed = recompute.mlp_of(layer),
          .cast = scenario.casts_in(layer)};
}

bool has_whole_backwards(const Scenario& scenario) {
  const ScheduleTraits& traits = traits_of(scenario.training.schedule);
  return traits.splits_backward && traits.pairs_passes;
}

PassCosts::Key PassCosts::key_of(const Scenario& scenario, const LayerClass& kind, PassRanks ranks, Backwards backwards) {
  const ParallelismSpec& p = scenario.parallelism;
  const TrainingSpec& t = scenario.training;
  return {.layer = kind,
          .ranks = ranks,
          .tp = p.tp,
          .cp = p.cp,
          .ep = p.ep,
          .etp = p.etp,
          .world_size = p.world_size(),
          .packed_alike = packs_alike(scenario),
          .sp = p.sp,
          .own_expert_axis = p.own_expert_axis,
          .scatter_gather = p.scatter_gather,
          .cp_method = p.cp_method,
          .cp_layout = p.cp_layout,
          .cp_ulysses = p.cp_ulysses,
          .dispatcher = p.dispatcher,
          .sequence = t.sequence,
          .micro_batch = t.micro_batch,
          .optimizer = t.optimizer,
          .precision = t.precision,
          .grad_dtype = t.grad_dtype,
          .moment_dtype = t.moment_dtype,
          .second_moment_dtype = t.second_moment_dtype,
          .master_dtype = t.master_dtype,
          .recipe = t.recipe,
          .param_gather = t.param_gather,
          .fp8_attention = t.fp8_attention,
          .fp8_output_proj = t.fp8_output_proj,
          .fp8_activation_input = t.fp8_activation_input,
          .attention = t.attention,
          .grad_compression = t.grad_compression,
          .recompute_segment = t.recompute.in_segments() ? t.recompute.segment : 1,
          .overlaps_dp = t.overlap_dp,
          .overlaps_tp = t.overlap_tp,
          .overlaps_ep = t.overlap_ep,
          .gates_at_experts = t.gates_at_experts,
          .recomputes_norm = t.recompute.norm,
          .recomputes_activation = t.recompute.activation,
          .recomputes_attention = t.recompute.attention,
          .recomputes_mla_up = t.recompute.mla_up,
          .splits_backward = splits(scenario, backwards),
          .mtp_apart = mtp_is_apart(scenario)};
}

PassCosts::Key PassCosts::mesh_of(const Key& key, const Scenario& scenario) {
  Key mesh = key;
  mesh.ranks = PassRanks::all;
  mesh.layer.recomputed = mesh.layer.mlp_recomputed = mesh.layer.cast = false;
  mesh.world_size = 0;  // of the whole step
  mesh.packed_alike = true;
  mesh.sp = false;
  // How many tokens the experts of a rank take, and what documents are in a batch, tell ranks apart.
  if (scenario.model.moe.experts == 0 && !scenario.training.documents.any()) mesh.micro_batch = 0;
  mesh.recompute_segment = 1;
  mesh.recomputes_norm = mesh.recomputes_activation = mesh.recomputes_attention = mesh.recomputes_mla_up = false;
  mesh.splits_backward = false;
  return mesh;
}

PassCost PassCosts::measured(const Key& key, const Scenario& scenario) {
  Scenario step = small(scenario, key.layer, key.splits_backward);
  const Key mesh = mesh_of(key, scenario);
  auto world = worlds_.find(mesh);
  if (world == worlds_.end()) world = worlds_.emplace(mesh, make_world(step, true)).first;
  return Measured(scenario, std::move(step), world->second, key.ranks, key.splits_backward).cost();
}

/// Null where it has to be found. What left nothing out is the cost among all ranks, too.
const PassCost* PassCosts::known(Key key) const {
  if (const auto same = known_.find(key); same != known_.end()) return &same->second;
  key.ranks = PassRanks::of_stages;
  const auto whole = known_.find(key);
  return whole != known_.end() && whole->second.has_all_ranks ? &whole->second : nullptr;
}

const PassCost& PassCosts::of(const Scenario& scenario, const LayerClass& kind, PassRanks ranks, Backwards backwards) {
  const Key key = key_of(scenario, kind, ranks, backwards);
  const PassCost* cost = known(key);
  return cost != nullptr ? *cost : known_.emplace(key, measured(key, scenario)).first->second;
}

void PassCosts::ask_for(const Scenario& scenario, PassRanks ranks) {
  std::optional<LayerClass> before;
  const std::int64_t layers = scenario.model.layers + (mtp_is_apart(scenario) ? scenario.model.mtp_depth : 0);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const LayerClass kind = layer_class(scenario, layer);
    if (kind == before) continue;
    before = kind;
    for (const Backwards backwards : {Backwards::of_schedule, Backwards::whole}) {
      if (backwards == Backwards::whole && !has_whole_backwards(scenario)) continue;
      const Key key = key_of(scenario, kind, ranks, backwards);
      if (known(key) == nullptr) asked_for_.try_emplace(key, scenario);
    }
  }
}

void PassCosts::find(std::size_t jobs, const std::function<void(std::size_t done, std::size_t of)>& progress) {
  std::vector<std::pair<Key, Scenario>> asked(asked_for_.begin(), asked_for_.end());
  asked_for_.clear();
  std::ranges::sort(asked, {}, [](const auto& one) { return std::pair(mesh_of(one.first, one.second), one.first); });
  const std::vector<PassCost> costs = found_in_children<PassCost>(
      asked.size(), jobs, [&](std::size_t i) { return measured(asked[i].first, asked[i].second); }, progress);
  for (std::size_t i = 0; i < asked.size(); ++i) known_.emplace(asked[i].first, costs[i]);
}

}  // namespace tandem::studies
