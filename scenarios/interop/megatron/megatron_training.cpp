#include <utility>

#include "scenarios/interop/megatron/megatron_reader.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {

/// As validate_args decides it: bf16 gradients are accumulated in fp32 unless told otherwise, fp16 ones the other way round.
std::string MegatronReader::gradient_type() {
  if (arguments_.has("fp16") && !arguments_.has("accumulate-allreduce-grads-in-fp32")) return "fp16";
  return arguments_.has("grad-reduce-in-bf16") ? "bf16" : "fp32";
}

void MegatronReader::batch(YamlNode& node) {
  if (arguments_.has("seq-length")) {
    arguments_.copy_integer(node, "sequence", "seq-length", 0);
  } else {
    miss("training.sequence", "--seq-length is missing, expected it, or --set training.sequence=N");
  }
  const bool has_micro_batch = arguments_.has("micro-batch-size");
  if (has_micro_batch) {
    put(node, "micro_batch", positive("micro-batch-size", 1), arguments_.place("micro-batch-size"));
  } else {
    miss("training.micro_batch", "--micro-batch-size is missing, expected it, or --set training.micro_batch=N");
  }
  if (arguments_.has("global-batch-size")) {
    arguments_.copy_integer(node, "global_batch", "global-batch-size", 0);
  } else if (has_micro_batch && data_parallel_size() > 0) {
    put(node, "global_batch", positive("micro-batch-size", 1) * data_parallel_size(), {.file = file_});
  } else {
    miss("training.global_batch",
         "--global-batch-size is missing, expected it, the number of GPUs (--gpus) or --set training.global_batch=N");
  }
}

void MegatronReader::precision(YamlNode& node) {
  const bool fp8 = arguments_.has("fp8-format"), fp4 = arguments_.has("fp4-format");
  const bool fp16 = arguments_.has("fp16"), bf16 = arguments_.has("bf16") || (!fp16 && is_of_slime());
  if (bf16 && !arguments_.has("bf16")) out_.assumed.emplace_back("bf16, which slime sets");
  if (!fp8 && !fp4 && !bf16 && !fp16) out_.assumed.emplace_back("fp32, as neither --bf16 nor --fp16 is there");
  const auto [name, argument] = fp8    ? std::pair{"fp8", "fp8-format"}
                                : fp4  ? std::pair{"fp4", "fp4-format"}
                                : bf16 ? std::pair{"bf16", "bf16"}
                                : fp16 ? std::pair{"fp16", "fp16"}
                                       : std::pair{"fp32", "fp16"};
  put(node, "precision", name, arguments_.place(argument));
  if (const bool named = arguments_.has("fp8-recipe"); named && fp8)
    put(node, "recipe", fp8_recipe(), arguments_.place("fp8-recipe"));
  if (const bool named = arguments_.has("fp4-recipe"); named && fp4)
    put(node, "recipe", arguments_.text("fp4-recipe", name_of(Recipe::nvfp4)), arguments_.place("fp4-recipe"));
  if (arguments_.has("first-last-layers-bf16")) {
    set(node, "first_last_layers_bf16", "first-last-layers-bf16");
    arguments_.copy_integer(node, "num_layers_at_start_in_bf16", "num-layers-at-start-in-bf16", 1);
    arguments_.copy_integer(node, "num_layers_at_end_in_bf16", "num-layers-at-end-in-bf16", 1);
  }
  for (const char* gather : {"fp8-param-gather", "fp4-param-gather"})
    if (const bool gathers = arguments_.has(gather); gathers && (fp8 || fp4))
      put(node, fp4 ? "fp4_param_gather" : "fp8_param_gather", true, arguments_.place(gather));
  arguments_.has("reuse-grad-buf-for-mxfp8-param-ag");  // which follows
  set(node, "fp8_attention", "fp8-dot-product-attention");
  if (const bool cast = arguments_.has("fp8-output-proj"); cast && fp8 && fp8_recipe() == name_of(Recipe::mxfp8))
    put(node, "fp8_output_proj", true, arguments_.place("fp8-output-proj"));
  if (const bool within = arguments_.has("tp-only-amax-red"); within && fp8 && fp8_recipe() == name_of(Recipe::delayed))
    put(node, "tp_only_amax_red", true, arguments_.place("tp-only-amax-red"));
  set(node, "fp8_activation_input", "activation-func-fp8-input-store");
}

