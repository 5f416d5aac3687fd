#include "studies/calibrate/kernel_plan.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "scenarios/checks/checks.h"
#include "scenarios/checks/complete.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/reading/preset_specs.h"
#include "scenarios/reading/presets.h"

namespace tandem::studies {
namespace {

Dag lower_one_of_each_class(const Scenario& scenario) { return lower(scenario, make_world(scenario, true)); }

/// So many H100s with a batch of one sequence each. dp is what tp and cp leave.
Scenario scenario_with(const ModelSpec& model, const ParallelismSpec& parallelism, std::int64_t gpus, DType precision,
                       std::int64_t sequence) {
  Scenario scenario;
  scenario.name = "calibrate";
  scenario.model = model;
  scenario.cluster = cluster_preset("dgx-h100");
  scenario.cluster.gpus = gpus;
  scenario.parallelism = parallelism;
  scenario.parallelism.dp = gpus / (parallelism.tp * parallelism.cp);
  scenario.training.sequence = sequence;
  scenario.training.global_batch = gpus;
  scenario.training.precision = precision;
  complete(scenario);
  return scenario;
}

// Models of a given width.

ModelSpec plain_model(std::int64_t hidden) {
  ModelSpec model;
  model.layers = 2;
  model.hidden = hidden;
  model.heads = model.kv_heads = std::max<std::int64_t>(4, hidden / 128);
  model.head_dim = hidden / model.heads;
  model.ffn = 2 * hidden;
  model.vocab = 8 * hidden;
  return model;
}

ModelSpec dense_model(std::int64_t hidden) {
  ModelSpec model = plain_model(hidden);
  model.kv_heads = 4;
  return model;
}

ModelSpec mixture_model(std::int64_t hidden) {
  ModelSpec model = dense_model(hidden);
  model.moe.experts = 8;
  model.moe.top_k = 2;
  model.moe.ffn = model.ffn;
  return model;
}

ModelSpec latent_model(std::int64_t hidden) {
  ModelSpec model = plain_model(hidden);
  model.mla = {.q_rank = 64, .kv_rank = 64, .rope_dim = 32, .nope_dim = 64, .v_dim = 64};
  model.head_dim = model.mla.qk_dim();
  return model;
}

ModelSpec indexed_model(std::int64_t hidden) {
  ModelSpec model = latent_model(hidden);
  model.indexer = {.heads = 4, .head_dim = 64, .top_k = 32};
  return model;
}

ModelSpec gpt_model(std::int64_t hidden) {
  ModelSpec model = plain_model(hidden);
  model.gated = false;
  model.activation = MlpFunction::gelu;
  model.norm = NormKind::layer;
  model.rotary = false;
  model.tied_embeddings = true;
  model.max_positions = 32'768;
  return model;
}

ModelSpec biased_model(std::int64_t hidden) {
  ModelSpec model = gpt_model(hidden);
  model.linear_bias = true;
  return model;
}

/// Norms of heads, which keep rotation out of the split into heads, a sink for each, gates of their outputs, and capped logits.
ModelSpec normed_model(std::int64_t hidden) {
  ModelSpec model = dense_model(hidden);
  model.qk_norm = QkNorm::head;
  model.attention_sinks = true;
  model.attention_gate = true;
  model.logit_softcap = 30;
  return model;
}

/// Norms of heads without weights.
ModelSpec unit_normed_model(std::int64_t hidden) {
  ModelSpec model = dense_model(hidden);
  model.qk_norm = QkNorm::unit;
  return model;
}

/// An encoder before it, whose patches are pooled.
ModelSpec seeing_model(std::int64_t hidden) {
  ModelSpec model = dense_model(hidden);
  model.encoder = {.layers = 1,
                   .hidden = hidden,
                   .heads = model.heads,
                   .ffn = hidden,
                   .patches = 32,
                   .merge = 16,
                   .patch_width = 64,
                   .class_token = true,
                   .pool = true};
  return model;
}

/// Keys that several positions share, and several streams of the residual.
ModelSpec compressed_model(std::int64_t hidden) {
  ModelSpec model = plain_model(hidden);
  model.layers = 3;
  model.kv_heads = 1;
  model.head_dim = 64;
  model.window = 16;
  model.layer_types = {
      {Mixer::sliding_attention, {}}, {Mixer::compressed_sparse_attention, {}}, {Mixer::heavily_compressed_attention, {}}};
  CompressedAttentionSpec& compressed = model.compressed;
  compressed.q_rank = 64;
  compressed.rope_dim = 32;
  compressed.sparse_ratio = 4;
  compressed.heavy_ratio = 16;
  compressed.output_groups = 2;
  compressed.output_rank = 64;
  compressed.index_heads = 4;
  compressed.index_head_dim = 64;
  compressed.index_top_k = 8;
  model.hyper.streams = 4;
  return model;
}

ModelSpec mamba_model(std::int64_t hidden) {
  ModelSpec model = plain_model(hidden);
  model.layer_types = {{Mixer::mamba, Feed::none}};
  model.mamba.head_dim = 64;
  model.mamba.heads = 2 * hidden / model.mamba.head_dim;
  model.mamba.groups = 2;
  return model;
}

ModelSpec gated_delta_model(std::int64_t hidden) {
  ModelSpec model = plain_model(hidden);
  model.layer_types = {{Mixer::linear_attention, {}}};
  model.linear_attention.key_dim = model.linear_attention.value_dim = 64;
  model.linear_attention.key_heads = hidden / 128;
  model.linear_attention.value_heads = hidden / 64;
  return model;
}

ModelSpec lightning_model(std::int64_t hidden) {
  ModelSpec model = plain_model(hidden);
  model.layer_types = {{Mixer::lightning_attention, {}}};
  model.lightning.head_dim = 64;
  model.lightning.heads = hidden / 64;
  model.norm_placement = NormPlacement::residual;
  model.residual.linear_attention.alpha = model.residual.mlp.alpha = 2;
  return model;
}

/// What a style has otherwise than is usual.
using Change = void (*)(Scenario&);

void gates_at_experts(Scenario& scenario) { scenario.training.gates_at_experts = true; }

void updates_by_muon(Scenario& scenario) { scenario.training.optimizer = OptimizerKind::muon; }

void updates_by_adafactor(Scenario& scenario) { scenario.training.optimizer = OptimizerKind::adafactor; }

template <CompressionMethod method>
void compresses_gradients(Scenario& scenario) {
  scenario.training.compressor = {.method = method, .rank = 4};
}

void balances_by_biases(Scenario& scenario) {
  scenario.model.moe.score_function = ScoreFunction::sigmoid;
  scenario.model.moe.expert_bias = true;
}

void balances_sequences(Scenario& scenario) { scenario.model.moe.balance_scope = BalanceScope::sequence; }

void dropout_of_unfused_attention(Scenario& scenario) {
  scenario.training.attention = scenario.cluster.gpu.efficiency.attention_kernel = AttentionKernel::unfused;
  scenario.training.attention_dropout = scenario.training.hidden_dropout = 0.1;
}

/// One step on two GPUs.
Dag lower_style(const ModelSpec& model, const ParallelismSpec& parallelism, DType precision, std::int64_t sequence,
                Change change = nullptr) {
  Scenario scenario = scenario_with(model, parallelism, 2, precision, sequence);
  if (change != nullptr) change(scenario);
  if (const auto objection = first_objection(scenario)) throw std::logic_error(objection->sentence);
  return lower_one_of_each_class(scenario);
}

/// The step that probes and grids take their kernels from.
Dag lower_dense(DType precision) { return lower_style(dense_model(512), {}, precision, 64); }

/// One of each family, in the order met.
std::vector<TimedKernel> families(const Dag& dag, OpClass op_class) {
  std::vector<TimedKernel> found;
  std::set<KernelFamily> known;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (operation(dag.tasks[id].op).op_class != op_class) continue;
    TimedKernel kernel = kernel_of(dag, id);
    if (known.insert(family_of(kernel)).second) found.push_back(std::move(kernel));
  }
  return found;
}

/// The same product with other sizes.
TimedKernel gemm_of_size(const TimedKernel& like, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto& attributes = std::get<GemmAttributes>(like.attributes);
  TimedKernel kernel = like;
  kernel.operands[0].shape = attributes.transpose_a ? Shape(k, m) : Shape(m, k);
  kernel.operands[1].shape = attributes.transpose_b ? Shape(n, k) : Shape(k, n);
  kernel.operands[2].shape = Shape(m, n);
  return kernel;
}

struct AttentionGridPoint {
  std::int64_t sequence, heads, head_dim;
  bool causal;
};

TimedKernel attention_of_size(const TimedKernel& like, const AttentionGridPoint& point) {
  TimedKernel kernel = like;
  const Shape heads(point.sequence, 1, point.heads, point.head_dim), lse(1, point.heads, point.sequence, 1);
  constexpr std::size_t lse_operand = 4;
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) kernel.operands[i].shape = i == lse_operand ? lse : heads;
  Positions all;
  all.length[0] = static_cast<std::int32_t>(point.sequence);
  kernel.attributes = AttentionAttributes{.causal = point.causal, .scale = 0.1F, .queries = all, .keys = all};
  return kernel;
}

