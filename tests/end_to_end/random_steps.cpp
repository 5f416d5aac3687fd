#include "tests/end_to_end/random_steps.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <numeric>
#include <random>
#include <string_view>

#include "scenarios/reading/load.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies {
namespace {

class StepDraw {
 public:
  explicit StepDraw(std::uint32_t seed) : random_(seed) { step_.seed = seed; }

  RandomStep draw() {
    mesh();
    experts();
    attention();
    model();
    const int chunks = schedule();
    layers(chunks);
    batch();
    sharded_weights();
    gradients();
    recompute();
    cluster();
    if (sp_) set("training.overlap.tp", {"true", "true", "false"});
    scores();
    if (experts_) set("training.gates_at_experts", {"", "true"});
    if (!experts_ && !latent_) set("model.linear_bias", {"", "", "true"});
    mixers();
    if (segments_) set("training.recompute_segment", {"", "2", "3"});
    compressor();
    if (experts_) set("model.moe.latent", {"", "", "12"});
    pipeline_layout(chunks);
    optimizer();
    router();
    narrow_types();
    indexer();
    biases();
    documents();
    lightning();
    residuals();
    encoder();
    gates();
    return std::move(step_);
  }

  /// The same, and fields that came later.
  RandomStep draw_newer() {
    step_ = draw();
    compressed();
    streams();
    if (experts_ && !is_set("model.moe.node_limit")) set("model.moe.hash_layers", {"", "1", "2"});
    if (!latent_) {
      if (!is_set("model.qk_norm")) set("model.qk_norm", {"", "unit"});
      set("model.rope_scaling", {"", "yarn"});
    }
    if (is("training.optimizer=muon")) set("training.muon_tp", {"distributed", "blockwise"});
    if (is("training.precision=fp8") || is("training.precision=fp4"))
      for (const char* field :
           {"gathers_casts", "norm_casts", "sums_after_weights", "reduces_amax", "tf32", "rounds_router_gradients"})
        set("training.framework." + std::string(field), {"", "true", "false"});
    return std::move(step_);
  }

 private:
  static constexpr int most_ranks = 16;

  std::mt19937 random_;  // without the library's distributions, which differ between platforms
  RandomStep step_;
  int tp_ = 1, pp_ = 1, cp_ = 1, dp_ = 1, ep_ = 1, mtp_ = 0;
  bool sp_ = false, own_axis_ = false, experts_ = false, latent_ = false, hsdp_ = false, local_ = false, pairs_ = false;
  bool passes_keys_ = false, segments_ = false;
  std::string schedule_;

  bool one_in(unsigned n) { return random_() % n == 0; }

  /// Draws a value and sets the field to it; "" leaves the field out.
  std::string set(const std::string& field, std::initializer_list<const char*> values) {
    const auto override_with = [&](const std::string& value) { return field + "=" + value; };
    for (const char* value : values)
      if (*value != '\0') step_.choices.insert(override_with(value));
    std::string value = *(values.begin() + random_() % values.size());
    if (!value.empty()) step_.overrides.push_back(override_with(value));
    return value;
  }
  int set_size(const std::string& field, std::initializer_list<const char*> values) {
    const std::string value = set(field, values);
    return value.empty() ? 1 : std::stoi(value);
  }
  void fix(const std::string& field, int value) { step_.overrides.push_back(field + "=" + std::to_string(value)); }

  void mesh() {
    do {
      step_ = {.seed = step_.seed, .overrides = {}, .choices = {}};
      experts_ = one_in(2);
      tp_ = set_size("parallelism.tp", {"", "", "2", "2", "4"});
      pp_ = set_size("parallelism.pp", {"", "2", "2", "4"});
      cp_ = set_size("parallelism.cp", {"", "", "2", "4"});
      dp_ = set_size("parallelism.dp", {"", "2", "2", "3", "4", "8"});
      ep_ = experts_ ? set_size("parallelism.ep", {"", "2", "2", "4", "8"}) : 1;
      own_axis_ = experts_ && set("parallelism.expert_axis", {"folded", "folded", "own"}) == "own";
    } while (tp_ * pp_ * cp_ * dp_ * (own_axis_ ? ep_ : 1) > most_ranks);
    sp_ = tp_ > 1 && (experts_ ? set("parallelism.sp", {"true"}) : set("parallelism.sp", {"true", "false"})) == "true";
    const std::string method = cp_ == 1   ? ""
                               : cp_ == 2 ? set("parallelism.cp_method", {"ring", "all-gather", "ulysses"})
                                          : set("parallelism.cp_method", {"ring", "all-gather", "ulysses", "ulysses-ring"});
    if (method == "ulysses-ring") fix("parallelism.cp_ulysses", 2);
    passes_keys_ = cp_ > 1 && method != "ulysses";
    if (passes_keys_) set("parallelism.cp_layout", {"", "zigzag", "contiguous"});
    set("parallelism.order",
        {"", "", "", "[dp,tp,pp,cp,ep]", "[pp,dp,tp,cp,ep]", "[tp,pp,dp,cp,ep]", "[cp,ep,pp,tp,dp]", "[ep,dp,cp,tp,pp]"});
  }