void MegatronReader::optimizer_states(YamlNode& node) {
  put(node, "grad_dtype", gradient_type(), arguments_.place("grad-reduce-in-bf16"));
  arguments_.has("use-precision-aware-optimizer");
  for (const auto& [field, argument] : {std::pair{"moment_dtype", "exp-avg-dtype"},
                                        {"second_moment_dtype", "exp-avg-sq-dtype"},
                                        {"master_dtype", "main-params-dtype"}})
    put(node, field, arguments_.text(argument, "fp32"), arguments_.place(argument));
  if (arguments_.text("main-grads-dtype", "fp32") == "bf16" && gradient_type() != "bf16")
    note("main-grads-dtype", "gradients are accumulated in bf16 alone; those of the scenario are " + gradient_type());
}

void MegatronReader::offload(YamlNode& node) {
  if (arguments_.has("optimizer-cpu-offload")) {
    YamlNode& offload = section_of(node, "offload", arguments_.place("optimizer-cpu-offload"));
    put(offload, "optimizer", arguments_.number("optimizer-offload-fraction", 1), arguments_.place("optimizer-offload-fraction"));
    set(offload, "overlap_optimizer", "overlap-cpu-optimizer-d2h-h2d");
  }
  arguments_.has("optimizer-offload-fraction");
  arguments_.has("overlap-cpu-optimizer-d2h-h2d");
  arguments_.has("cpu-offloading");
  if (arguments_.integer("cpu-offloading-num-layers", 0) > 0)
    arguments_.copy_integer(section_of(node, "offload", arguments_.place("cpu-offloading-num-layers")), "activations",
                            "cpu-offloading-num-layers", 0);
}

/// Transformer Engine's kernels are those of training.cross_entropy_fusion; Megatron-Core's own are compiled by PyTorch.
void MegatronReader::cross_entropy(YamlNode& node) {
  const bool is_fused = arguments_.has("cross-entropy-loss-fusion");
  const std::string by = arguments_.text("cross-entropy-fusion-impl", "native");
  if (!is_fused) return;
  if (by == "te") return set(node, "cross_entropy_fusion", "cross-entropy-loss-fusion");
  note("cross-entropy-loss-fusion", "the loss is fused by PyTorch's compiler; here it is not");
}

void MegatronReader::training() {
  YamlNode& node = section("training");
  batch(node);
  precision(node);
  cross_entropy(node);
  if (const std::string captured = cuda_graph(); !captured.empty())
    put(node, "cuda_graph", captured, arguments_.place("cuda-graph-impl"));
  optimizer_states(node);
  offload(node);
  put(node, "framework", "megatron-core", {.file = file_});
}

std::string MegatronReader::fp8_recipe() {
  const std::string name = arguments_.text("fp8-recipe", "delayed");
  for (const Named<Recipe>& recipe : megatron_fp8_recipes)
    if (recipe.name == name) return name_of(recipe.value);
  fail("fp8-recipe", "delayed, tensorwise, blockwise or mxfp8");
}

/// What is captured of the layers; empty where nothing is said. Scopes beside the attention are what the framework captures with
/// it; --external-cuda-graph and --enable-cuda-graph are older names.
std::string MegatronReader::cuda_graph() {
  std::string captures = arguments_.text("cuda-graph-impl", "");
  if (arguments_.has("external-cuda-graph")) captures = "transformer_engine";
  if (arguments_.has("enable-cuda-graph")) captures = "local";
  std::string scope;
  for (const std::string& one : arguments_.values("cuda-graph-scope")) scope += one + " ";
  if (captures.empty()) return {};
  if (captures == "none") return name_of(CudaGraph::none);
  if (scope.find("full_iteration") != std::string::npos) return name_of(CudaGraph::full);
  if (scope.find("attn") != std::string::npos) return name_of(CudaGraph::attention);
  note(arguments_.has("cuda-graph-impl") ? "cuda-graph-impl" : "enable-cuda-graph",
       "graphs of " + (scope.empty() ? std::string("whole layers") : scope) +
           "are captured; the scenario has none, as it knows full_iteration and attn alone");
  return name_of(CudaGraph::none);
}

}  // namespace tandem::scenarios