std::vector<TimedKernel> attention_families(const Dag& dag) {
  std::vector<TimedKernel> both = families(dag, OpClass::attention_forward);
  const std::vector<TimedKernel> backward = families(dag, OpClass::attention_backward);
  both.insert(both.end(), backward.begin(), backward.end());
  return both;
}

TimedKernel copy_of(std::int64_t elements) {
  const OperandType type{Shape(elements), DType::f32};
  return {OpKind::scale, {type, type}, ScaleAttributes{}};
}

}  // namespace

void KernelPlan::add(const TimedKernel& kernel) {
  Bytes bytes = 0;
  for (const OperandType& operand : kernel.operands) {
    if (operand.shape.elements() < 1) return;
    bytes += operand.shape.elements() * std::max(size_of(operand.dtype), size_of(DType::f32));
  }
  if (bytes <= memory_ && known_.insert(key_of(kernel)).second) kernels_.push_back(kernel);
}

void KernelPlan::add(const Dag& dag, std::initializer_list<OpClass> classes) {
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (std::ranges::find(classes, operation(dag.tasks[id].op).op_class) != classes.end()) add(kernel_of(dag, id));
}

void add_scenario(const Scenario& scenario, KernelPlan& plan) {
  plan.add(lower_one_of_each_class(scenario),
           {OpClass::gemm, OpClass::attention_forward, OpClass::attention_backward, OpClass::memory, OpClass::scan});
}