  void experts() {
    if (!experts_) return;
    fix("model.moe.experts", 8);
    set("model.moe.top_k", {"1", "2", "2", "4"});
    fix("model.moe.ffn", 24);
    set("parallelism.etp", {"", "", "2"});
    set("model.moe.shared_experts", {"", "1", "2"});
    set("model.moe.first_dense_layers", {"", "", "1"});
    set("model.moe.every", {"", "", "2"});
    if (set("model.moe.balance_loss", {"", "0", "3"}) != "0") set("model.moe.balance_scope", {"", "sequence"});
    set("model.moe.node_limit", {"", "", "", "1", "2"});
    set("model.moe.capacity_factor", {"", "", "", "0.5", "1.25", "4"});
    set("model.moe.load", {"", "[4,1,1,3,1,2,0,1]", "{zipf: 1.2}"});
  }

  void router() {
    if (!experts_) return;
    set("model.moe.groups", {"", "", "2", "4"});
    set("model.moe.scaling_factor", {"", "2.5"});
    if (set("model.moe.score_function", {"", "sigmoid", "sqrtsoftplus"}).empty()) {
      set("model.moe.pre_softmax", {"", "true"});
    } else if (!local_) {
      set("model.moe.expert_bias", {"", "true", "true"});
    }
  }

  void attention() {
    latent_ = one_in(3);
    if (!latent_) {
      set("model.kv_heads", {"1", "2", "4", "8"});
      set("model.qk_norm", {"", "", "head"});
      if (set("model.rotary", {"", "", "", "false"}) == "false") fix("model.max_positions", 16);
      return;
    }
    fix("model.kv_heads", 8);
    step_.overrides.insert(step_.overrides.end(),
                           {"model.mla.kv_rank=16", "model.mla.rope_dim=4", "model.mla.nope_dim=6", "model.mla.v_dim=5"});
    set("model.mla.q_rank", {"0", "12"});
  }

  /// Layers that differ: attention in windows, or layers with a state in place of attention, or beside it.
  void mixers() {
    // Not all layers have a state: eight after each other make rounding large.
    const std::string types =
        set("model.layer_types",
            {"", "", "", "", "[sliding_attention,full_attention]", "[full_attention,sliding_attention]", "[sliding_attention]",
             "[mamba,full_attention]", "[full_attention,mamba]", "[linear_attention,full_attention]"});
    if (types.empty()) set("model.causal", {"", "", "false"});
    // A query that sees one key alone has no gradient: layer_kinds_test.cpp.
    if (types.find("sliding") != std::string::npos) set("model.window", {"2", "3", "7", "100"});
    if (types.starts_with("[linear")) {
      set("model.linear_attention.key_heads", {"2", "4", "8"});
      fix("model.linear_attention.value_heads", 8);
      fix("model.linear_attention.key_dim", 64);  // see gated_delta_test.cpp
      fix("model.linear_attention.value_dim", 64);
      set("model.linear_attention.chunk", {"4", "5", "32"});
    }
    if (types.find("mamba") == std::string::npos) return;
    fix("model.mamba.heads", 8);
    fix("model.mamba.head_dim", 64);  // see mamba_test.cpp
    fix("model.mamba.state", 6);
    set("model.mamba.groups", {"1", "2", "4", "8"});
    set("model.mamba.chunk", {"4", "5", "32"});
  }

  /// Where keys pass between ranks it wants them gathered, and no caps: other steps with latent attention are not valid with it.
  void indexer() {
    if (!latent_ || set("model.indexer.heads", {"", "4"}).empty()) return;
    fix("model.indexer.head_dim", 8);
    set("model.indexer.top_k", {"3", "7", "100"});
    set("model.indexer.sparse_loss", {"", "false"});
  }

