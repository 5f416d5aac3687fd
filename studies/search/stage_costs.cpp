#include "studies/search/stage_costs.h"

#include <algorithm>
#include <array>

#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/schedules/chunk_layout.h"

namespace tandem::studies {
namespace {

constexpr std::size_t at(ChunkPlace place) { return static_cast<std::size_t>(place); }

/// Of a plan's layers, each kind's cost.
class KindCosts {
 public:
  KindCosts(PassCosts& passes, const Scenario& scenario, PassRanks ranks, Backwards backwards)
      : passes_(passes), scenario_(scenario), ranks_(ranks), backwards_(backwards) {}
  const PassCost& of(const LayerClass& kind) {
    const auto known = std::ranges::find(known_, kind, &Known::first);
    return *(known != known_.end() ? *known : known_.emplace_back(kind, &passes_.of(scenario_, kind, ranks_, backwards_))).second;
  }

 private:
  PassCosts& passes_;
  const Scenario& scenario_;
  PassRanks ranks_;
  Backwards backwards_;
  using Known = std::pair<LayerClass, const PassCost*>;
  std::vector<Known> known_;  ///< a handful
};

/// How long weight gradients that layers of one kind put off run before the cut of a layer of the other kind that comes next:
/// what an exchange is to hide waits for the next one, in a layer that has any.
Seconds put_off_between(const LayerClass& before, const LayerClass& next, const PassTimes& of_before) {
  const auto exchanges = [](const LayerClass& layer) { return layer.kind.feed == Feed::experts; };
  return exchanges(before) && !exchanges(next) ? 0 : of_before.layer_put_off;
}

/// `kinds`: of the layers in the order in which the pass comes to them. `begins`, `ends`: where in the model it does.
PartPass pass_through(KindCosts& costs, const std::vector<LayerClass>& kinds, const LayerClass& of_ends,
                      PassTimes PassCost::*which, ChunkPlace begins, ChunkPlace ends) {
  PartPass pass;
  PassInTurns& in_turns = pass.in_turns;
  const PassTimes& at_ends = costs.of(of_ends).*which;
  if (begins != ChunkPlace::middle) in_turns.opening = at_ends.other_kernels[at(begins)];
  if (ends != ChunkPlace::middle) in_turns.closing = at_ends.other_kernels[at(ends)];
  pass.kernels = in_turns.pieces = in_turns.opening + in_turns.closing;
  if (kinds.empty()) {  // an end of the model alone
    pass.from_stream = pass.from_input = in_turns.first = in_turns.last = pass.kernels;
    pass.to_send = begins != ChunkPlace::middle ? -at_ends.other_put_off[at(begins)] : 0;
    return pass;
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const PassTimes& times = costs.of(kinds[i]).*which;
    pass.kernels += times.layer_kernels;
    in_turns.pieces += times.layer_alone;
    in_turns.longest = std::max(in_turns.longest, times.layer_alone);
    if (i == 0) in_turns.first = in_turns.opening + times.layer_alone;
    if (i + 1 == kinds.size()) in_turns.last = times.layer_alone + in_turns.closing;
    if (i == 0) {
      in_turns.from_input = times.begin[at(begins)].from_input;
      pass.from_stream = times.begin[at(begins)].from_stream;
      pass.from_input = times.begin[at(begins)].from_input;
    } else {
      const Seconds more = kinds[i] == kinds[i - 1] ? times.next
                                                    : times.layer_kernels - times.layer_put_off +
                                                          put_off_between(kinds[i - 1], kinds[i], costs.of(kinds[i - 1]).*which);
      pass.from_stream += more;
      pass.from_input += more;
    }
  }
  const PassTimes::End& end = (costs.of(kinds.back()).*which).end[at(ends)];
  pass.from_stream += end.to_last;
  pass.from_input += end.to_last;
  if (ends == ChunkPlace::middle) pass.to_send = end.to_send - end.to_last;
  return pass;
}

struct Owners {
  std::int64_t dense = 1, expert = 1;
};

Owners owners_of(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  if (p.zero == 0) return {};
  const std::int64_t all = p.data_replicas() * p.cp;
  const std::int64_t shards = p.expert_shards();
  return {.dense = p.hsdp > 0 ? p.hsdp : all, .expert = std::max<std::int64_t>(1, p.tp * p.cp * p.dp / shards)};
}

/// At least: embeddings and norms are kept in bf16 where linear weights are not.
Bytes weights_of(const TrainingSpec& training, std::int64_t elements) {
  return size_of(training.param_gather ? training.precision : training.storage(), elements);
}

/// What stays of gathered weights from the first forward to the last backward: where weights are cast, it may be the casts alone.
Bytes gathered_weights(const TrainingSpec& training, std::int64_t elements) {
  return training.precision == training.storage() ? weights_of(training, elements) : 0;
}

/// `of_embedding`: elements of the part's parameters that no backward reads.
void add_states(PartCosts& part, const Scenario& scenario, std::int64_t of_embedding) {
  const ParallelismSpec& p = scenario.parallelism;
  const TrainingSpec& t = scenario.training;
  const Owners owners = owners_of(scenario);
  const Bytes gradient = size_of(t.grad_dtype), states = t.state_bytes();
  const double kept = 1 - t.offload.optimizer;
  for (const auto& [elements, slices] : {std::pair{part.parameters, owners.dense}, {part.expert_parameters, owners.expert}}) {
    const bool sliced = slices > 1;
    const std::int64_t updated = elements / slices;
    part.states += weights_of(t, p.zero >= 3 ? updated : elements) + gradient * (p.zero >= 2 ? updated : elements) +
                   static_cast<Bytes>(kept * static_cast<double>(states * updated));
    if (p.zero >= 2 && sliced) part.whole_gradients += gradient * elements;
    if (p.zero >= 3 && sliced) part.whole_weights += gathered_weights(t, elements);
  }
  if (part.whole_weights > 0 && owners.dense > 1)
    part.whole_weights -= gathered_weights(t, std::min(of_embedding, part.parameters));
}

/// What the gradients' exchange takes at least: of compressors that keep residuals, the last round on the wire.
Seconds reduction_time(const Scenario& scenario, MeshNetwork& network, std::int64_t elements, bool experts) {
  const TrainingSpec& t = scenario.training;
  switch (t.compressor.method) {
    case CompressionMethod::top_k: {
      const auto selected = static_cast<Bytes>(static_cast<double>(elements) / t.compressor.ratio);
      const auto members = static_cast<Bytes>(network.data_members(scenario, experts));
      return network.data(scenario, OpKind::all_gather, members * selected * (size_of(t.grad_dtype) + size_of(DType::i32)),
                          experts);
    }
    case CompressionMethod::one_bit:
      return network.data(scenario, OpKind::all_gather, elements / 8, experts);
    case CompressionMethod::powersgd:  // the shapes of matrices are not known here
      return 0;
    case CompressionMethod::cast:
      break;
  }
  const OpKind reduction = scenario.parallelism.zero >= 1 ? OpKind::reduce_scatter : OpKind::all_reduce;
  return network.data(scenario, reduction, elements * (size_of(t.grad_dtype) / t.grad_compression), experts);
}

/// Residuals, where they are as large as the gradients.
Bytes residuals(const Scenario& scenario, MeshNetwork& network, std::int64_t elements, bool experts) {
  const TrainingSpec& t = scenario.training;
  const bool of_all = t.compressor.method == CompressionMethod::top_k || t.compressor.method == CompressionMethod::one_bit;
  return of_all && network.data_members(scenario, experts) > 1 ? elements * size_of(t.grad_dtype) : 0;
}

/// What is gathered or reduced at once at most: so many elements, so many times.
struct Units {
  std::int64_t elements = 0, count = 1;
  bool are_layers = false;
};

/// With ZeRO-3, of each layer (scenarios/lowering/sharded_weights.h), and all else of a part. Without, all of the part.
std::vector<Units> units_of(const Scenario& scenario, std::int64_t elements, const std::vector<Units>& layers) {
  if (scenario.parallelism.zero < 3) return {{.elements = elements}};
  std::vector<Units> units = layers;
  for (const Units& alike : layers) elements -= alike.count * alike.elements;
  units.push_back({.elements = std::max<std::int64_t>(0, elements)});
  return units;
}

void add_data_parallel(PartCosts& part, const Scenario& scenario, MeshNetwork& network, const std::vector<Units>& dense,
                       const std::vector<Units>& expert, Seconds update_per_parameter) {
  const ParallelismSpec& p = scenario.parallelism;
  const TrainingSpec& t = scenario.training;
  const Owners owners = owners_of(scenario);
  for (const bool experts : {false, true}) {
    const std::int64_t elements = experts ? part.expert_parameters : part.parameters;
    part.states += residuals(scenario, network, elements, experts);
    Seconds most_gather = 0;
    for (const Units& unit : units_of(scenario, elements, experts ? expert : dense)) {
      const auto count = static_cast<double>(unit.count);
      part.reduce += count * reduction_time(scenario, network, unit.elements, experts);
      if (p.zero == 0) continue;
      const Bytes bytes = size_of(t.param_gather ? t.gathered() : t.storage(), unit.elements);
      const Seconds gather = network.data(scenario, OpKind::all_gather, bytes, experts);
      part.gather += count * gather;
      if (!unit.are_layers) continue;
      part.layers_gather += count * gather;
      most_gather = std::max(most_gather, gather);
    }
    part.most_gather += most_gather;
    const std::int64_t updated = elements / (experts ? owners.expert : owners.dense);
    part.update += (1 - t.offload.optimizer) * update_per_parameter * static_cast<double>(updated);
  }
}

}  // namespace

StageCosts StageCostModel::of(const Scenario& scenario, PassRanks ranks) {
  const ParallelismSpec& p = scenario.parallelism;
  const TrainingSpec& t = scenario.training;
  const std::vector<ChunkLayout> layouts = lay_out_chunks(scenario);
  KindCosts costs(passes_, scenario, ranks, Backwards::of_schedule), costs_of_whole(passes_, scenario, ranks, Backwards::whole);
  StageCosts all;
  std::map<std::tuple<std::vector<LayerClass>, bool, bool>, std::size_t> alike;
  for (const ChunkLayout& layout : layouts) {
    std::vector<LayerClass> kinds;
    for (std::int64_t layer = layout.first_layer; layer < layout.first_layer + layout.layers; ++layer)
      kinds.push_back(layer_class(scenario, layer));
    if (layout.predicts_for_another())  // each at least a layer; where the loss is, they are among the costs of the model's end
      for (std::int64_t depth = 0; depth < layout.mtp; ++depth)
        kinds.push_back(layer_class(scenario, scenario.model.layers + depth));
    const auto [same, is_new] = alike.emplace(std::tuple{kinds, layout.embedding, layout.loss}, all.parts.size());
    if (!is_new) {
      all.parts.push_back(all.parts[same->second]);
      continue;
    }
    const LayerClass of_ends = kinds.empty() ? layer_class(scenario, std::min(layout.first_layer, scenario.model.layers - 1))
                               : layout.loss ? kinds.back()
                                             : kinds.front();
    const ChunkPlace enters = layout.embedding ? ChunkPlace::first : ChunkPlace::middle;
    const ChunkPlace leaves = layout.loss ? ChunkPlace::last : ChunkPlace::middle;
    PartCosts& part = all.parts.emplace_back();
    part.layers = static_cast<std::int64_t>(kinds.size());
    part.forward = pass_through(costs, kinds, of_ends, &PassCost::forward, enters, leaves);
    const PassCost& at_ends = costs.of(of_ends);
    Seconds update_per_parameter = at_ends.optimizer_per_parameter;
    std::vector<Units> dense, expert;  // of layers
    const auto add = [](std::vector<Units>& units, std::int64_t elements) {
      if (!units.empty() && units.back().elements == elements)
        ++units.back().count;
      else
        units.push_back({.elements = elements, .are_layers = true});
    };
    std::int64_t offloaded = scenario.training.offload.activations;  // the first layers leave nothing on the GPU
    for (const LayerClass& kind : kinds) {
      const PassCost& cost = costs.of(kind);
      part.weights += cost.weight_kernels;
      if (offloaded-- <= 0) {
        part.kept += cost.kept_by_layer;
        part.kept_for_weights += cost.kept_for_weights_by_layer;
      }
      if (p.zero < 3 || !p.gather_per_micro_batch) {
        part.casts_for_forward += cost.casts_for_forward;
        part.casts_for_backward += cost.casts_for_backward;
      }
      part.parameters += cost.layer_parameters;
      part.expert_parameters += cost.layer_expert_parameters;
      add(dense, cost.layer_parameters);
      add(expert, cost.layer_expert_parameters);
      update_per_parameter = std::min(update_per_parameter, cost.optimizer_per_parameter);
    }
    std::ranges::reverse(kinds);
    part.backward = pass_through(costs, kinds, of_ends, &PassCost::backward, leaves, enters);
    part.whole = has_whole_backwards(scenario) ? pass_through(costs_of_whole, kinds, of_ends, &PassCost::backward, leaves, enters)
                                               : part.backward;
    for (const ChunkPlace place : {enters, leaves}) {
      if (place == ChunkPlace::middle) continue;
      part.kept += at_ends.kept_beside[at(place)];
      part.kept_for_weights += at_ends.kept_for_weights_beside[at(place)];
      part.parameters += at_ends.other_parameters[at(place)];
      if (place == ChunkPlace::last) part.expert_parameters += at_ends.last_expert_parameters;
    }
    if (layout.embedding && layout.loss && scenario.model.embeds_at_the_end())  // one table, not two
      part.parameters -= std::min(part.parameters, scenario.model.vocab / p.tp * scenario.model.hidden);
    if (!kinds.empty()) part.passing = costs.of(kinds.front()).passing[at(leaves)];
    add_states(part, scenario, layout.embedding ? at_ends.other_parameters[at(ChunkPlace::first)] : 0);
    add_data_parallel(part, scenario, network_, dense, expert, update_per_parameter);
  }
  if (p.pp > 1) {
    const std::int64_t shard = p.sp || p.scatter_gather ? p.tp : 1;
    const Bytes sent = t.sequence / p.cp / shard * t.micro_batch * scenario.model.hidden * size_of(t.storage());
    all.to_next = network_.between_stages(scenario, sent);
  }
  if (ranks == PassRanks::all) all.pairs = pairs_.all_of(scenario);
  return all;
}

}  // namespace tandem::studies
