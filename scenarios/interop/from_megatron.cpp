#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/divide_up.h"
#include "runtime/base/nearest.h"
#include "scenarios/interop/interop.h"
#include "scenarios/interop/layer_pattern.h"
#include "scenarios/interop/megatron_reader.h"
#include "scenarios/interop/program_arguments.h"
#include "scenarios/reading/yaml_mapping.h"
#include "scenarios/schedules/schedule_table.h"
#include "scenarios/spec/moe_layers.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

/// Defaults are those of megatron/training/arguments.py.
class MegatronReader {
 public:
  MegatronReader(ProgramArguments arguments, const std::string& file, std::int64_t gpus)
      : arguments_(std::move(arguments)),
        file_(file),
        gpus_(gpus),
        document_(make_node(YamlNode::Kind::mapping, {.file = file})) {}

  Imported all() {
    for (const char* name : {"model", "parallelism", "training"}) section(name);  // none comes later, so that references stay
    sizes();
    model();
    attention();
    if (arguments_.has("num-experts")) experts();
    mesh();
    pipeline();
    data_parallel();
    training();
    recompute();
    for (const char* means_nothing : {"use-mcore-models", "moe-grouped-gemm", "no-gradient-accumulation-fusion"})
      arguments_.has(means_nothing);
    return {.document = std::move(document_), .ignored = arguments_.unknown()};
  }

 private:
  ProgramArguments arguments_;
  std::string file_;
  std::int64_t gpus_;
  YamlNode document_;
  std::int64_t layers_ = 0, hidden_ = 0, heads_ = 0, tp_ = 1, pp_ = 1, cp_ = 1, vpp_ = 1;

  YamlNode& section(const char* name) { return section_of(document_, name, {.file = file_}); }

  [[noreturn]] void fail(const std::string& name, const std::string& expected) {
    throw InputError(arguments_.place(name),
                     "--" + name + " " + arguments_.text(name) + " is not something a scenario expresses; expected " + expected);
  }

  void set(YamlNode& to, std::string_view key, const char* name) { put(to, key, arguments_.has(name), arguments_.place(name)); }

  void sizes() {
    const std::string line = "a command line of pretrain_gpt.py";
    const std::string pattern = hybrid_pattern();
    layers_ = pattern.empty() || arguments_.has("num-layers") ? arguments_.required_integer("num-layers", line)
                                                              : static_cast<std::int64_t>(pattern.size());
    hidden_ = arguments_.required_integer("hidden-size", line);
    heads_ = arguments_.required_integer("num-attention-heads", line);
    tp_ = positive("tensor-model-parallel-size", 1);
    pp_ = positive("pipeline-model-parallel-size", 1);
    cp_ = positive("context-parallel-size", 1);
  }

  /// The letters of hybrid layers, without those that predict further tokens; under either of its names.
  const char* hybrid_argument() {
    return arguments_.has("hybrid-layer-pattern") ? "hybrid-layer-pattern" : "hybrid-override-pattern";
  }
  std::string hybrid_pattern() {
    const std::string pattern = arguments_.text(hybrid_argument(), "");
    return pattern.substr(0, pattern.find('/'));
  }

  void layers_that_differ(YamlNode& model) {
    arguments_.has("is-hybrid-model");
    const std::string pattern = hybrid_pattern();
    if (pattern.empty()) return;
    const char* const argument = hybrid_argument();
    std::string letters;
    for (const Named<LayerType>& letter : hybrid_letters) letters += letter.name;
    if (pattern.find_first_not_of(letters) != std::string::npos) fail(argument, "letters of " + letters);
    put(model, "layer_types", pattern, arguments_.place(argument));
    if (pattern.find('M') == std::string::npos) return;
    YamlNode& mamba = section_of(model, "mamba", arguments_.place(argument));
    const std::int64_t head_dim = positive("mamba-head-dim", 64);
    arguments_.copy_integer(mamba, "heads", "mamba-num-heads", 2 * hidden_ / head_dim);
    arguments_.copy_integer(mamba, "head_dim", "mamba-head-dim", 64);
    arguments_.copy_integer(mamba, "groups", "mamba-num-groups", 8);
    arguments_.copy_integer(mamba, "state", "mamba-state-dim", 128);
  }

