#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "runtime/base/divide_up.h"
#include "scenarios/checks/complete.h"
#include "scenarios/interop/export_text.h"
#include "scenarios/interop/megatron/layer_pattern.h"
#include "scenarios/mesh/token_routing.h"
#include "scenarios/reading/reader.h"
#include "scenarios/schedules/schedule_table.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

class ArgumentsWriter {
 public:
  explicit ArgumentsWriter(const ScenarioWithDocument& read)
      : scenario_(read.scenario),
        model_(scenario_.model),
        p_(scenario_.parallelism),
        t_(scenario_.training),
        fuses_cross_entropy_(is_true(read.document, "training.cross_entropy_fusion")) {}

  Exported all() {
    out_.comment(scenario_.name + " for Megatron-Core's pretrain_gpt.py; in a shell: pretrain_gpt.py $(sed 's/#.*//' THIS_FILE)");
    // megatron/training/arguments.py insists on it with tensor or context parallelism below Blackwell.
    if (p_.tp > 1 || p_.cp > 1) out_.comment("with CUDA_DEVICE_MAX_CONNECTIONS=1 in the environment, below Blackwell");
    model();
    attention();
    experts();
    mesh();
    pipeline();
    data_parallel();
    training();
    recompute();
    return out_.take();
  }

 private:
  const Scenario& scenario_;
  const ModelSpec& model_;
  const ParallelismSpec& p_;
  const TrainingSpec& t_;
  bool fuses_cross_entropy_;  ///< which the framework in the scenario has already made its own
  ExportText out_;

  static bool is_true(const YamlNode& document, std::string_view path) {
    const YamlNode* field = find_path(document, path);
    return field != nullptr && boolean_of(*field, std::string(path));
  }
  void flag(const std::string& name, bool is_set = true) {
    if (is_set) out_.add("--" + name);
  }
  template <typename Value>
  void add(const std::string& name, const Value& value) {
    out_.add(fmt::format("--{} {}", name, value));
  }

  void model() {
    out_.heading("model: " + model_.name);
    add("num-layers", model_.layers);
    add("hidden-size", model_.hidden);
    add("ffn-hidden-size", model_.ffn);
    activation();
    add("normalization", model_.norm == NormKind::rms ? "RMSNorm" : "LayerNorm");
    if (model_.residual.scale()) out_.lose("model.residual", "residual connections have no factors");
    if (model_.embedding_factor != 1) out_.lose("model.embedding_factor", "its embeddings have no factor");
    if (model_.logit_factor != 1) out_.lose("model.logit_factor", "its logits have no factor");
    if (model_.norm_placement != NormPlacement::pre) out_.lose("model.norm_placement", "its norms are before attention and MLP");
    flag("disable-bias-linear", !model_.linear_bias);
    flag("add-qkv-bias", model_.attention_bias != AttentionBias::none);
    if (model_.attention_bias == AttentionBias::all)
      out_.lose("model.attention_bias",
                "without --disable-bias-linear all its linear layers have biases, with it the output has none");
    if (model_.moe.linear_bias) out_.lose("model.moe.linear_bias", "with --disable-bias-linear its experts have none");
    if (model_.moe.router_bias) out_.lose("model.moe.router_bias", "with --disable-bias-linear its router has none");
    if (model_.logit_softcap > 0) out_.lose("model.logit_softcap", "its logits have no cap");
    layers_of_one_half();
    if (!model_.causal) out_.lose("model.causal", "it masks what comes later");
    if (model_.encoder.enabled()) out_.lose("model.encoder", "pretrain_gpt.py trains language models alone");
    add("padded-vocab-size", model_.vocab);
    flag("untie-embeddings-and-output-weights", !model_.tied_embeddings);
    if (model_.mtp_depth > 0) add("mtp-num-layers", model_.mtp_depth);
    // It wants this without learned positions, too, and then only checks the sequence against it.
    add("max-position-embeddings",
        model_.learns_positions() ? model_.max_positions : std::max(model_.max_positions, t_.sequence));
    const char* const without_angles = model_.learns_positions() ? "learned_absolute" : "none";
    const char* const by_angles = model_.rope_scaling == RopeScaling::yarn ? "yarn" : "rope";
    add("position-embedding-type", model_.rotary ? by_angles : without_angles);
    if (!model_.rotary) return;
    if (model_.rotary_share < 1) add("rotary-percent", model_.rotary_share);
    if (model_.sliding_rotary_base > 0) out_.lose("model.sliding_rotary_base", "all layers have one base");
    if (!model_.rotary_full_attention) out_.lose("model.rotary_full_attention", "all layers are rotated");
    if (model_.rotary_base == std::floor(model_.rotary_base)) {
      add("rotary-base", static_cast<std::int64_t>(model_.rotary_base));
    } else {
      out_.lose("model.rotary_base", fmt::format("{} is no whole number, as --rotary-base wants", model_.rotary_base));
    }
  }

