#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

// What values without a number are called in a scenario: readers take names from these tables, and whatever writes a scenario
// does. Schedules have a table of their own (schedules/schedule_table.h), and so do mesh axes (runtime/dag/axis.h); element
// types, attention kernels and architectures have `name_of`.

template <typename T>
struct Named {
  std::string_view name;
  T value;
};

/// What the table calls the value.
template <typename T, std::size_t count>
constexpr std::string_view name_in(const std::array<Named<T>, count>& table, const T& value) {
  for (const Named<T>& named : table)
    if (named.value == value) return named.name;
  throw std::logic_error("a value without a name");
}

/// Returns a field's name and value for a sentence: "tp 8".
inline std::string named(std::string_view field, std::int64_t value) { return std::string(field) + " " + std::to_string(value); }
inline std::string named(Axis axis, std::int64_t size) { return named(name_of(axis), size); }

inline constexpr std::array norm_names{Named<NormKind>{"rms", NormKind::rms}, Named<NormKind>{"layer", NormKind::layer}};

inline constexpr std::array qk_norm_names{Named<QkNorm>{"none", QkNorm::none}, Named<QkNorm>{"head", QkNorm::head},
                                          Named<QkNorm>{"all", QkNorm::all}, Named<QkNorm>{"unit", QkNorm::unit}};

inline constexpr std::array rope_scaling_names{Named<RopeScaling>{"none", RopeScaling::none},
                                               Named<RopeScaling>{"yarn", RopeScaling::yarn}};

inline constexpr std::array norm_placement_names{
    Named<NormPlacement>{"pre", NormPlacement::pre}, Named<NormPlacement>{"post", NormPlacement::post},
    Named<NormPlacement>{"both", NormPlacement::both}, Named<NormPlacement>{"residual", NormPlacement::residual}};

inline constexpr std::array mlp_function_names{
    Named<MlpFunction>{"silu", MlpFunction::silu}, Named<MlpFunction>{"gelu", MlpFunction::gelu},
    Named<MlpFunction>{"quick-gelu", MlpFunction::quick_gelu}, Named<MlpFunction>{"squared-relu", MlpFunction::squared_relu}};

/// Those of config.json; the last four are of models whose layers have one half each.
inline constexpr std::array layer_type_names{
    Named<LayerType>{"full_attention", {Mixer::full_attention}},
    Named<LayerType>{"sliding_attention", {Mixer::sliding_attention}},
    Named<LayerType>{"chunked_attention", {Mixer::chunked_attention}},
    Named<LayerType>{"linear_attention", {Mixer::linear_attention}},
    Named<LayerType>{"lightning_attention", {Mixer::lightning_attention}},
    Named<LayerType>{"compressed_sparse_attention", {Mixer::compressed_sparse_attention}},
    Named<LayerType>{"heavily_compressed_attention", {Mixer::heavily_compressed_attention}},
    Named<LayerType>{"mamba", {Mixer::mamba, Feed::none}},
    Named<LayerType>{"attention", {Mixer::full_attention, Feed::none}},
    Named<LayerType>{"mlp", {Mixer::none, Feed::dense}},
    Named<LayerType>{"moe", {Mixer::none, Feed::experts}}};

/// Letters of Megatron-Core's --hybrid-layer-pattern.
inline constexpr std::array hybrid_letters{
    Named<LayerType>{"M", {Mixer::mamba, Feed::none}}, Named<LayerType>{"*", {Mixer::full_attention, Feed::none}},
    Named<LayerType>{"-", {Mixer::none, Feed::dense}}, Named<LayerType>{"E", {Mixer::none, Feed::experts}}};

inline constexpr std::array attention_bias_names{Named<AttentionBias>{"none", AttentionBias::none},
                                                 Named<AttentionBias>{"qkv", AttentionBias::qkv},
                                                 Named<AttentionBias>{"all", AttentionBias::all}};

inline constexpr std::array cp_method_names{
    Named<CpMethod>{"ring", CpMethod::ring}, Named<CpMethod>{"all-gather", CpMethod::all_gather},
    Named<CpMethod>{"ulysses", CpMethod::ulysses}, Named<CpMethod>{"ulysses-ring", CpMethod::ulysses_ring}};

inline constexpr std::array cp_layout_names{Named<CpLayout>{"zigzag", CpLayout::zigzag},
                                            Named<CpLayout>{"contiguous", CpLayout::contiguous},
                                            Named<CpLayout>{"document-zigzag", CpLayout::document_zigzag}};

inline constexpr std::array packing_names{Named<Packing>{"cut", Packing::cut}, Named<Packing>{"whole", Packing::whole},
                                          Named<Packing>{"best-fit", Packing::best_fit}};

inline constexpr std::array document_balance_names{Named<DocumentBalance>{"none", DocumentBalance::none},
                                                   Named<DocumentBalance>{"attention", DocumentBalance::attention}};

inline constexpr std::array gather_unit_names{Named<GatherUnit>{"layer", GatherUnit::layer},
                                              Named<GatherUnit>{"weight", GatherUnit::weight}};