void add_probes(const std::vector<DType>& precisions, KernelPlan& plan) {
  for (const std::int64_t elements : {1, 1 << 14, 1 << 22}) plan.add(copy_of(elements));
  for (const DType precision : precisions) {
    plan.add(lower_style(biased_model(256), {}, precision, 64, dropout_of_unfused_attention), {OpClass::gemm});
    const Dag step = lower_dense(precision);
    for (const TimedKernel& gemm : families(step, OpClass::gemm)) {
      plan.add(gemm_of_size(gemm, 16, 16, 16));
      plan.add(gemm_of_size(gemm, 256, 256, 256));
    }
    for (const TimedKernel& attention : attention_families(step)) plan.add(attention_of_size(attention, {256, 8, 64, true}));
    plan.add(lower_style(indexed_model(256), {}, precision, 64),
             {OpClass::gemm, OpClass::attention_forward, OpClass::attention_backward});
  }
}

void add_grids(const std::vector<DType>& precisions, KernelPlan& plan) {
  const std::vector<std::int64_t> sizes{16, 64, 256, 1024, 4096, 16384};
  for (const DType precision : precisions) {
    const Dag step = lower_dense(precision);
    for (const TimedKernel& gemm : families(step, OpClass::gemm))
      for (const std::int64_t m : sizes)
        for (const std::int64_t n : sizes)
          for (const std::int64_t k : sizes) plan.add(gemm_of_size(gemm, m, n, k));
    for (const TimedKernel& attention : attention_families(step))
      for (const std::int64_t sequence : {64, 256, 1024, 4096, 16384})
        for (const std::int64_t heads : {8, 32})
          for (const std::int64_t head_dim : {64, 128})
            for (const bool causal : {true, false}) plan.add(attention_of_size(attention, {sequence, heads, head_dim, causal}));
  }
}