  /// Values have a limit with --quick-geglu alone.
  void activation() {
    const bool is_quick = model_.activation == MlpFunction::quick_gelu;
    flag("swiglu", model_.gated && !is_quick);
    flag("quick-geglu", is_quick);
    flag("squared-relu", model_.activation == MlpFunction::squared_relu);
    if (model_.gated && model_.activation == MlpFunction::gelu) out_.lose("model.activation", "its gates go through SiLU");
    if (model_.activation_offset != 0) add("glu-linear-offset", model_.activation_offset);
    if (model_.activation_limit > 0 && is_quick) add("activation-func-clamp-value", model_.activation_limit);
    if (model_.activation_limit > 0 && !is_quick) out_.lose("model.activation_limit", "it is of quick-gelu alone");
  }

  /// The letters of the layers, where each has one: those with one half. Else nothing.
  std::string hybrid_pattern() const {
    std::string letters;
    for (std::int64_t layer = 0; layer < model_.layers && !model_.layer_types.empty(); ++layer) {
      const auto [mixer, feed] = model_.layer_kind(layer);
      const auto* const found = std::ranges::find(hybrid_letters, LayerType{mixer, feed}, &Named<LayerType>::value);
      if (found == hybrid_letters.end()) return {};
      letters += found->name;
    }
    return letters;
  }

  void layers_of_one_half() {
    const std::string pattern = hybrid_pattern();
    if (pattern.empty()) {
      if (model_.mamba.enabled()) out_.lose("model.mamba", "its layers have no letters");
      if (model_.linear_attention.enabled()) out_.lose("model.linear_attention", "its layers have no letters");
      if (model_.lightning.enabled()) out_.lose("model.lightning_attention", "it is not there");
      return;
    }
    flag("is-hybrid-model");
    add("hybrid-override-pattern", pattern);
    if (!model_.mamba.enabled()) return;
    add("mamba-num-heads", model_.mamba.heads);
    add("mamba-head-dim", model_.mamba.head_dim);
    add("mamba-num-groups", model_.mamba.groups);
    add("mamba-state-dim", model_.mamba.state);
    const MambaSpec usual;
    if (model_.mamba.conv != usual.conv) out_.lose("model.mamba.conv", "it is 4");
    if (model_.mamba.chunk != usual.chunk) out_.lose("model.mamba.chunk", "it is 128");
  }

  /// Its loss is over the chosen keys or over all; a coefficient has no default there.
  void indexer() {
    const IndexerSpec& indexer = model_.indexer;
    if (!indexer.enabled()) return;
    add("experimental-attention-variant", "dsa");
    add("dsa-indexer-n-heads", indexer.heads);
    add("dsa-indexer-head-dim", indexer.head_dim);
    add("dsa-indexer-topk", indexer.top_k);
    add("dsa-indexer-loss-coeff", indexer.loss_coefficient);
    flag("dsa-indexer-use-sparse-loss", indexer.sparse_loss);
  }