inline constexpr std::array dispatcher_names{Named<Dispatcher>{"nccl", Dispatcher::nccl},
                                             Named<Dispatcher>{"deepep", Dispatcher::deepep},
                                             Named<Dispatcher>{"hybridep", Dispatcher::hybridep}};

/// Megatron-Core's, after --fp8-recipe.
inline constexpr std::array megatron_fp8_recipes{
    Named<Recipe>{"delayed", Recipe::delayed}, Named<Recipe>{"tensorwise", Recipe::current},
    Named<Recipe>{"blockwise", Recipe::blockwise}, Named<Recipe>{"mxfp8", Recipe::mxfp8}};

inline constexpr std::array optimizer_names{Named<OptimizerKind>{"adam", OptimizerKind::adam},
                                            Named<OptimizerKind>{"muon", OptimizerKind::muon},
                                            Named<OptimizerKind>{"adafactor", OptimizerKind::adafactor}};

inline constexpr std::array muon_tp_names{Named<MuonTp>{"distributed", MuonTp::distributed},
                                          Named<MuonTp>{"blockwise", MuonTp::blockwise}};

inline constexpr std::array routing_names{Named<Routing>{"top-k", Routing::top_k},
                                          Named<Routing>{"expert-choice", Routing::expert_choice}};

inline constexpr std::array balance_scope_names{Named<BalanceScope>{"micro-batch", BalanceScope::micro_batch},
                                                Named<BalanceScope>{"sequence", BalanceScope::sequence}};
inline constexpr std::array score_function_names{Named<ScoreFunction>{"softmax", ScoreFunction::softmax},
                                                 Named<ScoreFunction>{"sigmoid", ScoreFunction::sigmoid},
                                                 Named<ScoreFunction>{"sqrtsoftplus", ScoreFunction::sqrtsoftplus}};

inline constexpr std::array sync_kind_names{
    Named<SyncKind>{"synchronous", SyncKind::synchronous}, Named<SyncKind>{"backup", SyncKind::backup},
    Named<SyncKind>{"stale", SyncKind::stale}, Named<SyncKind>{"asynchronous", SyncKind::asynchronous},
    Named<SyncKind>{"local", SyncKind::local}};

/// Of SyncPolicy::abandons.
inline constexpr std::array late_names{Named<bool>{"finish", false}, Named<bool>{"abandon", true}};

/// Of placements that are no list of GPUs.
inline constexpr std::array placement_names{Named<RankPlacement::Kind>{"packed", RankPlacement::Kind::packed},
                                            Named<RankPlacement::Kind>{"round-robin", RankPlacement::Kind::round_robin}};

inline constexpr std::array compression_method_names{Named<CompressionMethod>{"cast", CompressionMethod::cast},
                                                     Named<CompressionMethod>{"top-k", CompressionMethod::top_k},
                                                     Named<CompressionMethod>{"one-bit", CompressionMethod::one_bit},
                                                     Named<CompressionMethod>{"powersgd", CompressionMethod::powersgd}};

/// Of ParallelismSpec::own_expert_axis.
inline constexpr std::array expert_axis_names{Named<bool>{"folded", false}, Named<bool>{"own", true}};

inline constexpr std::array flow_routing_names{Named<FlowRouting>{"adaptive", FlowRouting::adaptive},
                                               Named<FlowRouting>{"ecmp", FlowRouting::ecmp}};

inline constexpr std::array node_links_names{Named<NodeLinks>{"switched", NodeLinks::switched},
                                             Named<NodeLinks>{"mesh", NodeLinks::mesh}};

/// The element types that a GPU may have arithmetic for.
inline constexpr std::array arithmetic_types{DType::f32, DType::bf16, DType::f16, DType::f8, DType::f4};

/// The modules that `training.recompute` lists.
using RecomputeModule = bool RecomputeSpec::*;
inline constexpr std::array recompute_module_names{
    Named<RecomputeModule>{"norm", &RecomputeSpec::norm}, Named<RecomputeModule>{"activation", &RecomputeSpec::activation},
    Named<RecomputeModule>{"attention", &RecomputeSpec::attention}, Named<RecomputeModule>{"mlp", &RecomputeSpec::mlp},
    Named<RecomputeModule>{"mla-up", &RecomputeSpec::mla_up}};

/// Values of `training.recompute` that are no list of modules.
inline constexpr RecomputeSpec no_recompute{}, selective_recompute{.attention = true}, full_recompute{.every = 1};
/// Attention and every second product keep their outputs (torchtitan, selective_ac_option: op). Products that stand side by side
/// there are one here, so every second layer's MLP keeps both of its own, the others none.
inline constexpr RecomputeSpec selective_op_recompute{.norm = true, .activation = true, .mlp = true, .mlp_every = 2};
inline constexpr std::array recompute_names{
    Named<RecomputeSpec>{"none", no_recompute}, Named<RecomputeSpec>{"selective", selective_recompute},
    Named<RecomputeSpec>{"selective-op", selective_op_recompute}, Named<RecomputeSpec>{"full", full_recompute}};
/// Those that every framework has.
inline constexpr std::array usual_recomputes{name_in(recompute_names, no_recompute),
                                             name_in(recompute_names, selective_recompute),
                                             name_in(recompute_names, full_recompute)};

}  // namespace tandem::scenarios