  std::int64_t positive(const char* name, std::int64_t fallback) {
    const std::int64_t value = arguments_.integer(name, fallback);
    if (value < 1)
      throw InputError(arguments_.place(name),
                       "--" + std::string(name) + " is " + std::to_string(value) + ", expected 1 or more");
    return value;
  }

  /// Data-parallel ranks, where the number of GPUs is known and divides.
  std::int64_t data_parallel_size() const { return gpus_ / (tp_ * pp_ * cp_); }

  std::int64_t vocabulary() {
    if (arguments_.has("padded-vocab-size")) return arguments_.integer("padded-vocab-size", 0);
    const std::int64_t stated = arguments_.required_integer(
        "vocab-size", "it or --padded-vocab-size, since the vocabulary of the tokenizer is not in this file");
    const std::int64_t unit = positive("make-vocab-size-divisible-by", 128) * tp_;
    return round_up(stated, unit);
  }

  void model() {
    YamlNode& node = section("model");
    const bool is_quick = arguments_.has("quick-geglu"), gated = arguments_.has("swiglu") || is_quick;
    put(node, "layers", layers_, arguments_.place("num-layers"));
    put(node, "hidden", hidden_, arguments_.place("hidden-size"));
    const std::int64_t usual_ffn = gated ? hidden_ * 4 * 2 / 3 / 64 * 64 : 4 * hidden_;
    arguments_.copy_integer(node, "ffn", "ffn-hidden-size", usual_ffn);
    put(node, "gated", gated, arguments_.place("swiglu"));
    if (is_quick) {
      put(node, "activation", name_in(mlp_function_names, MlpFunction::quick_gelu), arguments_.place("quick-geglu"));
      if (const double limit = arguments_.number("activation-func-clamp-value", 0); limit > 0)
        put(node, "activation_limit", limit, arguments_.place("activation-func-clamp-value"));
    }
    if (const double offset = arguments_.number("glu-linear-offset", 0); gated && offset != 0)
      put(node, "activation_offset", offset, arguments_.place("glu-linear-offset"));
    if (arguments_.has("squared-relu"))
      put(node, "activation", name_in(mlp_function_names, MlpFunction::squared_relu), arguments_.place("squared-relu"));
    put(node, "norm",
        name_in(norm_names, arguments_.text("normalization", "LayerNorm") == "RMSNorm" ? NormKind::rms : NormKind::layer),
        arguments_.place("normalization"));
    put(node, "vocab", vocabulary(), arguments_.place(arguments_.has("padded-vocab-size") ? "padded-vocab-size" : "vocab-size"));
    put(node, "tied_embeddings", !arguments_.has("untie-embeddings-and-output-weights"), {.file = file_});
    arguments_.copy_integer(node, "mtp_depth", "mtp-num-layers", 0);
    layers_that_differ(node);
    const bool biased = !arguments_.has("disable-bias-linear");
    const bool takes_biases = !arguments_.has("num-experts") && !arguments_.has("multi-latent-attention");
    put(node, "linear_bias", biased && takes_biases, arguments_.place("disable-bias-linear"));
    if (arguments_.has("add-qkv-bias") && !arguments_.has("multi-latent-attention"))
      put(node, "attention_bias", name_in(attention_bias_names, AttentionBias::qkv), arguments_.place("add-qkv-bias"));
    positions(node);
  }