void add_memory_bound(const std::vector<DType>& precisions, KernelPlan& plan) {
  struct Style {
    ModelSpec (*model)(std::int64_t hidden);
    ParallelismSpec parallelism;
    Change change = nullptr;
  };
  const Style styles[] = {
      {dense_model, {}},
      {dense_model, {.tp = 2, .sp = true}},
      {dense_model, {.cp = 2}},
      {dense_model, {.cp = 2, .cp_method = CpMethod::all_gather}},
      {dense_model, {.cp = 2, .cp_method = CpMethod::ulysses, .cp_layout = CpLayout::contiguous}},
      {gpt_model, {.tp = 2}},
      {mixture_model, {.ep = 2}},
      {mixture_model, {.ep = 2}, gates_at_experts},
      {mixture_model, {.ep = 2}, balances_by_biases},
      {mixture_model, {.ep = 2}, balances_sequences},
      {biased_model, {}, dropout_of_unfused_attention},
      {latent_model, {.cp = 2}},
      {indexed_model, {}},
      {normed_model, {}},
      {unit_normed_model, {}},
      {seeing_model, {}},
      {compressed_model, {}},
      {mamba_model, {.cp = 2}},
      {gated_delta_model, {}},
      {lightning_model, {}},
      {dense_model, {}, updates_by_muon},
      {dense_model, {}, updates_by_adafactor},
      {dense_model, {}, compresses_gradients<CompressionMethod::top_k>},
      {dense_model, {}, compresses_gradients<CompressionMethod::one_bit>},
      {dense_model, {}, compresses_gradients<CompressionMethod::powersgd>},
  };
  struct Size {
    std::int64_t sequence, hidden;
  };
  for (std::int64_t elements = 1 << 10; elements <= 1 << 28; elements *= 4) plan.add(copy_of(elements));
  for (const DType precision : precisions)
    for (const Style& style : styles)
      for (const auto& [sequence, hidden] : {Size{64, 256}, Size{256, 512}, Size{512, 1024}, Size{2048, 2048}, Size{8192, 8192}})
        plan.add(lower_style(style.model(hidden), style.parallelism, precision, sequence, style.change),
                 {OpClass::memory, OpClass::scan});
}

void add_presets(const std::vector<DType>& precisions, std::int64_t sequence, Seconds patience, KernelPlan& plan) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (const std::string& name : preset_names(PresetKind::model)) {
    ModelSpec model = model_preset(name);
    model.layers = 4;
    for (const DType precision : precisions) {
      for (const std::int64_t tp : {1, 2, 4, 8}) {
        if (std::chrono::duration<double>(Clock::now() - begin).count() > patience) return;
        Scenario scenario = scenario_with(model, {.tp = tp, .sp = tp > 1}, tp, precision, sequence);
        scenario.training.global_batch = 1;
        if (first_objection(scenario)) continue;  // the model does not divide so, such as 25 heads over 2 ranks
        plan.add(lower_one_of_each_class(scenario), {OpClass::gemm, OpClass::attention_forward, OpClass::attention_backward});
      }
    }
  }
}

}  // namespace tandem::studies
