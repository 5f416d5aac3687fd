#include "scenarios/lowering/context.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/mesh/positions.h"
#include "scenarios/mesh/token_routing.h"
#include "scenarios/schedules/chunk_placement.h"

namespace tandem::scenarios {
namespace {

LocalSizes local_sizes(const Scenario& scenario, const World& world, RankIndex rank) {
  const ModelSpec& model = scenario.model;
  const ParallelismSpec& p = scenario.parallelism;
  LocalSizes sizes;
  sizes.tp = p.tp;
  sizes.tp_rank = world.ranks[rank].tp;
  sizes.sequence_parallel = p.sp;
  sizes.cp = p.cp;
  sizes.cp_rank = world.ranks[rank].cp;
  sizes.ring = p.ring_ranks();
  sizes.ring_rank = sizes.cp_rank / p.heads_ranks();
  sizes.zigzag = p.has_zigzag_chunks();
  sizes.positions = positions_of(scenario, sizes.cp_rank);
  sizes.sequence = scenario.training.sequence / p.cp;
  sizes.sequence_shard = sizes.sequence_parallel ? sizes.sequence / p.tp : sizes.sequence;
  sizes.batch = scenario.training.micro_batch;
  sizes.hidden = model.hidden;
  sizes.heads = model.heads / p.tp;
  sizes.kv_replicas = scenario.kv_replicas();
  sizes.kv_heads = model.kv_heads * sizes.kv_replicas / p.tp;
  sizes.head_dim = model.head_dim;
  sizes.ffn = model.ffn / p.tp;
  sizes.vocab = model.vocab / p.tp;
  sizes.ownership = ownership(scenario, world, rank);
  sizes.ep = p.ep;
  sizes.ep_rank = world.ranks[rank].ep;
  sizes.etp = p.etp;
  sizes.etp_rank = ExpertMesh(p, Mesh(p)).place(world.ranks[rank].world_rank).etp;
  sizes.experts = model.moe.experts / p.ep;
  sizes.expert_ffn = model.moe.ffn / p.etp;
  sizes.expert_ownership = expert_ownership(scenario, world, rank);
  return sizes;
}

/// Its layers have no dropout and do not cast, and are recomputed all or none: they have no numbers among the model's.
ModelView encoder_view(const Scenario& scenario, const World& world, RankIndex rank) {
  const EncoderSpec& encoder = scenario.model.encoder;
  ModelView view{.scenario = scenario, .sizes = {}};
  view.scenario.model = scenario.model.of_encoder();
  TrainingSpec& training = view.scenario.training;
  training.sequence = encoder.positions();
  training.documents = {};
  training.precision = training.storage();
  training.param_gather = training.fp8_attention = training.fp8_activation_input = false;
  training.hidden_dropout = training.attention_dropout = 0;
  training.recompute.every = std::min<std::int64_t>(1, training.recompute.every);
  training.recompute.segment = training.recompute.mlp_every = 1;
  view.sizes = local_sizes(view.scenario, world, rank);
  if (encoder.images == 1) return view;
  view.documents.sequence = static_cast<std::int32_t>(encoder.positions());
  for (std::int64_t image = 0; image < encoder.images * training.micro_batch; ++image)
    view.documents.starts.push_back(image * encoder.rows());
  return view;
}

}  // namespace

KeptOperands::KeptOperands(std::span<const BufferId> reads, std::span<const BufferId> writes, std::span<const BufferId> updates)
    : reads_(static_cast<std::uint8_t>(reads.size())),
      writes_(static_cast<std::uint8_t>(writes.size())),
      updates_(static_cast<std::uint8_t>(updates.size())) {
  if (reads.size() + writes.size() + updates.size() > all_.size()) throw std::logic_error("a kernel with too many operands");
  auto next = all_.begin();
  for (const std::span<const BufferId> some : {reads, writes, updates}) next = std::ranges::copy(some, next).out;
}

Context::Context(DagBuilder& b, const Scenario& s, const World& w, RankIndex r)
    : builder(b),
      view_{.scenario = s, .sizes = local_sizes(s, w, r)},
      other_view_(s.model.encoder.enabled() ? encoder_view(s, w, r) : ModelView{}),
      world(w),
      rank(r),
      routing(s.model.moe.experts > 0 ? routing_of(s) : RoutingAttributes{}),
      chunk_order(ChunkPlacement(s).chunks_by_part(w.ranks[r].pp)),
      packed_documents(s) {}

std::int64_t Context::sequence_number() const {
  const std::int64_t per_rank = scenario.training.global_batch / scenario.parallelism.data_replicas();
  const Rank& here = world.ranks[rank];
  const std::int64_t replica = scenario.parallelism.own_expert_axis ? here.dp * scenario.parallelism.ep + here.ep : here.dp;
  return first_sequence + replica * per_rank + micro_batch * sizes.batch;
}

void Context::begin_micro_batch(std::int32_t number) {
  micro_batch = number;
  if (!scenario.parallelism.dynamic_cp || number < 0) return;
  const ContextGroup group = packed_documents.group_of(sequence_number(), world.ranks[rank].cp);
  LocalSizes& n = view_.sizes;
  n.cp = n.ring = group.ranks;
  n.cp_rank = n.ring_rank = world.ranks[rank].cp - group.first;
  n.zigzag = group.ranks > 1;
  n.positions = share_of_positions(n.shared(), n.zigzag, n.cp_rank, n.cp);
  n.first_shared = group.first * n.sequence;
}

Slot Context::slot_of_group(Slot slot) const {
  return scenario.parallelism.dynamic_cp && sizes.cp < scenario.parallelism.cp ? slot_of_context_group(slot, sizes.cp) : slot;
}

BufferId Context::activation(const Shape& shape, DType dtype, Scaling scaling) {
  const BufferId made = builder.buffer(rank, BufferKind::activation, dtype, shape, scaling);
  offload.made(made);
  return made;
}

BufferId Context::activation(const Shape& shape) { return activation(shape, scenario.training.storage()); }

BufferId Context::gathered(const Shape& shape, DType dtype) {
  return builder.buffer(rank, BufferKind::communication, dtype, shape);
}

BufferId Context::gathered(const Shape& shape) { return gathered(shape, scenario.training.storage()); }

TaskLabels Context::labels(std::string_view name, Stream stream) const {
  return {.name = name, .phase = phase, .stream = stream, .micro_batch = micro_batch, .layer = layer, .chunk = chunk};
}

TaskId Context::kernel(OpKind op, const OpAttributes& attributes, std::string_view name, std::initializer_list<BufferId> reads,
                       std::initializer_list<BufferId> writes, std::initializer_list<BufferId> updates) {
  return kernel(op, attributes, name, std::span(reads.begin(), reads.size()), std::span(writes.begin(), writes.size()),
                std::span(updates.begin(), updates.size()));
}

TaskId Context::kernel(OpKind op, const OpAttributes& attributes, std::string_view name, std::span<const BufferId> reads,
                       std::span<const BufferId> writes, std::span<const BufferId> updates) {
  if (recording != nullptr) {
    record<Recorded::Kernel>(op, attributes, std::string(name), KeptOperands(reads, writes, updates));
    return no_id;
  }
  std::vector<BufferId> there;
  if (offload.is_active()) {
    for (const BufferId buffer : reads) there.push_back(offload.read(*this, buffer));
    reads = there;
    for (const std::span<const BufferId> written : {writes, updates})
      for (const BufferId buffer : written) offload.write(*this, buffer);
  }
  const TaskId task = builder.kernel(op, attributes, labels(name, Stream::compute), reads, writes, updates);
  wait_for_held(task);
  return task;
}

void Context::start_after_compute(TaskId task) {
  builder.depend(builder.last_on(rank, Stream::compute), task);
  if (notes != nullptr) notes->orders.push_back({notes->now(builder.dag()), notes->number_of(task)});
}

void Context::hold_compute_until(TaskId task) {
  held_.push_back(task);
  if (notes != nullptr) notes->holds.push_back({notes->now(builder.dag()), notes->number_of(task)});
}

void Context::wait_for_held(TaskId kernel) {
  for (const TaskId before : held_) builder.depend(before, kernel);
  held_.clear();
}

void Context::gave_gradient(ParameterId parameter) {
  if (notes != nullptr) notes->gradients.push_back({notes->now(builder.dag()), parameter, {phase, layer, chunk}});
  on_gradient(static_cast<std::size_t>(chunk), parameter);
}

TaskId Context::collective(OpKind op, Slot slot, Stream stream, std::string_view name, BufferId in, BufferId out,
                           Reduction reduction, std::optional<Bytes> sent) {
  if (recording != nullptr) {
    issue([=, this, name = std::string(name)] { collective(op, slot, stream, name, in, out, reduction, sent); });
    return no_id;
  }
  if (offload.is_active()) {
    if (in != no_id && in != out) in = offload.read(*this, in);
    if (out != no_id) offload.write(*this, out);
  }
  const TaskId task = builder.collective(op, communicator(slot), labels(name, stream), in, out, reduction, sent);
  if (in != no_id && builder.dag().buffers[in].kind == BufferKind::gradient) wait_for_gradients(task);
  return task;
}

BufferId Context::gather_sequence(BufferId shard, std::string_view name) {
  if (!sizes.sequence_parallel) return shard;
  const BufferId whole = gathered(gathered_shape(shard));
  collective(OpKind::all_gather, Slot::tp, Stream::tp, name, shard, whole);
  return whole;
}

Shape Context::gathered_shape(BufferId shard) const {
  Shape whole = shape_of(shard);
  if (sizes.sequence_parallel) whole.dims[0] *= sizes.tp;
  return whole;
}

BufferId Context::shard_of(BufferId whole, std::int64_t tp_rank) {
  Shape part = shape_of(whole);
  part.dims[0] /= sizes.tp;
  return builder.view(whole, tp_rank * part.elements(), part);
}

BufferId Context::reduce_partial(BufferId partial, std::string_view name) {
  if (sizes.tp == 1) return partial;
  if (!sizes.sequence_parallel) {
    collective(OpKind::all_reduce, Slot::tp, Stream::tp, name, partial, partial);
    return partial;
  }
  const Shape whole = shape_of(partial);
  const BufferId shard = activation(Shape(whole[0] / sizes.tp, whole[1], whole[2]));
  collective(OpKind::reduce_scatter, Slot::tp, Stream::tp, name, partial, shard);
  return shard;
}

void Context::weight_gradient(ParameterId parameter, std::function<void(Context&, BufferId gradient)> lower) {
  PutOffWeights::Step step = [parameter, lower = std::move(lower), encoder = in_encoder_](Context& c) {
    const ViewScope scope(c, encoder);
    const Phase before = c.phase;
    c.phase = Phase::backward_weight;
    lower(c, c.parameters().gradient(parameter));
    c.phase = before;
    c.issue([&c, parameter] { c.gave_gradient(parameter); });
  };
  if (put_off != nullptr) {
    put_off->push(layer, std::move(step));
  } else {
    step(*this);
  }
}

void Context::lower_waiting_weights() {
  if (put_off == nullptr || !put_off->waits_for_exchange()) return;
  PutOffWeights* const waiting = std::exchange(put_off, nullptr);
  const std::int16_t layer_now = layer;
  waiting->take().lower(*this);
  layer = layer_now;
  put_off = waiting;
}

void Context::play(const Recorded& recorded) {
  phase = recorded.phase;
  begin_micro_batch(recorded.micro_batch);
  layer = recorded.layer;
  chunk = recorded.chunk;
  if (const auto* one = std::get_if<Recorded::Kernel>(&recorded.what)) {
    kernel(one->op, one->attributes, one->name, one->operands.reads(), one->operands.writes(), one->operands.updates());
  } else {
    std::get<std::function<void()>>(recorded.what)();
  }
}

void Context::cut() {
  if (recording != nullptr) recording->push();
}

void Context::exchange_under_way() {
  if (beside_exchange) std::exchange(beside_exchange, nullptr)();
  if (!scenario.overlaps_ep()) return;
  lower_waiting_weights();
  cut();
}

}  // namespace tandem::scenarios
