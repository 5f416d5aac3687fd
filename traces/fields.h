#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::traces {

// The fields of everything that our files hold, each named once: writing, reading and comparing follow from it. A change here
// changes the format: count the version of `tandem-dag`, `tandem-timeline` or `tandem-profile` up.

template <typename T>
inline constexpr auto fields_of = nullptr;

template <typename T>
concept Record = !std::is_null_pointer_v<std::remove_const_t<decltype(fields_of<T>)>>;

/// How many fields of a record, its last ones, profiles may lack that are older than these; they keep their defaults.
template <typename T>
inline constexpr std::size_t newer_fields_of = 0;

/// Calls `get` with each field of the record, but not with the newer ones where `ended` says that there is nothing more to read.
template <Record T, typename Get, typename Ended>
void read_fields(T& record, const Get& get, const Ended& ended) {
  std::apply(
      [&](auto... field) {
        std::size_t later = sizeof...(field);
        ((later-- > newer_fields_of<T> || !ended() ? get(record.*field) : void()), ...);
      },
      fields_of<T>);
}

/// Says of which DAG a timeline is, and where it was executed.
struct TimelineOrigin {
  std::uint32_t dag = 0;  ///< digest
  std::string executed_on;
};

/// The edges of a DAG as lists: how many successors each task has, and these one after the other.
struct Edges {
  std::vector<std::uint32_t> successors;
  std::vector<TaskId> to;
};

template <>
inline constexpr auto fields_of<Shape> = std::tuple{&Shape::dims, &Shape::rank};
template <>
inline constexpr auto fields_of<Positions> = std::tuple{&Positions::start, &Positions::length};

template <>
inline constexpr auto fields_of<Documents> =
    std::tuple{&Documents::sequence, &Documents::parts, &Documents::starts, &Documents::runs, &Documents::run_parts};
template <>
inline constexpr std::size_t newer_fields_of<Documents> = 2;

// attributes of operations
template <>
inline constexpr auto fields_of<std::monostate> = std::tuple{};
template <>
inline constexpr auto fields_of<GemmAttributes> =
    std::tuple{&GemmAttributes::transpose_a, &GemmAttributes::transpose_b, &GemmAttributes::accumulate};
template <>
inline constexpr auto fields_of<NormAttributes> = std::tuple{&NormAttributes::kind, &NormAttributes::epsilon};
template <>
inline constexpr auto fields_of<SplitHeadsAttributes> =
    std::tuple{&SplitHeadsAttributes::heads,    &SplitHeadsAttributes::kv_heads,  &SplitHeadsAttributes::rotate,
               &SplitHeadsAttributes::base,     &SplitHeadsAttributes::positions, &SplitHeadsAttributes::rotated,
               &SplitHeadsAttributes::documents};
template <>
inline constexpr std::size_t newer_fields_of<SplitHeadsAttributes> = 2;
template <>
inline constexpr auto fields_of<YarnAttributes> =
    std::tuple{&YarnAttributes::factor, &YarnAttributes::original, &YarnAttributes::beta_fast, &YarnAttributes::beta_slow};
template <>
inline constexpr auto fields_of<MlaHeadsAttributes> =
    std::tuple{&MlaHeadsAttributes::rope_dim,  &MlaHeadsAttributes::base,   &MlaHeadsAttributes::positions,
               &MlaHeadsAttributes::documents, &MlaHeadsAttributes::stride, &MlaHeadsAttributes::yarn};
template <>
inline constexpr std::size_t newer_fields_of<MlaHeadsAttributes> = 3;
template <>
inline constexpr auto fields_of<AttentionAttributes> = std::tuple{
    &AttentionAttributes::causal, &AttentionAttributes::scale, &AttentionAttributes::queries, &AttentionAttributes::keys,
    &AttentionAttributes::window, &AttentionAttributes::chunk, &AttentionAttributes::softcap, &AttentionAttributes::documents};
template <>
inline constexpr std::size_t newer_fields_of<AttentionAttributes> = 4;
template <>
inline constexpr auto fields_of<SequenceAttributes> = std::tuple{&SequenceAttributes::ranks, &SequenceAttributes::zigzag};
template <>
inline constexpr auto fields_of<GroupsAttributes> = std::tuple{&GroupsAttributes::groups};
template <>
inline constexpr auto fields_of<ActivationAttributes> = std::tuple{&ActivationAttributes::kind, &ActivationAttributes::limit,
                                                                   &ActivationAttributes::offset, &ActivationAttributes::fused};