  void biases() {
    if (!latent_) set("model.attention_bias", {"", "qkv", "all"});
    set("model.logit_softcap", {"", "", "2"});
    if (experts_) set("model.moe.linear_bias", {"", "", "true"});
  }

  /// Of which sequences are packed, unless layers choose keys, or positions are learned where documents are cut into chunks.
  void documents() {
    if (is_set("model.indexer.heads") || (is_set("model.max_positions") && passes_keys_)) return;
    if (set("training.documents.mean", {"", "", "3", "6"}).empty()) return;
    set("training.documents.sigma", {"0.5", "1"});
    const bool may_group = passes_keys_ && !experts_ && !latent_ && !is_set("parallelism.cp_ulysses");
    if (may_group && !set("parallelism.dynamic_cp", {"true", "true", ""}).empty()) {
      std::erase_if(step_.overrides, [](const std::string& one) {
        return one.starts_with("parallelism.cp_layout=") || one.starts_with("training.micro_batch=");
      });
      set("training.documents.packing", {"best-fit"});
    } else {
      set("training.documents.packing", {"", "whole", "best-fit"});
    }
    if (dp_ > 1 && !set("training.documents.streams", {"", "2"}).empty()) set("training.documents.balance", {"", "attention"});
  }

  void encoder() {
    if (cp_ > 1 || is_set("training.micro_batch") || is_set("training.documents.mean") || !one_in(2)) return;
    set("model.encoder.layers", {"1", "2"});
    step_.overrides.insert(step_.overrides.end(),
                           {"model.encoder.hidden=24", "model.encoder.heads=4", "model.encoder.ffn=40", "model.encoder.patches=8",
                            "model.encoder.merge=2", "model.encoder.patch_width=12"});
    set("model.encoder.images", {"", "2", "3"});
    set("model.encoder.frozen", {"", "true"});
    set("model.encoder.gated", {"", "true"});
    set("model.encoder.norm", {"", "rms"});
    set("model.encoder.pool", {"", "true"});
    set("model.encoder.projector", {"", "[16]", "[16,24]", "[16,24,32]"});
    set("model.encoder.projector_norm", {"", "true"});
    set("model.encoder.first_norm", {"", "true"});
    if (!is_set("parallelism.sp")) {
      set("model.encoder.class_token", {"", "true"});
      set("model.encoder.learned_positions", {"", "9"});
    }
  }

  /// In place of attention in every second layer, where positions look back and sequences are whole.
  void lightning() {
    if (is_set("model.layer_types") || is_set("model.causal") || is_set("training.documents.mean")) return;
    if (set("model.layer_types", {"", "", "[lightning_attention,full_attention]"}).empty()) return;
    fix("model.lightning_attention.heads", 8);
    set("model.lightning_attention.head_dim", {"6", "16"});
    set("model.lightning_attention.chunk", {"4", "5", "32"});
  }

  /// Where the stream goes on from the norms, and factors of the stream and of branches, which go without dropout. A stream that
  /// grows from layer to layer and is not normed before the branches makes rounding large.
  void residuals() {
    const bool is_drawn = is_set("model.norm_placement");
    if (!is_drawn) set("model.norm_placement", {"", "residual"});
    if (is_set("training.hidden_dropout") || is_drawn) return;
    for (const char* factor : {"full_attention_alpha", "linear_attention_alpha", "mlp_beta"})
      set("model.residual." + std::string(factor), {"", "", "", "1.5"});
  }

  /// Gates, biases and factors of the model's parts.
  void gates() {
    if (!latent_ && !is_set("model.attention_bias")) set("model.attention_gate", {"", "", "true"});
    if (!latent_ && !is_set("model.qk_norm") && is("model.norm=rms")) set("model.qk_norm", {"", "", "all"});
    if (!is("model.gated=false") && !set("model.activation_limit", {"", "", "3"}).empty()) {  // few reach it: it is a kink
      set("model.activation_offset", {"", "1"});
      set("model.activation", {"", "quick-gelu"});
    }
    if (!is_set("model.encoder.layers")) set("model.embedding_factor", {"", "", "2"});
    set("model.logit_factor", {"", "", "0.5"});
    if (!experts_) return;
    set("model.moe.router_bias", {"", "", "true"});
    if (is_set("model.moe.shared_experts")) set("model.moe.shared_gate", {"", "true"});
    if (is_set("model.moe.node_limit")) set("model.moe.best_of_group", {"", "1"});
  }