  void attention() {
    out_.heading("attention");
    add("num-attention-heads", model_.heads);
    if (model_.mla.enabled()) {
      flag("multi-latent-attention");
      if (model_.mla.q_rank > 0) add("q-lora-rank", model_.mla.q_rank);
      add("kv-lora-rank", model_.mla.kv_rank);
      add("qk-head-dim", model_.mla.nope_dim);
      add("qk-pos-emb-head-dim", model_.mla.rope_dim);
      add("v-head-dim", model_.mla.v_dim);
      indexer();
    } else {
      add("kv-channels", model_.head_dim);
      flag("group-query-attention", model_.kv_heads != model_.heads);
      if (model_.kv_heads != model_.heads) add("num-query-groups", model_.kv_heads);
    }
    flag("qk-layernorm", model_.qk_norm == QkNorm::head);
    if (model_.qk_norm == QkNorm::all) out_.lose("model.qk_norm", "it normalises each head by itself");
    if (model_.qk_norm == QkNorm::unit) out_.lose("model.qk_norm", "its norms have weights");
    if (model_.compressed.enabled()) out_.lose("model.compressed_attention", "it is not written");
    if (model_.hyper.enabled()) out_.lose("model.hyper_connections", "they are not written");
    if (model_.moe.hash_layers > 0) out_.lose("model.moe.hash_layers", "they are not written");
    flag("attention-output-gate", model_.attention_gate);
    if (model_.attention_scale > 0) out_.lose("model.attention_scale", "its scores are divided by the root of a head's width");
    if (model_.attention_sinks) add("softmax-type", "learnable");
    if (model_.attention_softcap > 0) out_.lose("model.attention_softcap", "its scores have no cap");
    windows();
    add("hidden-dropout", t_.hidden_dropout);
    add("attention-dropout", t_.attention_dropout);
    if (!t_.attention) return;
    switch (*t_.attention) {
      case AttentionKernel::unfused:
        return add("attention-backend", "unfused");
      case AttentionKernel::cudnn:
        return add("attention-backend", "fused");
      case AttentionKernel::flash_2:
        return add("attention-backend", "flash");
      case AttentionKernel::flash_1:
      case AttentionKernel::flash_3:
        add("attention-backend", "flash");
        out_.lose("training.attention", "which FlashAttention it is depends on the version that is installed");
    }
  }

  /// Its window reaches so many positions back, in all layers or but in every N-th.
  void windows() {
    if (model_.layer_types.empty() || !hybrid_pattern().empty()) return;
    const auto is = [](Mixer mixer) { return [mixer](const LayerType& type) { return type == LayerType{mixer}; }; };
    if (std::ranges::all_of(model_.layer_types, is(Mixer::full_attention))) return;
    const bool skips = is(Mixer::full_attention)(model_.layer_types.back());
    const auto others = std::span(model_.layer_types).first(model_.layer_types.size() - (skips ? 1 : 0));
    if (!std::ranges::all_of(others, is(Mixer::sliding_attention))) {
      constexpr const char* why = "layers of two halves attend in windows or to all, and those of one half have letters";
      out_.lose("model.layer_types", why);
      if (model_.window > 0) out_.lose("model.window", why);
      if (model_.attention_chunk > 0) out_.lose("model.attention_chunk", why);
      return;
    }
    add("window-size", fmt::format("({},0)", model_.window - 1));
    if (skips) add("window-attn-skip-freq", model_.layer_types.size());
  }

  void router() {
    const MoeSpec& moe = model_.moe;
    const bool is_softmax = moe.score_function == ScoreFunction::softmax;
    if (!is_softmax) add("moe-router-score-function", name_in(score_function_names, moe.score_function));
    // Megatron-Core demands it of a single choice, whose softmax over itself would have no gradient.
    flag("moe-router-pre-softmax", is_softmax && (moe.pre_softmax || moe.top_k == 1));
    if (moe.scaling_factor != 1) add("moe-router-topk-scaling-factor", moe.scaling_factor);
    if (moe.best_of_group > 0) out_.lose("model.moe.best_of_group", "groups have the sum of their best scores");
    if (!moe.expert_bias) return;
    flag("moe-router-enable-expert-bias");
    add("moe-router-bias-update-rate", moe.bias_update_rate);
  }