template <>
inline constexpr std::size_t newer_fields_of<ActivationAttributes> = 3;
template <>
inline constexpr auto fields_of<EmbeddingAttributes> = std::tuple{&EmbeddingAttributes::vocab_start};
template <>
inline constexpr auto fields_of<CrossEntropyAttributes> =
    std::tuple{&CrossEntropyAttributes::vocab_start, &CrossEntropyAttributes::scale};
template <>
inline constexpr auto fields_of<AdamAttributes> =
    std::tuple{&AdamAttributes::learning_rate, &AdamAttributes::beta1,     &AdamAttributes::beta2, &AdamAttributes::epsilon,
               &AdamAttributes::weight_decay,  &AdamAttributes::clip_norm, &AdamAttributes::step};
template <>
inline constexpr auto fields_of<ScaleAttributes> = std::tuple{&ScaleAttributes::factor};
template <>
inline constexpr auto fields_of<ReductionAttributes> = std::tuple{&ReductionAttributes::reduction, &ReductionAttributes::root};
template <>
inline constexpr auto fields_of<RoutingAttributes> =
    std::tuple{&RoutingAttributes::top_k,        &RoutingAttributes::groups,      &RoutingAttributes::zigzag,
               &RoutingAttributes::parts,        &RoutingAttributes::block,       &RoutingAttributes::nodes,
               &RoutingAttributes::node_limit,   &RoutingAttributes::forced,      &RoutingAttributes::balance,
               &RoutingAttributes::slots,        &RoutingAttributes::load,        &RoutingAttributes::expert_choice,
               &RoutingAttributes::score,        &RoutingAttributes::pre_softmax, &RoutingAttributes::scaling,
               &RoutingAttributes::biased,       &RoutingAttributes::sequences,   &RoutingAttributes::sequence,
               &RoutingAttributes::best_of_node, &RoutingAttributes::hashed};
template <>
inline constexpr std::size_t newer_fields_of<RoutingAttributes> = 10;
template <>
inline constexpr auto fields_of<GroupedGemmAttributes> =
    std::tuple{&GroupedGemmAttributes::transpose_a, &GroupedGemmAttributes::transpose_b, &GroupedGemmAttributes::accumulate,
               &GroupedGemmAttributes::rows, &GroupedGemmAttributes::fused};
template <>
inline constexpr std::size_t newer_fields_of<GroupedGemmAttributes> = 1;
template <>
inline constexpr auto fields_of<FusedAttributes> = std::tuple{&FusedAttributes::fused};
template <>
inline constexpr auto fields_of<RegroupAttributes> =
    std::tuple{&RegroupAttributes::blocks, &RegroupAttributes::block, &RegroupAttributes::inverse, &RegroupAttributes::rows};

template <>
inline constexpr auto fields_of<BatchedGemmAttributes> =
    std::tuple{&BatchedGemmAttributes::transpose_a, &BatchedGemmAttributes::transpose_b, &BatchedGemmAttributes::factor};
template <>
inline constexpr auto fields_of<DropoutAttributes> = std::tuple{&DropoutAttributes::probability, &DropoutAttributes::stream,
                                                                &DropoutAttributes::first_head, &DropoutAttributes::rows};
template <>
inline constexpr auto fields_of<SignAttributes> = std::tuple{&SignAttributes::valid};
template <>
inline constexpr auto fields_of<CausalConvAttributes> =
    std::tuple{&CausalConvAttributes::first_column, &CausalConvAttributes::row, &CausalConvAttributes::rows,
               &CausalConvAttributes::biased, &CausalConvAttributes::documents};
template <>
inline constexpr std::size_t newer_fields_of<CausalConvAttributes> = 1;
template <>
inline constexpr auto fields_of<SsdAttributes> =
    std::tuple{&SsdAttributes::head_dim, &SsdAttributes::groups,     &SsdAttributes::state,
               &SsdAttributes::chunk,    &SsdAttributes::first_head, &SsdAttributes::documents};