  void positions(YamlNode& node) {
    const std::string type = arguments_.has("use-rotary-position-embeddings")
                                 ? "rope"
                                 : arguments_.text("position-embedding-type", "learned_absolute");
    const Place place = arguments_.place("position-embedding-type");
    if (type != "rope" && type != "learned_absolute" && type != "none")
      fail("position-embedding-type", "rope, learned_absolute or none");
    put(node, "rotary", type == "rope", place);
    arguments_.has("max-position-embeddings");
    if (type == "rope") {
      put(node, "rotary_base", arguments_.number("rotary-base", 10'000), arguments_.place("rotary-base"));
      if (arguments_.has("rotary-percent"))
        put(node, "rotary_share", arguments_.number("rotary-percent", 1), arguments_.place("rotary-percent"));
    } else if (type == "none") {
      put(node, "max_positions", std::int64_t{0}, place);
    } else {
      arguments_.copy_integer(node, "max_positions", "max-position-embeddings", arguments_.integer("seq-length", 0));
    }
  }

  /// --window-size (127,0) is 127 positions before the query's own; every N-th layer may do without.
  void windows(YamlNode& node) {
    if (!arguments_.has("window-size")) return;
    std::string size = arguments_.text("window-size", "");
    std::erase_if(size, [](char c) { return c == '(' || c == ')' || c == ' '; });
    std::int64_t before = 0;
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), before);
    if (error != std::errc{} || before < 0 || std::string_view(end) != ",0")
      fail("window-size", "positions before and after the query's, as in (127,0)");
    put(node, "window", before + 1, arguments_.place("window-size"));
    std::vector<std::string> types{std::string(name_in(layer_type_names, LayerType{Mixer::sliding_attention}))};
    if (arguments_.has("window-attn-skip-freq")) {
      const std::int64_t every = positive("window-attn-skip-freq", 1);
      if (every > layers_) fail("window-attn-skip-freq", "a number of layers");
      types.assign(static_cast<std::size_t>(every - 1), types.front());
      types.emplace_back(name_in(layer_type_names, LayerType{Mixer::full_attention}));
    }
    put(node, "layer_types", list_of(types));
  }

  void indexer(YamlNode& model) {
    const std::string variant = arguments_.text("experimental-attention-variant", "");
    if (variant.empty()) return;
    if (variant != "dsa") fail("experimental-attention-variant", "dsa");
    YamlNode& indexer = section_of(model, "indexer", arguments_.place("experimental-attention-variant"));
    arguments_.copy_integer(indexer, "heads", "dsa-indexer-n-heads", 64);
    arguments_.copy_integer(indexer, "head_dim", "dsa-indexer-head-dim", 128);
    arguments_.copy_integer(indexer, "top_k", "dsa-indexer-topk", 2048);
    if (const double coefficient = arguments_.number("dsa-indexer-loss-coeff", 0); coefficient > 0)
      put(indexer, "loss_coefficient", coefficient, arguments_.place("dsa-indexer-loss-coeff"));
    put(indexer, "sparse_loss", arguments_.has("dsa-indexer-use-sparse-loss"),
        arguments_.place("experimental-attention-variant"));
  }

  void attention() {
    YamlNode& node = section("model");
    put(node, "heads", heads_, arguments_.place("num-attention-heads"));
    windows(node);
    if (arguments_.has("qk-layernorm") && !arguments_.has("multi-latent-attention"))
      put(node, "qk_norm", name_in(qk_norm_names, QkNorm::head), arguments_.place("qk-layernorm"));
    if (arguments_.has("attention-output-gate") && !arguments_.has("multi-latent-attention"))
      put(node, "attention_gate", true, arguments_.place("attention-output-gate"));
    if (arguments_.text("softmax-type", "vanilla") == "learnable")
      put(node, "attention_sinks", true, arguments_.place("softmax-type"));
    if (arguments_.has("multi-latent-attention")) {
      YamlNode& mla = section_of(node, "mla", arguments_.place("multi-latent-attention"));
      arguments_.copy_integer(mla, "q_rank", "q-lora-rank", 0);
      arguments_.copy_integer(mla, "kv_rank", "kv-lora-rank", 32);
      arguments_.copy_integer(mla, "nope_dim", "qk-head-dim", 128);
      arguments_.copy_integer(mla, "rope_dim", "qk-pos-emb-head-dim", 64);
      arguments_.copy_integer(mla, "v_dim", "v-head-dim", 128);
      indexer(node);
    } else {
      if (arguments_.has("kv-channels")) arguments_.copy_integer(node, "head_dim", "kv-channels", 0);
      if (arguments_.has("group-query-attention")) arguments_.copy_integer(node, "kv_heads", "num-query-groups", 1);
    }
    const std::string backend = arguments_.text("attention-backend", "auto");
    if (backend == "unfused")
      put(section("training"), "attention", name_of(AttentionKernel::unfused), arguments_.place("attention-backend"));
    dropout(backend);
    if (backend == "fused") put(section("training"), "attention", "cudnn", arguments_.place("attention-backend"));
    if (backend == "flash")
      put(section("training"), "attention", name_of(AttentionKernel::flash_2), arguments_.place("attention-backend"));
  }