  void experts() {
    const MoeSpec& moe = model_.moe;
    if (moe.experts == 0) return;
    out_.heading("experts");
    add("num-experts", moe.experts);
    add("moe-router-topk", moe.top_k);
    add("moe-ffn-hidden-size", moe.ffn);
    if (hybrid_pattern().empty()) add("moe-layer-freq", moe_layer_pattern(model_));
    if (moe.latent > 0) add("moe-latent-size", moe.latent);
    if (moe.shared_experts > 0) add("moe-shared-expert-intermediate-size", moe.shared_experts * moe.ffn);
    flag("moe-shared-expert-gate", moe.shared_gate);
    flag("moe-grouped-gemm");
    const bool by_sequence = moe.balance_scope == BalanceScope::sequence;
    add("moe-router-load-balancing-type", moe.balance_loss == 0 ? "none" : by_sequence ? "seq_aux_loss" : "aux_loss");
    if (moe.balance_loss > 0) add("moe-aux-loss-coeff", moe.balance_loss);
    if (moe.capacity_factor > 0) add("moe-expert-capacity-factor", moe.capacity_factor);
    if (moe.capacity_factor > 0 && moe.pad_to_capacity) flag("moe-pad-expert-input-to-capacity");
    if (moe.routing == Routing::expert_choice)
      out_.lose("model.moe.routing", "Megatron's experts do not choose: its tokens take the top k");
    router();
    if (const NodeLimit limit = node_limit_of(scenario_); limit.visited > 0 || (moe.groups > 0 && moe.node_limit > 0)) {
      add("moe-router-num-groups", limit.nodes);
      if (moe.groups == 0)
        out_.lose("model.moe.groups", fmt::format("as many as the {} nodes that hold a layer's experts here", limit.nodes));
      add("moe-router-group-topk", moe.node_limit);
    } else if (moe.node_limit > 0) {
      out_.lose("model.moe.node_limit", "it limits nothing with these ranks on these nodes");
    }
    if (!moe.load.shares.empty() || moe.load.zipf > 0) out_.lose("model.moe.load", "where tokens go is the router's doing");
    add("moe-token-dispatcher-type", sends_once(p_.dispatcher) ? "flex" : "alltoall");
    flag("moe-enable-deepep", p_.dispatcher == Dispatcher::deepep);
    if (p_.dispatcher == Dispatcher::hybridep) add("moe-flex-dispatcher-backend", "hybridep");
    add("expert-model-parallel-size", p_.ep);
    add("expert-tensor-parallel-size", p_.etp);
  }

  void mesh() {
    using enum Axis;
    out_.heading("parallelism");
    add("tensor-model-parallel-size", p_.tp);
    flag("sequence-parallel", p_.sp);
    flag("tp-comm-overlap", t_.overlap_tp);
    add("context-parallel-size", p_.cp);
    if (p_.cp == 1 && p_.cp_method == CpMethod::ulysses_ring) {
      out_.lose("parallelism.cp_method", "heads are dealt out and keys passed on where there are several ranks");
    } else if (p_.cp > 1 || p_.cp_method != CpMethod::ring) {
      constexpr const char* types[] = {"p2p", "all_gather", "a2a", "a2a+p2p"};
      add("cp-comm-type", types[static_cast<std::size_t>(p_.cp_method)]);
      if (p_.cp_method == CpMethod::ulysses_ring)
        add("hierarchical-context-parallel-sizes", fmt::format("{} {}", p_.heads_ranks(), p_.ring_ranks()));
    }
    const CpLayout usual = p_.cp_method == CpMethod::ulysses ? CpLayout::contiguous : CpLayout::zigzag;
    if (p_.cp_layout == CpLayout::document_zigzag)
      out_.lose("parallelism.cp_layout", "the two chunks are those of documents where the data is packed");
    else if (p_.cp_layout != usual)
      out_.lose("parallelism.cp_layout", "context-parallel ranks always hold two chunks each");
    if (p_.own_expert_axis) {
      const std::string why = fmt::format("expert ranks are data-parallel ones, here of {} * {} = {}", named(Axis::dp, p_.dp),
                                          named(Axis::ep, p_.ep), p_.dp * p_.ep);
      out_.lose("parallelism.expert_axis", why);
      out_.lose("parallelism.dp", why);
    }
    if (p_.order == std::vector<Axis>{tp, cp, ep, pp, dp}) {
      flag("use-tp-pp-dp-mapping");
    } else if (p_.order != ParallelismSpec{}.order) {
      out_.lose("parallelism.order", "ranks are numbered tp-cp-ep-dp-pp or, with --use-tp-pp-dp-mapping, tp-cp-ep-pp-dp");
    }
    if (!p_.placement.is_packed()) out_.lose("parallelism.placement", "the launcher decides which GPU a rank runs on");
  }