template <>
inline constexpr std::size_t newer_fields_of<SsdAttributes> = 1;
template <>
inline constexpr auto fields_of<GroupNormAttributes> =
    std::tuple{&GroupNormAttributes::groups, &GroupNormAttributes::epsilon, &GroupNormAttributes::gate_column};
template <>
inline constexpr auto fields_of<DeltaRuleAttributes> =
    std::tuple{&DeltaRuleAttributes::key_heads, &DeltaRuleAttributes::key_dim,    &DeltaRuleAttributes::value_dim,
               &DeltaRuleAttributes::chunk,     &DeltaRuleAttributes::first_head, &DeltaRuleAttributes::documents};
template <>
inline constexpr std::size_t newer_fields_of<DeltaRuleAttributes> = 1;
template <>
inline constexpr auto fields_of<ColumnPartsAttributes> =
    std::tuple{&ColumnPartsAttributes::ranks, &ColumnPartsAttributes::zigzag, &ColumnPartsAttributes::inverse,
               &ColumnPartsAttributes::widths, &ColumnPartsAttributes::repeats};
template <>
inline constexpr auto fields_of<MuonAttributes> =
    std::tuple{&MuonAttributes::learning_rate, &MuonAttributes::momentum, &MuonAttributes::weight_decay,
               &MuonAttributes::clip_norm, &MuonAttributes::scale};
template <>
inline constexpr auto fields_of<AdafactorPiece> =
    std::tuple{&AdafactorPiece::offset,      &AdafactorPiece::rows,           &AdafactorPiece::columns,
               &AdafactorPiece::tensor_rows, &AdafactorPiece::tensor_columns, &AdafactorPiece::copies};
template <>
inline constexpr auto fields_of<AdafactorAttributes> =
    std::tuple{&AdafactorAttributes::learning_rate, &AdafactorAttributes::beta2_decay,  &AdafactorAttributes::least_scale,
               &AdafactorAttributes::threshold,     &AdafactorAttributes::weight_decay, &AdafactorAttributes::clip_norm,
               &AdafactorAttributes::step,          &AdafactorAttributes::factored,     &AdafactorAttributes::first,
               &AdafactorAttributes::pieces};
template <>
inline constexpr auto fields_of<CastAttributes> =
    std::tuple{&CastAttributes::rows,       &CastAttributes::to,         &CastAttributes::scaling,
               &CastAttributes::stochastic, &CastAttributes::transforms, &CastAttributes::seed,
               &CastAttributes::fused,      &CastAttributes::in_place,   &CastAttributes::alone};
template <>
inline constexpr auto fields_of<HeadGemmAttributes> =
    std::tuple{&HeadGemmAttributes::transpose_a, &HeadGemmAttributes::transpose_b, &HeadGemmAttributes::head_rows,
               &HeadGemmAttributes::first_row};
template <>
inline constexpr auto fields_of<SparseAttentionAttributes> =
    std::tuple{&SparseAttentionAttributes::scale,    &SparseAttentionAttributes::queries,     &SparseAttentionAttributes::keys,
               &SparseAttentionAttributes::all_keys, &SparseAttentionAttributes::coefficient, &SparseAttentionAttributes::window,
               &SparseAttentionAttributes::ratio};
template <>
inline constexpr std::size_t newer_fields_of<SparseAttentionAttributes> = 2;
template <>
inline constexpr auto fields_of<CompressAttributes> = std::tuple{&CompressAttributes::ratio, &CompressAttributes::overlap};
template <>
inline constexpr auto fields_of<HyperAttributes> = std::tuple{&HyperAttributes::streams, &HyperAttributes::iterations,
                                                              &HyperAttributes::epsilon, &HyperAttributes::epsilon_of_norm};

template <>
inline constexpr auto fields_of<LightningAttributes> =
    std::tuple{&LightningAttributes::head_dim, &LightningAttributes::chunk, &LightningAttributes::heads,
               &LightningAttributes::first_head, &LightningAttributes::decay};
template <>
inline constexpr auto fields_of<SplitNormAttributes> =
    std::tuple{&SplitNormAttributes::width, &SplitNormAttributes::epsilon, &SplitNormAttributes::gated};