  /// Where they are not stated, the framework's choice is left to it.
  void dropout(const std::string& backend) {
    for (const char* name : {"hidden", "attention"}) {
      const std::string argument = std::string(name) + "-dropout";
      if (!arguments_.has(argument)) continue;
      const double probability = arguments_.number(argument, 0);
      if (std::string_view(name) == "attention" && backend != "unfused") continue;  // fused attention keeps no mask
      put(section("training"), std::string(name) + "_dropout", probability, arguments_.place(argument));
    }
  }

  void experts() {
    YamlNode& moe = section_of(section("model"), "moe", arguments_.place("num-experts"));
    arguments_.copy_integer(moe, "experts", "num-experts", 0);
    arguments_.copy_integer(moe, "top_k", "moe-router-topk", 2);
    if (arguments_.has("moe-ffn-hidden-size")) arguments_.copy_integer(moe, "ffn", "moe-ffn-hidden-size", 0);
    if (hybrid_pattern().empty()) layers_with_experts(moe);
    if (arguments_.has("moe-latent-size")) arguments_.copy_integer(moe, "latent", "moe-latent-size", 0);
    shared_experts(moe);
    if (arguments_.has("moe-expert-capacity-factor"))
      put(moe, "capacity_factor", arguments_.number("moe-expert-capacity-factor", 0),
          arguments_.place("moe-expert-capacity-factor"));
    if (const bool pads = arguments_.has("moe-pad-expert-input-to-capacity"); arguments_.has("moe-expert-capacity-factor"))
      put(moe, "pad_to_capacity", pads, arguments_.place("moe-expert-capacity-factor"));
    put(moe, "balance_loss", arguments_.number("moe-aux-loss-coeff", 0), arguments_.place("moe-aux-loss-coeff"));
    if (arguments_.text("moe-router-load-balancing-type", "aux_loss") == "seq_aux_loss")
      put(moe, "balance_scope", "sequence", arguments_.place("moe-router-load-balancing-type"));
    router(moe);
    YamlNode& parallelism = section("parallelism");
    arguments_.copy_integer(parallelism, name_of(Axis::ep), "expert-model-parallel-size", 1);
    arguments_.copy_integer(parallelism, "etp", "expert-tensor-parallel-size", tp_);
    const std::string dispatcher = arguments_.text("moe-token-dispatcher-type", "allgather");
    const std::string backend = arguments_.text("moe-flex-dispatcher-backend", "deepep");
    const bool flex = dispatcher == "flex";
    const bool deepep = flex && (arguments_.has("moe-enable-deepep") || arguments_.has("moe-flex-dispatcher-backend"));
    if (dispatcher == "allgather" && arguments_.integer("expert-model-parallel-size", 1) > 1)
      throw InputError(arguments_.place("moe-token-dispatcher-type"),
                       "--moe-token-dispatcher-type is allgather, which no scenario expresses; expected alltoall, or flex with "
                       "--moe-enable-deepep");
    put(parallelism, "dispatcher",
        name_in(dispatcher_names, !deepep                 ? Dispatcher::nccl
                                  : backend == "hybridep" ? Dispatcher::hybridep
                                                          : Dispatcher::deepep),
        arguments_.place("moe-token-dispatcher-type"));
  }

  void router(YamlNode& moe) {
    if (arguments_.has("moe-router-num-groups")) arguments_.copy_integer(moe, "groups", "moe-router-num-groups", 0);
    if (arguments_.has("moe-router-group-topk")) arguments_.copy_integer(moe, "node_limit", "moe-router-group-topk", 0);
    if (arguments_.has("moe-router-score-function"))
      put(moe, "score_function", arguments_.text("moe-router-score-function", "softmax"),
          arguments_.place("moe-router-score-function"));
    const bool several = arguments_.integer("moe-router-topk", 2) > 1;  // a single gate is always the softmax over all
    if (arguments_.has("moe-router-pre-softmax") && several)
      put(moe, "pre_softmax", true, arguments_.place("moe-router-pre-softmax"));
    for (const auto& [field, argument] : {std::pair{"scaling_factor", "moe-router-topk-scaling-factor"},
                                          std::pair{"bias_update_rate", "moe-router-bias-update-rate"}})
      if (arguments_.has(argument)) put(moe, field, arguments_.number(argument, 0), arguments_.place(argument));
    if (arguments_.has("moe-router-enable-expert-bias"))
      put(moe, "expert_bias", true, arguments_.place("moe-router-enable-expert-bias"));
  }