  void pipeline() {
    out_.heading("pipeline");
    add("pipeline-model-parallel-size", p_.pp);
    const ScheduleTraits& schedule = traits_of(t_.schedule);
    const bool known = !schedule.megatron.empty();
    if (!known) out_.lose("training.schedule", "Megatron-Core has 1F1B and, with virtual stages, interleaved 1F1B");
    const bool has_layout = !p_.pipeline_layout.empty();  // which says how many virtual stages there are
    if (known && schedule.least_chunks > 1 && !has_layout) add("num-virtual-stages-per-pipeline-rank", p_.vpp);
    if (!known && p_.vpp > 1) {
      out_.lose("parallelism.vpp", "virtual stages are for interleaved 1F1B");
      if (has_layout) out_.lose("parallelism.pipeline_layout", "virtual stages are for interleaved 1F1B");
    } else if (has_layout) {
      add("pipeline-model-parallel-layout", layout_text(p_.pipeline_layout));
    }
    flag("no-overlap-p2p-communication", !t_.overlap_pp);
    if (scenario_.overlaps_ep() && !traits_of(t_.schedule).megatron.empty()) {
      flag("overlap-moe-expert-parallel-comm");
      flag("delay-wgrad-compute");
    } else if (t_.overlap_ep) {
      out_.lose("training.overlap.ep", "exchanges of experts hide in interleaved 1F1B or without a pipeline, with ep above 1");
    }
    flag("account-for-embedding-in-pipeline-split", p_.account_for_embedding);
    flag("account-for-loss-in-pipeline-split", p_.account_for_loss);
    if (p_.first_stage_layers > 0) add("decoder-first-pipeline-num-layers", p_.first_stage_layers);
    if (p_.last_stage_layers > 0) add("decoder-last-pipeline-num-layers", p_.last_stage_layers);
    if (p_.scatter_gather) out_.lose("parallelism.scatter_gather", "only the models before Megatron-Core do it");
  }