template <>
inline constexpr std::size_t newer_fields_of<SplitNormAttributes> = 1;
template <>
inline constexpr auto fields_of<WeightedSumAttributes> =
    std::tuple{&WeightedSumAttributes::first, &WeightedSumAttributes::second};

// what was measured
template <>
inline constexpr auto fields_of<OperandType> = std::tuple{&OperandType::shape, &OperandType::dtype, &OperandType::scaling};
template <>
inline constexpr std::size_t newer_fields_of<OperandType> = 1;
template <>
inline constexpr auto fields_of<TimedKernel> = std::tuple{&TimedKernel::op, &TimedKernel::operands, &TimedKernel::attributes};
template <>
inline constexpr auto fields_of<Timing> = std::tuple{&Timing::median, &Timing::lowest, &Timing::highest, &Timing::samples};
template <>
inline constexpr auto fields_of<MeasuredKernel> = std::tuple{&MeasuredKernel::kernel, &MeasuredKernel::timing};
template <>
inline constexpr auto fields_of<MeasuredCollective> =
    std::tuple{&MeasuredCollective::op, &MeasuredCollective::members, &MeasuredCollective::bytes, &MeasuredCollective::timing,
               &MeasuredCollective::machines};
template <>
inline constexpr auto fields_of<ProfileOrigin> =
    std::tuple{&ProfileOrigin::backend, &ProfileOrigin::device, &ProfileOrigin::libraries,
               &ProfileOrigin::date,    &ProfileOrigin::tandem, &ProfileOrigin::threads};
template <>
inline constexpr auto fields_of<Site> = std::tuple{&Site::runs,          &Site::gpu,      &Site::framework, &Site::kernels,
                                                   &Site::communication, &Site::overhead, &Site::spread,    &Site::covariance};
template <>
inline constexpr auto fields_of<Profile> = std::tuple{&Profile::origin, &Profile::kernels, &Profile::collectives, &Profile::site};
template <>
inline constexpr std::size_t newer_fields_of<Profile> = 1;

// devices and the network
template <>
inline constexpr auto fields_of<GemmTile> = std::tuple{&GemmTile::m, &GemmTile::n};
template <>
inline constexpr auto fields_of<GemmEfficiency> =
    std::tuple{&GemmEfficiency::rate,   &GemmEfficiency::sustained, &GemmEfficiency::feed,      &GemmEfficiency::store,
               &GemmEfficiency::launch, &GemmEfficiency::split,     &GemmEfficiency::on_stream, &GemmEfficiency::block_scaled,
               &GemmEfficiency::tiles,  &GemmEfficiency::assumed};
template <>
inline constexpr auto fields_of<AttentionPass> = std::tuple{&AttentionPass::rate, &AttentionPass::causal, &AttentionPass::tile};
template <>
inline constexpr auto fields_of<AttentionEfficiency> = std::tuple{&AttentionEfficiency::forward, &AttentionEfficiency::backward};
template <>
inline constexpr auto fields_of<KernelEfficiency> = std::tuple{&KernelEfficiency::gemm,
                                                               &KernelEfficiency::tf32,
                                                               &KernelEfficiency::attention_kernel,
                                                               &KernelEfficiency::attention,
                                                               &KernelEfficiency::attention_sustained,
                                                               &KernelEfficiency::spread,
                                                               &KernelEfficiency::unfused,
                                                               &KernelEfficiency::permute,
                                                               &KernelEfficiency::cast,
                                                               &KernelEfficiency::element_rate,
                                                               &KernelEfficiency::scan,
                                                               &KernelEfficiency::cross_entropy,
                                                               &KernelEfficiency::attention_forward,
                                                               &KernelEfficiency::attention_backward,
                                                               &KernelEfficiency::memory,
                                                               &KernelEfficiency::launch};
template <>
inline constexpr auto fields_of<Device> = std::tuple{&Device::name,        &Device::architecture,
                                                     &Device::memory,      &Device::memory_bandwidth,
                                                     &Device::peak,        &Device::multiprocessors,
                                                     &Device::efficiency,  &Device::measured,
                                                     &Device::collectives, &Device::site,
                                                     &Device::speed,       &Device::host_bandwidth};