  void layers_with_experts(YamlNode& moe) {
    const Place place = arguments_.place("moe-layer-freq");
    const std::string frequency = arguments_.text("moe-layer-freq", "1");
    if (frequency.find('[') == std::string::npos) return arguments_.copy_integer(moe, "every", "moe-layer-freq", 1);
    const auto pattern = evaluate_layer_pattern(frequency);
    if (!pattern || static_cast<std::int64_t>(pattern->size()) != layers_)
      throw InputError(place, "--moe-layer-freq " + excerpt(frequency) + " is no list of " + std::to_string(layers_) +
                                  " layers, expected one such as [0]*3+[1]*" + std::to_string(layers_ - 3));
    const auto found = moe_layers_of(*pattern);
    if (!found) fail("moe-layer-freq", "dense layers first, then experts in every n-th layer");
    put(moe, "first_dense_layers", found->first_dense_layers, place);
    put(moe, "every", found->every, place);
  }

  void shared_experts(YamlNode& moe) {
    if (!arguments_.has("moe-shared-expert-intermediate-size")) return;
    const std::int64_t width = arguments_.integer("moe-shared-expert-intermediate-size", 0);
    const std::int64_t ffn = arguments_.integer("moe-ffn-hidden-size", arguments_.integer("ffn-hidden-size", 4 * hidden_));
    if (ffn < 1 || width % ffn != 0)
      fail("moe-shared-expert-intermediate-size", "a multiple of the experts' " + std::to_string(ffn));
    put(moe, "shared_experts", width / ffn, arguments_.place("moe-shared-expert-intermediate-size"));
    if (width > 0 && arguments_.has("moe-shared-expert-gate"))
      put(moe, "shared_gate", true, arguments_.place("moe-shared-expert-gate"));
  }

  /// The first of --hierarchical-context-parallel-sizes 2 4: ranks that deal out heads.
  std::int64_t dealt_ranks() {
    constexpr const char* name = "hierarchical-context-parallel-sizes";
    const std::vector<std::string> sizes = arguments_.values(name);
    const std::int64_t dealt = arguments_.integer(name, 0);
    if (sizes.size() != 2 || dealt < 1 || cp_ % dealt != 0 || sizes.back() != std::to_string(cp_ / dealt))
      fail(name, "two sizes whose product is --context-parallel-size, as in 2 4");
    return dealt;
  }

  void mesh() {
    YamlNode& node = section("parallelism");
    put(node, name_of(Axis::tp), tp_, arguments_.place("tensor-model-parallel-size"));
    set(node, "sp", "sequence-parallel");
    put(node, name_of(Axis::cp), cp_, arguments_.place("context-parallel-size"));
    set(section_of(section("training"), "overlap", {.file = file_}), name_of(Axis::tp), "tp-comm-overlap");
    const std::string type = arguments_.text("cp-comm-type", "p2p");
    const Place place = arguments_.place("cp-comm-type");
    if (type == "p2p") {
      put(node, "cp_method", name_in(cp_method_names, CpMethod::ring), place);
    } else if (type == "a2a") {
      put(node, "cp_method", name_in(cp_method_names, CpMethod::ulysses), place);
    } else if (type == "all_gather" || type == "allgather") {
      put(node, "cp_method", name_in(cp_method_names, CpMethod::all_gather), place);
    } else if (type == "a2a+p2p") {
      put(node, "cp_method", name_in(cp_method_names, CpMethod::ulysses_ring), place);
      put(node, "cp_ulysses", dealt_ranks(), arguments_.place("hierarchical-context-parallel-sizes"));
    } else {
      fail("cp-comm-type", "p2p, all_gather, a2a or a2a+p2p");
    }
    if (!arguments_.has("use-tp-pp-dp-mapping")) return;
    YamlNode order = make_node(YamlNode::Kind::sequence, arguments_.place("use-tp-pp-dp-mapping"));
    for (const Axis axis : {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp})
      order.items.push_back(make_scalar(std::string(name_of(axis)), order.place));
    put(node, "order", std::move(order));
  }