  void scores() {
    const bool unfused = set("training.attention", {"", "", "unfused"}) == "unfused";
    if (!unfused) set("model.attention_softcap", {"", "", "2"});
    if (!unfused && !latent_) set("model.attention_sinks", {"", "", "true"});
    if (unfused && !passes_keys_) set("training.attention_dropout", {"", "0.25"});
    set("training.hidden_dropout", {"", "", "0.125"});
  }

  void model() {
    set("model.gated", {"true", "false"});
    set("model.norm", {"rms", "layer"});
    set("model.norm_placement", {"", "", "post", "both"});
    set("model.tied_embeddings", {"true", "false", "false"});
    if (const std::string depth = set("model.mtp_depth", {"", "", "", "1", "2"}); !depth.empty()) mtp_ = std::stoi(depth);
    set("training.precision", {"fp32", "bf16", "fp8"});
    set("training.moment_dtype", {"", "fp32", "bf16"});
    set("training.fp8_activation_input", {"", "", "true"});
  }

  /// Returns the chunks of the model.
  int schedule() {
    const char* const field = "training.schedule";
    schedule_ = pp_ == 1 ? set(field, {"gpipe", "1f1b", "zb-h1"})
                         : set(field, {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe"});
    set("training.overlap.pp", {"true", "false"});
    pairs_ = schedule_ == "interleaved-1f1b" || schedule_ == "dualpipe" || (schedule_ == "1f1b" && pp_ == 1);
    if (schedule_ != "interleaved-1f1b" && schedule_ != "zb-v") return pp_;
    fix("parallelism.vpp", 2);
    return 2 * pp_;
  }

  /// As many as divide over the chunks, in one of the ways in which stages may differ.
  void layers(int chunks) {
    const int each = chunks == 1 ? 3 : chunks == 2 ? 2 : 1;
    int layers = chunks * each;
    const int of_stage = layers / pp_;
    if (pp_ > 1 && one_in(4)) {
      fix("parallelism.first_stage_layers", of_stage);
      fix("parallelism.last_stage_layers", 2 * of_stage);
      layers += of_stage;
    } else if (pp_ > 1 && one_in(3)) {
      layers -= set("parallelism.account_for_embedding", {"", "true"}).empty() ? 1 : 2;
      set("parallelism.account_for_loss", {"true"});
    }
    fix("model.layers", layers);
  }

  void batch() {
    const int micro_batch = set_size("training.micro_batch", {"", "", "2"});
    const int any_number = static_cast<int>(1 + random_() % 4);
    const int micro_batches = schedule_ == "dualpipe" ? 2 * pp_ : schedule_ == "interleaved-1f1b" ? pp_ : any_number;
    fix("training.global_batch", dp_ * (own_axis_ ? ep_ : 1) * micro_batch * micro_batches);
  }

  int data_ranks() const { return dp_ * cp_ * (own_axis_ ? ep_ : 1); }

  void sharded_weights() {
    const bool hides = pairs_ && ep_ > 1 && set("training.overlap.ep", {"true", "true", "false"}) == "true";
    const std::string zero =
        hides ? set("parallelism.zero", {"0", "1", "2"}) : set("parallelism.zero", {"0", "1", "2", "3", "3"});
    if (zero == "0") local_ = !set("training.sync_every", {"", "2"}).empty();
    if (zero == "3") {
      set("parallelism.prefetch", {"", "0", "3"});
      set("parallelism.gather_unit", {"", "weight"});
      const bool reshards = set("parallelism.reshard_after_forward", {"", "true", "false"}) == "true";
      if (!reshards) set("parallelism.gather_per_micro_batch", {"true", "false"});
    }
    if (zero != "0" && data_ranks() > 2) hsdp_ = !set("parallelism.hsdp", {"", "2", "4"}).empty();
  }

  void gradients() {
    set("training.overlap.dp", {"true", "true", "false"});
    set("training.bucket_MB", {"", "0.001", "0.004", "0.02"});
    if (set("training.grad_dtype", {"fp32", "bf16"}) == "fp32") {
      set("training.grad_compression", {"", "", "2", "4"});
    } else {
      set("training.grad_compression", {"", "2"});
    }
    if (data_ranks() > 2 && !hsdp_ && !local_) set("training.hierarchical_all_reduce", {"", "true"});
  }

  bool is_set(const std::string& field) const {
    return std::ranges::any_of(step_.overrides, [&](const std::string& one) { return one.starts_with(field + "="); });
  }

  /// In place of the split of the layers that was drawn: any, and further predictions wherever they may be.
  void pipeline_layout(int chunks) {
    if (pp_ == 1 || !one_in(3)) return;
    std::erase_if(step_.overrides, [](const std::string& one) {
      return one.starts_with("parallelism.account_for") || one.starts_with("parallelism.first") ||
             one.starts_with("parallelism.last") || one.starts_with("model.layers=");
    });
    std::vector<std::string> stages(static_cast<std::size_t>(chunks));
    const auto any_from = [&](std::size_t first) { return first + random_() % (stages.size() - first); };
    const std::size_t layers = 1 + random_() % 5;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < layers; ++i) places.push_back(any_from(0));
    stages.front() = "E";
    for (const std::size_t place : places) stages[place] += 't';
    const bool descends = schedule_ == "zb-v" || schedule_ == "dualpipe";
    const std::size_t last_chunks = stages.size() - static_cast<std::size_t>(pp_) + 1;
    const std::size_t mtp = descends ? stages.size() - 1 : any_from(std::max(last_chunks, std::ranges::max(places)));
    stages[mtp] += std::string(static_cast<std::size_t>(mtp_), 'm');
    stages.back() += 'L';
    std::string text;
    for (const std::string& stage : stages) text += (text.empty() ? "" : "|") + stage;
    fix("model.layers", static_cast<int>(layers));
    step_.overrides.push_back("parallelism.pipeline_layout=\"" + text + "\"");
  }

  bool is(const std::string& one) const { return std::ranges::find(step_.overrides, one) != step_.overrides.end(); }

  void optimizer() {
    const bool whole_matrices = !is("parallelism.zero=3") && !hsdp_ && !is_set("training.hierarchical_all_reduce");
    if (whole_matrices && !is_set("training.compressor.method"))
      set("training.optimizer", {"", "", "muon", "adafactor"});
    else
      set("training.optimizer", {"", "", "adafactor"});
  }

  /// What is cast to fp8 or fp4, and how.
  void narrow_types() {
    if (!is("training.precision=fp8")) return;
    std::string precision = "fp8", recipe = "nvfp4";
    if (!set("cluster.preset", {"", "dgx-b200"}).empty()) {
      precision = set("training.precision", {"fp8", "fp4"});
      set("training.framework", {"", "megatron-core"});
    }
    if (precision == "fp8") recipe = set("training.recipe", {"delayed", "current", "blockwise", "mxfp8"});
    if (recipe != "delayed") set("training.first_last_layers_bf16", {"", "", "true"});
    if (recipe == "mxfp8" && !is("model.tied_embeddings=true")) set("training.fp8_output_proj", {"", "true"});
    if (recipe != "blockwise" && !is("training.attention=unfused")) set("training.fp8_attention", {"", "true"});
    if ((is("parallelism.zero=1") || is("parallelism.zero=2")) && !local_)
      set("training." + precision + "_param_gather", {"", "true", "true"});
  }

  void compressor() {
    const bool whole = is("parallelism.zero=0") || is("parallelism.zero=1");
    if (!whole || hsdp_ || local_ || is_set("training.grad_compression") || is_set("training.hierarchical_all_reduce")) return;
    const std::string method = set("training.compressor.method", {"top-k", "one-bit", "powersgd", ""});
    if (method == "top-k") set("training.compressor.ratio", {"1", "3.5"});
    if (method == "powersgd") set("training.compressor.rank", {"", "3"});
  }

  void leave_out(std::initializer_list<std::string_view> beginnings) {
    std::erase_if(step_.overrides, [&](const std::string& one) {
      return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return one.starts_with(beginning); });
    });
  }