template <>
inline constexpr auto fields_of<Link> = std::tuple{&Link::name, &Link::tier, &Link::capacity, &Link::count};
template <>
inline constexpr auto fields_of<Crossing> = std::tuple{&Crossing::link, &Crossing::multiplicity};
template <>
inline constexpr auto fields_of<Hop> =
    std::tuple{&Hop::from, &Hop::to, &Hop::channel, &Hop::between_nodes, &Hop::down, &Hop::parts, &Hop::crossings};
template <>
inline constexpr auto fields_of<Paths> =
    std::tuple{&Paths::algorithm, &Paths::channels,      &Paths::crossings, &Paths::bandwidth,
               &Paths::in_node,   &Paths::between_nodes, &Paths::slowest,   &Paths::hops};
template <>
inline constexpr auto fields_of<Layout> =
    std::tuple{&Layout::nodes, &Layout::intra_latency, &Layout::inter_latency, &Layout::paths};
template <>
inline constexpr auto fields_of<Communicator> =
    std::tuple{&Communicator::name, &Communicator::axis, &Communicator::members, &Communicator::layout};

// the software
template <>
inline constexpr auto fields_of<ExtraWork> =
    std::tuple{&ExtraWork::kernels, &ExtraWork::bytes, &ExtraWork::holds, &ExtraWork::by_element};
template <>
inline constexpr auto fields_of<IssueCost> =
    std::tuple{&IssueCost::forward, &IssueCost::backward, &IssueCost::communication, &IssueCost::loop};
template <>
inline constexpr auto fields_of<Software> = std::tuple{&Software::name,
                                                       &Software::extra,
                                                       &Software::sequence_copies,
                                                       &Software::issue,
                                                       &Software::waits_for,
                                                       &Software::gemm_sm_margin,
                                                       &Software::kernel_per_expert,
                                                       &Software::casts_once,
                                                       &Software::fp8_dispatch,
                                                       &Software::waits_for_dispatch,
                                                       &Software::captured,
                                                       &Software::reserved,
                                                       &Software::workspaces,
                                                       &Software::placeholder_gradients,
                                                       &Software::context,
                                                       &Software::moves_weights,
                                                       &Software::expandable_segments,
                                                       &Software::tensor_lists,
                                                       &Software::fuses_bias,
                                                       &Software::fuses_experts,
                                                       &Software::gathers_casts,
                                                       &Software::norm_casts,
                                                       &Software::sums_after_weights,
                                                       &Software::reduces_amax,
                                                       &Software::rounds_router_gradients};

// the step
template <>
inline constexpr auto fields_of<StepDocuments> = std::tuple{&StepDocuments::count,
                                                            &StepDocuments::padding,
                                                            &StepDocuments::longest,
                                                            &StepDocuments::attention_share,
                                                            &StepDocuments::heaviest_micro_batch,
                                                            &StepDocuments::heaviest_replica,
                                                            &StepDocuments::padding_flops_share,
                                                            &StepDocuments::heaviest_rank,
                                                            &StepDocuments::mean_ranks};
template <>
inline constexpr auto fields_of<StepInfo> = std::tuple{&StepInfo::scenario,   &StepInfo::gpus,
                                                       &StepInfo::tokens,     &StepInfo::model_flops_per_token,
                                                       &StepInfo::parameters, &StepInfo::active_parameters,
                                                       &StepInfo::steps,      &StepInfo::micro_batches,
                                                       &StepInfo::stages,     &StepInfo::causal,
                                                       &StepInfo::documents};
template <>
inline constexpr auto fields_of<Rank> = std::tuple{&Rank::world_rank, &Rank::count, &Rank::mirrored, &Rank::tp,    &Rank::cp,
                                                   &Rank::ep,         &Rank::dp,    &Rank::pp,       &Rank::device};
template <>
inline constexpr auto fields_of<Buffer> =
    std::tuple{&Buffer::shape, &Buffer::dtype, &Buffer::kind, &Buffer::rank, &Buffer::base, &Buffer::offset, &Buffer::scaling};
template <>
inline constexpr auto fields_of<ParameterShard> =
    std::tuple{&ParameterShard::buffer,         &ParameterShard::tensor,  &ParameterShard::tensor_rows,
               &ParameterShard::tensor_columns, &ParameterShard::row,     &ParameterShard::column,
               &ParameterShard::rows,           &ParameterShard::columns, &ParameterShard::frozen};