  void pipeline() {
    YamlNode& node = section("parallelism");
    put(node, name_of(Axis::pp), pp_, arguments_.place("pipeline-model-parallel-size"));
    set(node, "account_for_embedding", "account-for-embedding-in-pipeline-split");
    set(node, "account_for_loss", "account-for-loss-in-pipeline-split");
    if (arguments_.has("decoder-first-pipeline-num-layers"))
      arguments_.copy_integer(node, "first_stage_layers", "decoder-first-pipeline-num-layers", 0);
    if (arguments_.has("decoder-last-pipeline-num-layers"))
      arguments_.copy_integer(node, "last_stage_layers", "decoder-last-pipeline-num-layers", 0);
    std::string name = "num-virtual-stages-per-pipeline-rank";
    vpp_ = positive(name.c_str(), 1);
    if (arguments_.has("num-layers-per-virtual-pipeline-stage")) {
      name = "num-layers-per-virtual-pipeline-stage";
      const std::int64_t accounted = layers_ + (arguments_.has("account-for-embedding-in-pipeline-split") ? 1 : 0) +
                                     (arguments_.has("account-for-loss-in-pipeline-split") ? 1 : 0);
      vpp_ = std::max<std::int64_t>(1, accounted / pp_ / positive(name.c_str(), 1));
    }
    if (arguments_.has("pipeline-model-parallel-layout")) {
      name = "pipeline-model-parallel-layout";
      vpp_ = layout(node);
    }
    put(node, "vpp", vpp_, arguments_.place(name));
    put(section("training"), "schedule", name_of(vpp_ > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b),
        arguments_.place(name));
    put(section_of(section("training"), "overlap"), name_of(Axis::pp), !arguments_.has("no-overlap-p2p-communication"),
        {.file = file_});
    set(section_of(section("training"), "overlap"), name_of(Axis::ep), "overlap-moe-expert-parallel-comm");
    arguments_.has("delay-wgrad-compute");  // as overlap.ep does in any case
  }

  /// Returns how many virtual stages a pipeline stage has.
  std::int64_t layout(YamlNode& node) {
    const Place place = arguments_.place("pipeline-model-parallel-layout");
    const std::string text = arguments_.text("pipeline-model-parallel-layout");
    put(node, "pipeline_layout", text, place);
    try {
      return std::max<std::int64_t>(1, static_cast<std::int64_t>(parse_pipeline_layout(text).size()) / pp_);
    } catch (const std::invalid_argument& error) {
      throw InputError(place, "--pipeline-model-parallel-layout: " + std::string(error.what()));
    }
  }