  /// Sharding beyond the optimizer's states is Megatron FSDP's (megatron/core/distributed/fsdp/README.md).
  void data_parallel() {
    out_.heading("data parallelism");
    const bool muon = t_.optimizer == OptimizerKind::muon;
    if (muon) {
      add("optimizer", p_.zero > 0 ? "dist_muon" : "muon");
      if (p_.tp > 1) add("muon-tp-mode", name_in(muon_tp_names, t_.muon_tp));
      flag("muon-use-nesterov");
    }
    if (t_.optimizer == OptimizerKind::adafactor) out_.lose("training.optimizer", "it has Adam, SGD and Muon");
    flag("use-distributed-optimizer", p_.zero > 0 && !muon);
    if (p_.zero >= 2 && muon) out_.lose("parallelism.zero", "Muon's owners keep whole gradients");
    if (p_.zero >= 2 && !muon) {
      flag("use-megatron-fsdp");
      add("data-parallel-sharding-strategy", p_.zero == 2 ? "optim_grads" : "optim_grads_params");
    }
    if (p_.hsdp > 0) add("num-distributed-optimizer-instances", p_.data_replicas() * p_.cp / p_.hsdp);
    flag("overlap-grad-reduce", t_.overlap_dp);
    flag("overlap-param-gather", t_.overlap_dp && p_.zero > 0);
    if (t_.bucket_parameters != default_bucket_parameters(p_.data_replicas())) add("ddp-bucket-size", t_.bucket_parameters);
    if (p_.zero == 3) {
      const bool usual = p_.pp == 1;
      const std::string why = "when weights are gathered is up to Megatron FSDP";
      if (p_.reshard_after_forward != usual) out_.lose("parallelism.reshard_after_forward", why);
      if (p_.gather_per_micro_batch != usual) out_.lose("parallelism.gather_per_micro_batch", why);
      if (p_.prefetch != 1) out_.lose("parallelism.prefetch", why);
      if (p_.gather_unit != GatherUnit::layer) out_.lose("parallelism.gather_unit", "layers are gathered as one");
    }
    if (t_.hierarchical_all_reduce) out_.lose("training.hierarchical_all_reduce", "gradients are reduced in one collective");
    if (t_.local_steps()) out_.lose("training.sync_every", "gradients are reduced in every step");
    if (t_.compressor.keeps_residuals()) out_.lose("training.compressor", "gradients travel as they are");
    if (!t_.sync.empty()) out_.lose("training.sync", "all replicas reduce their gradients together");
    if (t_.grad_compression > 1) out_.lose("training.grad_compression", "gradients travel as they are");
    if (t_.offload.optimizer > 0) {
      flag("optimizer-cpu-offload");
      flag("use-precision-aware-optimizer", !narrow_states());  // without which it refuses
      add("optimizer-offload-fraction", t_.offload.optimizer);
      flag("overlap-cpu-optimizer-d2h-h2d", t_.offload.overlap_optimizer);
    }
    if (t_.offload.activations > 0) add("cpu-offloading-num-layers", t_.offload.activations);
  }

  bool narrow_states() const {
    return t_.moment_dtype != DType::f32 || t_.second_moment_dtype != DType::f32 || t_.master_dtype != DType::f32;
  }