template <>
inline constexpr auto fields_of<InputShard> =
    std::tuple{&InputShard::buffer,    &InputShard::content,    &InputShard::first_sequence,
               &InputShard::positions, &InputShard::vocabulary, &InputShard::ahead};
template <>
inline constexpr auto fields_of<Task> =
    std::tuple{&Task::op,         &Task::phase, &Task::axis,        &Task::stream, &Task::rank,  &Task::first_operand,
               &Task::attributes, &Task::group, &Task::micro_batch, &Task::layer,  &Task::chunk, &Task::name};
template <>
inline constexpr auto fields_of<Group> = std::tuple{&Group::communicator, &Group::bytes};
template <>
inline constexpr auto fields_of<Dag> =  // and the graph, as `Edges`; the kernels follow from the rest
    std::tuple{&Dag::info,     &Dag::software,   &Dag::devices,     &Dag::ranks,      &Dag::links,  &Dag::communicators,
               &Dag::names,    &Dag::attributes, &Dag::buffers,     &Dag::shards,     &Dag::inputs, &Dag::tasks,
               &Dag::operands, &Dag::groups,     &Dag::group_begin, &Dag::group_tasks};
template <>
inline constexpr auto fields_of<Edges> = std::tuple{&Edges::successors, &Edges::to};
template <>
inline constexpr auto fields_of<Timeline> = std::tuple{&Timeline::start, &Timeline::end};
template <>
inline constexpr auto fields_of<TimelineOrigin> = std::tuple{&TimelineOrigin::dag, &TimelineOrigin::executed_on};

template <typename Enum>
constexpr Enum last_of_so_many(std::size_t count) {
  return static_cast<Enum>(count - 1);
}

/// The last value of an enumeration: what is beyond it is corrupt.
template <typename Enum>
inline constexpr auto last_of = nullptr;
template <>
inline constexpr auto last_of<OpKind> = last_of_so_many<OpKind>(op_kind_count);
template <>
inline constexpr auto last_of<Phase> = Phase::optimizer;
template <>
inline constexpr auto last_of<Axis> = Axis::host;
template <>
inline constexpr auto last_of<Stream> = last_of_so_many<Stream>(stream_count);
template <>
inline constexpr auto last_of<BufferKind> = BufferKind::host;
template <>
inline constexpr auto last_of<Access> = Access::update;
template <>
inline constexpr auto last_of<DType> = last_of_so_many<DType>(dtype_count);
template <>
inline constexpr auto last_of<NarrowType> = last_of_so_many<NarrowType>(narrow_type_count);
template <>
inline constexpr auto last_of<Scaling> = last_of_so_many<Scaling>(scaling_count);
template <>
inline constexpr auto last_of<InputShard::Content> = InputShard::Content::noise;
template <>
inline constexpr auto last_of<NormKind> = NormKind::layer;
template <>
inline constexpr auto last_of<Activation> = Activation::quick_geglu;
template <>
inline constexpr auto last_of<Reduction> = Reduction::mean;
template <>
inline constexpr auto last_of<ScoreFunction> = ScoreFunction::sqrtsoftplus;
template <>
inline constexpr auto last_of<Tier> = last_of_so_many<Tier>(tier_count);
template <>
inline constexpr auto last_of<Algorithm> = last_of_so_many<Algorithm>(algorithm_count);
template <>
inline constexpr auto last_of<Architecture> = last_of_so_many<Architecture>(architecture_count);
template <>
inline constexpr auto last_of<AttentionKernel> = last_of_so_many<AttentionKernel>(attention_kernel_count);

/// Stands for a value of any type, to count the members of an aggregate.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT: never called
};

/// Whether T has exactly as many members as `fields_of` names, `more` of them left out: a member that is added must be named,
/// too.
template <typename T, std::size_t more = 0>
constexpr bool names_every_field() {
  constexpr std::size_t named = std::tuple_size_v<std::remove_const_t<decltype(fields_of<T>)>> + more;
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return requires { T{(static_cast<void>(I), Anything{})...}; }
    &&!requires { T{Anything{}, (static_cast<void>(I), Anything{})...}; };
  }
  (std::make_index_sequence<named>());
}

}  // namespace tandem::traces
