#include "runtime/base/nearest.h"
#include "scenarios/interop/megatron/layer_pattern.h"
#include "scenarios/interop/megatron/megatron_reader.h"
#include "scenarios/spec/moe_layers.h"

namespace tandem::scenarios {

void MegatronReader::experts() {
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
  balance(moe);
  router(moe);
  YamlNode& parallelism = section("parallelism");
  arguments_.copy_integer(parallelism, name_of(Axis::ep), "expert-model-parallel-size", 1);
  arguments_.copy_integer(parallelism, "etp", "expert-tensor-parallel-size", tp_);
  dispatcher(parallelism);
}

void MegatronReader::balance(YamlNode& moe) {
  const Place place = arguments_.place("moe-router-load-balancing-type");
  std::vector<std::string> types = arguments_.values("moe-router-load-balancing-type");
  if (types.empty()) types.emplace_back("aux_loss");
  if (types.size() > 1) note("moe-router-load-balancing-type", "there are several losses; the scenario has the first");
  const std::string& type = types.front();
  const double coefficient = type == "none" || type == "sinkhorn" ? 0 : arguments_.number("moe-aux-loss-coeff", 0);
  arguments_.has("moe-aux-loss-coeff");
  put(moe, "balance_loss", coefficient, arguments_.place("moe-aux-loss-coeff"));
  if (type == "seq_aux_loss") {
    put(moe, "balance_scope", "sequence", place);
  } else if (type == "sinkhorn" || type == "global_aux_loss") {
    note("moe-router-load-balancing-type", "the scenario has no " + type);
  } else if (type != "aux_loss" && type != "none") {
    fail("moe-router-load-balancing-type", "aux_loss, seq_aux_loss, global_aux_loss, sinkhorn or none");
  }
}

void MegatronReader::dispatcher(YamlNode& parallelism) {
  const std::string type = arguments_.text("moe-token-dispatcher-type", "allgather");
  const std::string backend = arguments_.text("moe-flex-dispatcher-backend", "deepep");
  const bool deepep = type == "flex" && (arguments_.has("moe-enable-deepep") || arguments_.has("moe-flex-dispatcher-backend"));
  arguments_.has("moe-enable-deepep");
  if (type != "allgather" && type != "alltoall" && type != "alltoall_seq" && type != "flex")
    fail("moe-token-dispatcher-type", "allgather, alltoall or flex");
  if (type == "allgather" && arguments_.integer("expert-model-parallel-size", 1) > 1)
    out_.notes.push_back(
        placed(arguments_.place("moe-token-dispatcher-type"),
               "the dispatcher is `allgather`, as it is without --moe-token-dispatcher-type; the scenario has an "
               "all-to-all"));
  put(parallelism, "dispatcher",
      name_in(dispatcher_names, !deepep                 ? Dispatcher::nccl
                                : backend == "hybridep" ? Dispatcher::hybridep
                                                        : Dispatcher::deepep),
      arguments_.place("moe-token-dispatcher-type"));
}

void MegatronReader::router(YamlNode& moe) {
  if (arguments_.has("moe-router-num-groups")) arguments_.copy_integer(moe, "groups", "moe-router-num-groups", 0);
  if (arguments_.has("moe-router-group-topk")) arguments_.copy_integer(moe, "node_limit", "moe-router-group-topk", 0);
  if (arguments_.has("moe-router-score-function"))
    put(moe, "score_function", arguments_.text("moe-router-score-function", "softmax"),
        arguments_.place("moe-router-score-function"));
  const bool several = arguments_.integer("moe-router-topk", 2) > 1;  // a single gate is always the softmax over all
  const bool has_softmax = arguments_.text("moe-router-score-function", "softmax") == "softmax";
  if (arguments_.has("moe-router-pre-softmax") && several && has_softmax)
    put(moe, "pre_softmax", true, arguments_.place("moe-router-pre-softmax"));
  for (const auto& [field, argument] : {std::pair{"scaling_factor", "moe-router-topk-scaling-factor"},
                                        std::pair{"bias_update_rate", "moe-router-bias-update-rate"}})
    if (arguments_.has(argument)) put(moe, field, arguments_.number(argument, 0), arguments_.place(argument));
  if (arguments_.has("moe-router-enable-expert-bias"))
    put(moe, "expert_bias", true, arguments_.place("moe-router-enable-expert-bias"));
}

void MegatronReader::layers_with_experts(YamlNode& moe) {
  const Place place = arguments_.place("moe-layer-freq");
  const std::string frequency = arguments_.text("moe-layer-freq", "1");
  if (arguments_.has("first-k-dense-replace")) {  // of MindSpeed-LLM
    arguments_.copy_integer(moe, "first_dense_layers", "first-k-dense-replace", 0);
    return arguments_.copy_integer(moe, "every", "moe-layer-freq", 1);
  }
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

void MegatronReader::shared_experts(YamlNode& moe) {
  if (arguments_.has("n-shared-experts"))  // of MindSpeed-LLM
    return arguments_.copy_integer(moe, "shared_experts", "n-shared-experts", 0);
  if (arguments_.integer("moe-shared-expert-intermediate-size", 0) == 0) return;
  const std::int64_t width = arguments_.integer("moe-shared-expert-intermediate-size", 0);
  const std::int64_t ffn = arguments_.integer("moe-ffn-hidden-size", arguments_.integer("ffn-hidden-size", 4 * hidden_));
  if (ffn < 1 || width % ffn != 0)
    fail("moe-shared-expert-intermediate-size", "a multiple of the experts' " + std::to_string(ffn));
  put(moe, "shared_experts", width / ffn, arguments_.place("moe-shared-expert-intermediate-size"));
  if (arguments_.has("moe-shared-expert-gate")) put(moe, "shared_gate", true, arguments_.place("moe-shared-expert-gate"));
}

}  // namespace tandem::scenarios