  void training() {
    out_.heading("training");
    add("seq-length", t_.sequence);
    add("micro-batch-size", t_.micro_batch);
    add("global-batch-size", t_.global_batch);
    if (t_.documents.any())
      out_.lose("training.documents",
                "how long documents are is up to the data; --reset-attention-mask ends attention with them");
    if (p_.dynamic_cp || t_.documents.balance == DocumentBalance::attention) {
      flag("dynamic-context-parallel", p_.dynamic_cp);
      if (p_.dynamic_cp) out_.lose("parallelism.dynamic_cp", "which documents make its groups is up to the data");
      add("sequence-packing-scheduler", p_.dynamic_cp ? "default_dynamic_cp" : "dp_balanced");
      add("max-seqlen-per-dp-cp-rank", t_.sequence / p_.cp);
    }
    flag("bf16", t_.precision == DType::bf16 || t_.casts());
    flag("fp16", t_.precision == DType::f16);
    if (t_.precision == DType::f8) add("fp8-format", "hybrid");
    if (t_.precision == DType::f8 && t_.recipe != Recipe::delayed) add("fp8-recipe", name_in(megatron_fp8_recipes, t_.recipe));
    flag("tp-only-amax-red", t_.tp_only_amax_red);
    if (t_.precision == DType::f4) {
      add("fp4-format", "e2m1");
      add("fp4-recipe", name_of(t_.recipe));
    }
    if (t_.first_last_layers_bf16) {
      flag("first-last-layers-bf16", true);
      add("num-layers-at-start-in-bf16", t_.num_layers_at_start_in_bf16);
      add("num-layers-at-end-in-bf16", t_.num_layers_at_end_in_bf16);
    }
    if (t_.cuda_graph == CudaGraph::attention) {
      add("cuda-graph-impl", "transformer_engine");
      add("cuda-graph-scope", model_.moe.experts > 0 ? "attn moe_router moe_preprocess" : "attn");
    } else if (t_.cuda_graph == CudaGraph::full) {
      add("cuda-graph-impl", "local");
      add("cuda-graph-scope", "full_iteration");
    }
    const bool half = t_.precision == DType::f16;
    if (t_.grad_dtype == DType::f32) {
      flag("accumulate-allreduce-grads-in-fp32", half);
    } else if (t_.grad_dtype == DType::bf16 && (t_.precision == DType::bf16 || t_.casts())) {
      flag("grad-reduce-in-bf16");
    } else if (t_.grad_dtype != DType::f16 || !half) {
      out_.lose("training.grad_dtype", fmt::format("{} gradients of {} weights are none of its combinations",
                                                   name_of(t_.grad_dtype), name_of(t_.precision)));
    }
    const bool narrow = narrow_states();
    if (narrow && t_.optimizer == OptimizerKind::muon) {
      for (const char* const field : {"training.moment_dtype", "training.second_moment_dtype", "training.master_dtype"})
        out_.lose(field, "Muon's states are fp32");
    } else if (narrow) {
      flag("use-precision-aware-optimizer");
      for (const auto& [argument, type] : {std::pair{"exp-avg-dtype", t_.moment_dtype},
                                           {"exp-avg-sq-dtype", t_.second_moment_dtype},
                                           {"main-params-dtype", t_.master_dtype}})
        if (type != DType::f32) add(argument, name_of(type));
      if (p_.zero == 0) out_.lose("training.moment_dtype", "states of other types need the distributed optimizer");
    }
    if (t_.param_gather) flag(t_.precision == DType::f4 ? "fp4-param-gather" : "fp8-param-gather", true);
    flag("reuse-grad-buf-for-mxfp8-param-ag", t_.param_gather && t_.recipe == Recipe::mxfp8);
    flag("fp8-dot-product-attention", t_.fp8_attention);
    flag("fp8-output-proj", t_.fp8_output_proj);
    if (fuses_cross_entropy_) {
      flag("cross-entropy-loss-fusion");
      add("cross-entropy-fusion-impl", "te");
    }
    flag("activation-func-fp8-input-store", t_.fp8_activation_input);
    if (t_.gates_at_experts) out_.lose("training.gates_at_experts", "no argument says so: its release decides");
  }

  void recompute() {
    const RecomputeSpec& r = t_.recompute;
    out_.heading("recompute");
    if (r.every > 0) {
      add("recompute-granularity", "full");
      if (r.every == 1) {
        add("recompute-method", "uniform");
        add("recompute-num-layers", r.segment);
        return;
      }
      const std::int64_t in_chunk = std::max<std::int64_t>(1, model_.layers / (p_.pp * p_.vpp));
      add("recompute-method", "block");
      add("recompute-num-layers", divide_up(in_chunk, r.every));
      out_.lose("training.recompute_every",
                "the layers that are recomputed are the first ones of each stage, not every so manieth");
      return;
    }
    std::string modules;
    if (r.attention) modules += " core_attn";
    if (r.norm) modules += " layernorm";
    if (r.mla_up) modules += " mla_up_proj";
    if (r.mlp) modules += model_.moe.experts > 0 ? " mlp moe" : " mlp";
    if (r.mlp_every > 1) out_.lose("training.recompute", "a module is recomputed in all layers or none");
    if (r.activation && model_.moe.experts > 0) modules += " moe_act";
    if (r.activation && model_.moe.experts == 0)
      out_.lose("training.recompute", "the activation function alone is recomputed in experts only");
    if (modules.empty()) return;
    add("recompute-granularity", "selective");
    out_.add("--recompute-modules" + modules);
  }
};

}  // namespace

/// Writes arguments of Megatron-Core's pretrain_gpt.py (megatron/training/arguments.py, as of November 2025), one per line. Ranks
/// are numbered by Megatron in its own order, and its data-parallel size is what the world size leaves.
Exported megatron_arguments(const ScenarioWithDocument& read) { return ArgumentsWriter(read).all(); }

}  // namespace tandem::scenarios