  /// Attention to compressed keys in place of any other, with what it does not go with.
  void compressed() {
    if (!one_in(2)) return;
    leave_out({"model.kv_heads",
               "model.qk_norm",
               "model.rotary",
               "model.max_positions",
               "model.attention_",
               "model.linear_",
               "model.mla.",
               "model.indexer.",
               "model.layer_types",
               "model.window",
               "model.causal",
               "model.mamba.",
               "model.lightning_attention.",
               "model.residual.linear",
               "training.attention",
               "training.fp8_attention",
               "training.documents.",
               "parallelism.dynamic_cp",
               "parallelism.cp_method",
               "parallelism.cp_ulysses"});
    if (is_set("training.recompute") && latent_) leave_out({"training.recompute"});
    latent_ = true;  // what other attention has is not drawn
    if (cp_ > 1) step_.overrides.emplace_back("parallelism.cp_method=all-gather");
    step_.overrides.insert(
        step_.overrides.end(),
        {"model.kv_heads=1", "model.head_dim=8", "model.compressed_attention.q_rank=12", "model.compressed_attention.rope_dim=4",
         "model.compressed_attention.sparse_ratio=2", "model.compressed_attention.heavy_ratio=8",
         "model.compressed_attention.output_groups=4", "model.compressed_attention.output_rank=6",
         "model.compressed_attention.index_heads=4", "model.compressed_attention.index_head_dim=6"});
    set("model.layer_types", {"[sliding_attention,compressed_sparse_attention]", "[heavily_compressed_attention]",
                              "[compressed_sparse_attention,heavily_compressed_attention]"});
    set("model.window", {"2", "3", "100"});
    set("model.attention_sinks", {"", "true"});
    set("model.compressed_attention.index_top_k", {"2", "3", "100"});
    set("model.compressed_attention.yarn", {"", "{factor: 4, original_positions: 8, beta_fast: 2, beta_slow: 0.25}"});
  }