  void data_parallel() {
    YamlNode& node = section("parallelism");
    std::int64_t zero = arguments_.has("use-distributed-optimizer") ? 1 : 0;
    Place place = arguments_.place("use-distributed-optimizer");
    const std::string optimizer = arguments_.text("optimizer", "adam");
    if (optimizer != "adam" && optimizer != "muon" && optimizer != "dist_muon") fail("optimizer", "adam, muon or dist_muon");
    if (optimizer != "adam") put(section("training"), "optimizer", "muon", arguments_.place("optimizer"));
    if (optimizer == "dist_muon") {
      zero = 1;
      place = arguments_.place("optimizer");
    }
    for (const char* const how : {"muon-tp-mode", "muon-use-nesterov"}) arguments_.has(how);
    if (arguments_.has("use-megatron-fsdp") || arguments_.has("data-parallel-sharding-strategy")) {
      const std::string strategies[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
      const auto* const found = std::ranges::find(strategies, arguments_.text("data-parallel-sharding-strategy", "no_shard"));
      if (found == std::end(strategies))
        fail("data-parallel-sharding-strategy", "no_shard, optim, optim_grads or optim_grads_params");
      zero = found - strategies;
      place = arguments_.place("data-parallel-sharding-strategy");
    }
    if (arguments_.has("use-torch-fsdp2")) {
      zero = 3;
      place = arguments_.place("use-torch-fsdp2");
      put(node, "reshard_after_forward", !arguments_.has("torch-fsdp2-no-reshard-after-forward"), place);
    }
    put(node, "zero", zero, place);
    shard_group(node);
    YamlNode& training = section("training");
    set(section_of(training, "overlap"), name_of(Axis::dp), "overlap-grad-reduce");
    arguments_.has("overlap-param-gather");
    if (arguments_.has("ddp-bucket-size"))
      put(training, "bucket_MB",
          static_cast<double>(positive("ddp-bucket-size", 1)) * static_cast<double>(gradient_bytes()) / 1e6,
          arguments_.place("ddp-bucket-size"));
  }

  void shard_group(YamlNode& node) {
    const char* const name = "num-distributed-optimizer-instances";
    const std::int64_t copies = positive(name, 1);
    if (copies == 1) return;
    if (gpus_ == 0)
      throw InputError(arguments_.place(name),
                       "--" + std::string(name) + " divides a number of ranks that is not known, expected the number of GPUs");
    put(node, "hsdp", std::max<std::int64_t>(2, data_parallel_size() * cp_ / copies), arguments_.place(name));
  }

  /// As validate_args decides it: bf16 gradients are accumulated in fp32 unless told otherwise, fp16 ones the other way round.
  std::string gradient_type() {
    if (arguments_.has("fp16") && !arguments_.has("accumulate-allreduce-grads-in-fp32")) return "fp16";
    return arguments_.has("grad-reduce-in-bf16") ? "bf16" : "fp32";
  }
  Bytes gradient_bytes() { return gradient_type() == "fp32" ? 4 : 2; }

  void training() {
    YamlNode& node = section("training");
    put(node, "sequence", arguments_.required_integer("seq-length", "the tokens of a sequence"), arguments_.place("seq-length"));
    const std::int64_t micro_batch = arguments_.required_integer("micro-batch-size", "the sequences of a micro-batch");
    put(node, "micro_batch", micro_batch, arguments_.place("micro-batch-size"));
    if (!arguments_.has("global-batch-size") && gpus_ == 0)
      throw InputError({.file = file_}, "--global-batch-size is missing, expected it or the number of GPUs");
    arguments_.copy_integer(node, "global_batch", "global-batch-size", micro_batch * data_parallel_size());
    const bool fp8 = arguments_.has("fp8-format"), fp4 = arguments_.has("fp4-format");
    const bool bf16 = arguments_.has("bf16"), fp16 = arguments_.has("fp16");
    put(node, "precision",
        fp8    ? "fp8"
        : fp4  ? "fp4"
        : bf16 ? "bf16"
        : fp16 ? "fp16"
               : "fp32",
        arguments_.place(fp8    ? "fp8-format"
                         : fp4  ? "fp4-format"
                         : bf16 ? "bf16"
                                : "fp16"));
    if (arguments_.has("fp8-recipe")) put(node, "recipe", fp8_recipe(), arguments_.place("fp8-recipe"));
    if (arguments_.has("fp4-recipe"))
      put(node, "recipe", arguments_.text("fp4-recipe", name_of(Recipe::nvfp4)), arguments_.place("fp4-recipe"));
    if (arguments_.has("first-last-layers-bf16")) {
      set(node, "first_last_layers_bf16", "first-last-layers-bf16");
      arguments_.copy_integer(node, "num_layers_at_start_in_bf16", "num-layers-at-start-in-bf16", 1);
      arguments_.copy_integer(node, "num_layers_at_end_in_bf16", "num-layers-at-end-in-bf16", 1);
    }
    if (arguments_.has("cuda-graph-impl")) put(node, "cuda_graph", cuda_graph(), arguments_.place("cuda-graph-impl"));
    put(node, "grad_dtype", gradient_type(), arguments_.place("grad-reduce-in-bf16"));
    arguments_.has("use-precision-aware-optimizer");
    for (const auto& [field, argument] : {std::pair{"moment_dtype", "exp-avg-dtype"},
                                          {"second_moment_dtype", "exp-avg-sq-dtype"},
                                          {"master_dtype", "main-params-dtype"}})
      put(node, field, arguments_.text(argument, "fp32"), arguments_.place(argument));
    for (const char* gather : {"fp8-param-gather", "fp4-param-gather"})
      if (arguments_.has(gather)) put(node, fp4 ? "fp4_param_gather" : "fp8_param_gather", true, arguments_.place(gather));
    arguments_.has("reuse-grad-buf-for-mxfp8-param-ag");  // which follows
    set(node, "fp8_attention", "fp8-dot-product-attention");
    set(node, "fp8_activation_input", "activation-func-fp8-input-store");
    put(node, "framework", "megatron-core", {.file = file_});
  }

  std::string fp8_recipe() {
    const std::string name = arguments_.text("fp8-recipe", "delayed");
    for (const Named<Recipe>& recipe : megatron_fp8_recipes)
      if (recipe.name == name) return name_of(recipe.value);
    fail("fp8-recipe", "delayed, tensorwise, blockwise or mxfp8");
  }

  /// What is captured of the layers. Scopes beside the attention are what the framework captures with it.
  std::string cuda_graph() {
    const bool captures = arguments_.text("cuda-graph-impl", "none") != "none";
    const std::string scope = arguments_.text("cuda-graph-scope", "");
    if (!captures) return name_of(CudaGraph::none);
    if (scope.find("full_iteration") != std::string::npos) return name_of(CudaGraph::full);
    if (scope.find("attn") != std::string::npos) return name_of(CudaGraph::attention);
    fail("cuda-graph-scope", "full_iteration, or attn with what else is captured of a layer");
  }

  void recompute() {
    YamlNode& node = section("training");
    const std::string granularity =
        arguments_.text("recompute-granularity", arguments_.has("recompute-activations") ? "selective" : "none");
    const Place place = arguments_.place("recompute-granularity");
    if (granularity == "none") return put(node, "recompute", "none", place);
    if (granularity == "selective") return modules(node, place);
    if (granularity != "full") fail("recompute-granularity", "selective or full");
    put(node, "recompute", "full", place);
    const std::int64_t count = positive("recompute-num-layers", 1);
    if (arguments_.text("recompute-method", "uniform") != "block") {
      if (count > 1) put(node, "recompute_segment", count, arguments_.place("recompute-num-layers"));
      return;
    }
    const std::int64_t in_chunk = std::max<std::int64_t>(1, layers_ / (pp_ * vpp_));
    if (count < in_chunk) put(node, "recompute_every", divide_up(in_chunk, count), arguments_.place("recompute-num-layers"));
  }

  void modules(YamlNode& node, const Place& place) {
    constexpr std::pair<std::string_view, const char*> names[] = {
        {"core_attn", "attention"}, {"layernorm", "norm"}, {"moe_act", "activation"},
        {"mla_up_proj", "mla-up"},  {"mlp", "mlp"},        {"moe", "mlp"},
        {"shared_experts", "mlp"}};
    std::vector<std::string> stated = arguments_.values("recompute-modules");
    if (stated.empty()) stated.emplace_back("core_attn");
    YamlNode list = make_node(YamlNode::Kind::sequence, place);
    for (const std::string& module : stated) {
      const auto* const found = std::ranges::find(names, module, [](const auto& entry) { return entry.first; });
      if (found == std::end(names))
        throw InputError(arguments_.place("recompute-modules"),
                         "there is no module " + excerpt(module) +
                             " to recompute, expected core_attn, layernorm, moe_act, mla_up_proj, mlp, moe or shared_experts");
      if (std::ranges::find(list.items, found->second, &YamlNode::text) == list.items.end())
        list.items.push_back(make_scalar(found->second, arguments_.place("recompute-modules")));
    }
    put(node, "recompute", std::move(list));
  }
};

}  // namespace

Imported read_megatron_arguments(ProgramArguments arguments, const std::string& file, std::int64_t gpus) {
  return MegatronReader(std::move(arguments), file, gpus).all();
}

/// Reads a command line of Megatron-Core's pretrain_gpt.py or a shell script that holds one: comments, quotes, arrays and
/// variables that are set in it are understood.
Imported from_megatron(const ForeignText& from) {
  return read_megatron_arguments(ProgramArguments(from.text, from.file), from.file, from.gpus);
}

}  // namespace tandem::scenarios