  /// Several residual streams, which go without factors and dropout of one.
  void streams() {
    if (is("model.norm_placement=residual") || !one_in(2)) return;
    leave_out({"model.residual.", "training.hidden_dropout"});
    set("model.hyper_connections.streams", {"2", "3"});
    set("model.hyper_connections.iterations", {"", "3"});
  }

  void recompute() {
    const std::string kind = latent_ && one_in(2) ? set("training.recompute", {"[mla-up]", "[norm,mla-up,activation]"})
                                                  : set("training.recompute", {"none", "selective", "full", "full", "[norm]",
                                                                               "[activation]", "[mlp]", "[norm,attention]"});
    if (kind == "full" && set("training.recompute_every", {"", "2"}).empty()) segments_ = true;
  }

  void cluster() {
    const std::string gpus = dp_ == 3 ? set("cluster.gpus_per_node", {"6"}) : set("cluster.gpus_per_node", {"2", "4", "8"});
    step_.overrides.push_back("cluster.nics_per_node=" + gpus);
    set("cluster.fabric.oversubscription", {"", "[1,2,4]"});
    set("cluster.fabric.leaf_ports", {"", "2"});
  }
};

}  // namespace

std::string RandomStep::text() const {
  return std::accumulate(overrides.begin(), overrides.end(), "seed " + std::to_string(seed) + ":",
                         [](const std::string& all, const std::string& one) { return all + " " + one; });
}

RandomStep random_step(std::uint32_t seed) { return StepDraw(seed).draw(); }
RandomStep newer_random_step(std::uint32_t seed) { return StepDraw(seed).draw_newer(); }

ValidSteps valid_steps(std::size_t count, RandomStep (*drawn)(std::uint32_t seed)) {
  ValidSteps valid;
  std::set<std::string> used;
  const auto adds = [&](const RandomStep& step) {
    return std::ranges::any_of(step.choices, [&](const std::string& choice) {
      return !used.contains(choice) && std::ranges::find(step.overrides, choice) != step.overrides.end();
    });
  };
  std::set<std::string> choices;
  for (std::uint32_t seed = 1; seed <= 8 * count && (valid.steps.size() < count || !valid.unused.empty()); ++seed) {
    RandomStep step = drawn(seed);
    choices.insert(step.choices.begin(), step.choices.end());
    if (valid.steps.size() < count) ++valid.drawn;
    if (valid.steps.size() < count || adds(step)) {
      try {
        tiny_cluster(step.overrides);
        used.insert(step.overrides.begin(), step.overrides.end());
        valid.steps.push_back(std::move(step));
      } catch (const InputError&) {
        // Not a valid combination: the next seed.
      }
    }
    valid.unused.clear();
    std::ranges::set_difference(choices, used, std::back_inserter(valid.unused));
  }
  return valid;
}

}  // namespace tandem::studies
