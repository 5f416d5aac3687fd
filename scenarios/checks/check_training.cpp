#include <algorithm>
#include <string>

#include "scenarios/checks/rules.h"
#include "scenarios/schedules/schedule_table.h"

namespace tandem::scenarios {
namespace {

bool is_unfused(const Scenario& s) {
  const auto unfused = [](const Device& gpu) { return gpu.efficiency.attention_kernel == AttentionKernel::unfused; };
  return unfused(s.cluster.gpu) || std::ranges::any_of(s.cluster.other_gpus, unfused, &OtherGpus::gpu);
}

constexpr Rule fused_attention_has_sinks_and_caps{
    .holds = [](const Scenario& s) { return !is_unfused(s) || !(s.model.attention_sinks || s.model.attention_softcap > 0); },
    .objection = [](const Scenario& s) -> Objection {
      const std::string field = s.model.attention_sinks ? "model.attention_sinks" : "model.attention_softcap";
      return {{field, "training.attention"},
              field + " is lowered for fused attention alone, expected it left out, or another training.attention"};
    }};

constexpr Rule chosen_keys_are_attended_in_one_kernel{
    .holds = [](const Scenario& s) { return !s.model.indexer.enabled() || !(is_unfused(s) || s.training.fp8_attention); },
    .objection = [](const Scenario& s) -> Objection {
      const std::string field = s.training.fp8_attention ? "training.fp8_attention" : "training.attention";
      return {{field, "model.indexer"},
              s.training.fp8_attention
                  ? field + " is not lowered with model.indexer, expected false"
                  : "model.indexer is lowered for fused attention alone, expected another training.attention"};
    }};

constexpr Rule positions_hold_sequence{
    .holds = [](const Scenario& s) { return !s.model.learns_positions() || s.training.sequence <= s.model.max_positions; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.sequence", "model.max_positions"},
              "sequence " + std::to_string(s.training.sequence) + " is longer than the " + std::to_string(s.model.max_positions) +
                  " learned positions of the model, expected at most that"};
    }};

constexpr Rule lightning_attends_in_whole_sequences{
    .holds = [](const Scenario& s) { return !s.training.documents.any() || !s.model.lightning.enabled(); },
    .objection = [](const Scenario&) -> Objection {
      return {
          {"training.documents", "model.layer_types"},
          "training.documents with layers of type lightning_attention, whose states are lowered for whole sequences; expected "
          "one of the two"};
    }};

constexpr Rule residual_factors_go_without_dropout{
    .holds = [](const Scenario& s) { return s.training.hidden_dropout == 0 || !s.model.residual.scale(); },
    .objection = [](const Scenario&) -> Objection {
      return {{"training.hidden_dropout", "model.residual"},
              "training.hidden_dropout is not lowered with factors of model.residual, expected 0"};
    }};

constexpr Rule indexers_choose_in_whole_sequences{
    .holds = [](const Scenario& s) { return !s.training.documents.any() || !s.model.indexer.enabled(); },
    .objection = [](const Scenario&) -> Objection {
      return {{"training.documents", "model.indexer"},
              "training.documents with model.indexer, whose queries choose among the keys of whole sequences; expected one of "
              "the two"};
    }};

constexpr Rule learned_positions_are_of_sequences{
    .sizes = Sizes::split,
    .holds =
        [](const Scenario& s) {
          return !s.model.learns_positions() || s.parallelism.cp == 1 || s.parallelism.cp_layout != CpLayout::document_zigzag;
        },
    .objection = [](const Scenario&) -> Objection {
      return {{"parallelism.cp_layout", "model.max_positions"},
              "cp_layout document-zigzag with learned positions, which are those of the sequence; expected cp_layout zigzag"};
    }};

constexpr Rule replicas_read_streams{
    .sizes = Sizes::batch,
    .holds = [](const Scenario& s) { return s.training.documents.streams <= s.parallelism.data_replicas(); },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.documents.streams", "parallelism.dp"},
              std::to_string(s.training.documents.streams) + " streams of documents for " +
                  std::to_string(s.parallelism.data_replicas()) + " data-parallel replicas, expected no more than these"};
    }};

constexpr Rule recomputed_modules_exist{
    .holds = [](const Scenario& s) { return !s.training.recompute.mla_up || s.model.mla.enabled(); },
    .objection = [](const Scenario&) -> Objection {
      return {{"training.recompute", "model.mla"},
              "recompute of mla-up without model.mla, expected a model with multi-head latent attention"};
    }};

constexpr Rule dropped_probabilities_exist{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return s.training.attention_dropout == 0 || s.has_probabilities(); },
    .objection = [](const Scenario& s) -> Objection {
      const bool passes_keys = s.parallelism.cp > 1 && s.parallelism.cp_method != CpMethod::ulysses;
      return {{"training.attention_dropout", passes_keys ? "parallelism.cp_method" : "training.attention"},
              passes_keys
                  ? "training.attention_dropout is not lowered where keys pass between context-parallel ranks, expected 0, "
                    "or parallelism.cp_method: ulysses"
                  : "training.attention_dropout is lowered for unfused attention alone, expected 0, or training.attention: "
                    "unfused"};
    }};

std::optional<Objection> find_unknown_attention(const Scenario& scenario) {
  const std::optional<AttentionKernel> kernel = scenario.training.attention;
  if (!kernel) return {};
  const auto unknown = [&](const Device& gpu) -> std::optional<Objection> {
    if (gpu.efficiency.states(*kernel)) return {};
    return Objection{{"training.attention"},
                     "training.attention is " + std::string(name_of(*kernel)) + ", whose speed on " + gpu.name + " is not known"};
  };
  if (auto objection = unknown(scenario.cluster.gpu)) return objection;
  for (const OtherGpus& other : scenario.cluster.other_gpus)
    if (auto objection = unknown(other.gpu)) return objection;
  return {};
}

std::optional<Objection> find_missing_arithmetic(const Scenario& scenario) {
  const DType precision = scenario.training.precision;
  const auto missing = [&](const Device& gpu, const std::string& field) -> std::optional<Objection> {
    if (gpu.peak[static_cast<std::size_t>(precision)] > 0) return {};
    return Objection{{"training.precision", field},
                     gpu.name + " has no " + std::string(name_of(precision)) +
                         " arithmetic, expected a precision that stands in " + field + ".peak_TFLOPS"};
  };
  if (auto objection = missing(scenario.cluster.gpu, "cluster.gpu")) return objection;
  for (std::size_t i = 0; i < scenario.cluster.other_gpus.size(); ++i) {
    const std::string field = "cluster.other_gpus." + std::to_string(i) + ".gpu";
    if (auto objection = missing(scenario.cluster.other_gpus[i].gpu, field)) return objection;
  }
  return {};
}

constexpr Rule offload_knows_the_host{
    .holds =
        [](const Scenario& s) {
          const HostSpec& host = s.cluster.host;
          const OffloadSpec& offload = s.training.offload;
          return (!offload.any() || host.link_GBps > 0) && (offload.optimizer == 0 || host.memory_GBps > 0);
        },
    .objection = [](const Scenario& s) -> Objection {
      const std::string missing = s.cluster.host.link_GBps > 0 ? "memory_GBps" : "link_GBps";
      const std::string field = s.training.offload.optimizer > 0 ? "optimizer" : "activations";
      return {{"training.offload." + field, "cluster.host"},
              "offload." + field + " without cluster.host." + missing +
                  ", which no preset has; expected cluster.host.link_GBps, of one GPU to its host, and cluster.host.memory_GBps, "
                  "of a node's memory"};
    }};

constexpr Rule offloaded_activations_are_read_at_once{
    .holds =
        [](const Scenario& s) { return s.training.offload.activations == 0 || !traits_of(s.training.schedule).splits_backward; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.offload.activations", "training.schedule"},
              "offload.activations with schedule " + std::string(name_of(s.training.schedule)) +
                  ", which puts gradients of weights off until the activations are gone; expected a schedule that does not split "
                  "the backward"};
    }};

constexpr Rule offload_and_turns_do_not_meet{
    .holds = [](const Scenario& s) { return s.training.offload.activations == 0 || !s.training.overlap_ep; },
    .objection = [](const Scenario&) -> Objection {
      return {
          {"training.offload.activations", "training.overlap.ep"},
          "offload.activations with overlap.ep, where two passes would fetch what they keep at once, is not lowered; expected "
          "one of the two"};
    }};

constexpr Rule offloaded_layers_keep_something{
    .holds = [](const Scenario& s) { return s.training.offload.activations == 0 || !s.training.recompute.in_segments(); },
    .objection = [](const Scenario&) -> Objection {
      return {{"training.offload.activations", "training.recompute_segment"},
              "offload.activations with recompute_segment, where a segment keeps one input alone; expected one of the two"};
    }};

constexpr Rule recipes_are_of_the_precision{
    .holds =
        [](const Scenario& s) {
          const TrainingSpec& t = s.training;
          return t.casts() ? is_of(t.recipe, t.precision) : t.recipe == usual_recipe(t.precision);
        },
    .objection = [](const Scenario& s) -> Objection {
      const TrainingSpec& t = s.training;
      const std::string found =
          std::string("recipe ") + name_of(t.recipe) + " with precision " + std::string(name_of(t.precision));
      const std::string wanted(name_of(t.recipe == Recipe::nvfp4 ? DType::f4 : DType::f8));
      const std::string others = t.precision == DType::f4 ? "nvfp4" : "delayed, current, blockwise or mxfp8";
      return {{"training.recipe", "training.precision"},
              t.casts() ? found + ", expected precision " + wanted + ", or recipe " + others
                        : found + ", where nothing is cast to " + wanted + "; expected precision " + wanted + ", or no recipe"};
    }};

const char* param_gather_field(const Scenario& s) {
  return s.training.precision == DType::f4 ? "training.fp4_param_gather" : "training.fp8_param_gather";
}

// As in Megatron-Core, whose distributed optimizer casts the slices; ZeRO-3 would keep slices of casts.
constexpr Rule optimizer_casts_parameters{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return !s.training.param_gather || s.parallelism.zero == 1 || s.parallelism.zero == 2; },
    .objection = [](const Scenario& s) -> Objection {
      return {{param_gather_field(s), "parallelism.zero"},
              std::string(param_gather_field(s)).substr(9) + " with zero " + std::to_string(s.parallelism.zero) +
                  ", expected zero 1 or 2, or false"};
    }};

constexpr Rule gathered_parameters_stay_on_the_gpu{
    .holds =
        [](const Scenario& s) {
          return !s.training.param_gather || (s.training.offload.optimizer == 0 && !s.training.local_steps());
        },
    .objection = [](const Scenario& s) -> Objection {
      const bool averaged = s.training.local_steps();
      return {{param_gather_field(s), averaged ? "training.sync_every" : "training.offload.optimizer"},
              std::string(param_gather_field(s)).substr(9) +
                  (averaged ? " with sync_every, which averages weights; expected one of the two"
                            : " with offload.optimizer, whose weights come from the host in bf16; expected one of the two")};
    }};

constexpr Rule attention_in_fp8_is_cast{
    .holds = [](const Scenario& s) { return !s.training.fp8_attention || s.training.casts(); },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.fp8_attention", "training.precision"},
              "fp8_attention with precision " + std::string(name_of(s.training.precision)) +
                  ", where nothing is cast; expected precision fp8 or fp4, or false"};
    }};

// Transformer Engine refuses it, too (common/recipe/__init__.py, Float8BlockScaling).
constexpr Rule attention_in_fp8_scales_tensors{
    .holds = [](const Scenario& s) { return !s.training.fp8_attention || s.training.recipe != Recipe::blockwise; },
    .objection = [](const Scenario&) -> Objection {
      return {{"training.fp8_attention", "training.recipe"},
              "fp8_attention with recipe blockwise, which Transformer Engine has no attention for; expected another recipe, or "
              "false"};
    }};

std::optional<Objection> find_attention_without_fp8(const Scenario& scenario) {
  if (!scenario.training.fp8_attention) return {};
  const auto missing = [](const Device& gpu) -> std::optional<Objection> {
    if (gpu.efficiency.attention_kernel == AttentionKernel::unfused)
      return Objection{{"training.fp8_attention", "training.attention"},
                       "fp8_attention with unfused attention on " + gpu.name + ", expected a fused one, or false"};
    if (gpu.peak[static_cast<std::size_t>(DType::f8)] > 0) return {};
    return Objection{{"training.fp8_attention", "cluster.gpu"},
                     "fp8_attention on " + gpu.name + ", which has no fp8 arithmetic; expected false"};
  };
  if (auto objection = missing(scenario.cluster.gpu)) return objection;
  for (const OtherGpus& other : scenario.cluster.other_gpus)
    if (auto objection = missing(other.gpu)) return objection;
  return {};
}

// Megatron-Core's is a layer of Transformer Engine with weights of its own (core/transformer/mxfp8_output_proj.py).
constexpr Rule head_in_fp8_is_cast{
    .holds = [](const Scenario& s) { return !s.training.fp8_output_proj || s.training.recipe == Recipe::mxfp8; },
    .objection = [](const Scenario& s) -> Objection {
      const std::string found = s.training.casts() ? std::string("recipe ") + name_of(s.training.recipe)
                                                   : "precision " + std::string(name_of(s.training.precision));
      return {{"training.fp8_output_proj", s.training.casts() ? "training.recipe" : "training.precision"},
              "fp8_output_proj with " + found + ", expected precision fp8 and recipe mxfp8, or false"};
    }};

constexpr Rule head_in_fp8_is_not_tied{
    .holds = [](const Scenario& s) { return !s.training.fp8_output_proj || !s.model.tied_embeddings; },
    .objection = [](const Scenario&) -> Objection {
      return {{"training.fp8_output_proj", "model.tied_embeddings"},
              "fp8_output_proj with tied_embeddings, whose table stays in bf16; expected one of the two"};
    }};

constexpr Rule layers_in_bf16_differ{
    .holds = [](const Scenario& s) { return !s.training.first_last_layers_bf16 || s.training.casts(); },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.first_last_layers_bf16", "training.precision"},
              "first_last_layers_bf16 with precision " + std::string(name_of(s.training.precision)) +
                  ", where all layers multiply in one type; expected precision fp8 or fp4, or false"};
    }};

// Megatron-Core refuses it, too: scales of earlier steps are gathered when a pass leaves the layers in fp8, which it would do
// several times (core/fp8_utils.py, get_fp8_context).
constexpr Rule delayed_scales_are_of_all_layers{
    .holds = [](const Scenario& s) { return !s.training.first_last_layers_bf16 || s.training.recipe != Recipe::delayed; },
    .objection = [](const Scenario&) -> Objection {
      return {{"training.first_last_layers_bf16", "training.recipe"},
              "first_last_layers_bf16 with recipe delayed, whose scales are those of all layers; expected another recipe, or "
              "false"};
    }};

constexpr Rule maxima_are_of_delayed_scales{
    .holds =
        [](const Scenario& s) {
          const TrainingSpec& t = s.training;
          return !t.tp_only_amax_red || (t.precision == DType::f8 && t.recipe == Recipe::delayed);
        },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.tp_only_amax_red", "training.recipe", "training.precision"},
              "tp_only_amax_red with " +
                  (s.training.precision == DType::f8 ? "recipe " + std::string(name_of(s.training.recipe))
                                                     : "precision " + std::string(name_of(s.training.precision))) +
                  ", which reduces no maxima; expected precision fp8 and recipe delayed, or false"};
    }};

constexpr Rule layers_in_bf16_exist{
    .holds =
        [](const Scenario& s) {
          const TrainingSpec& t = s.training;
          return !t.first_last_layers_bf16 || t.num_layers_at_start_in_bf16 + t.num_layers_at_end_in_bf16 <= s.model.layers;
        },
    .objection = [](const Scenario& s) -> Objection {
      const TrainingSpec& t = s.training;
      return {{t.num_layers_at_end_in_bf16 > t.num_layers_at_start_in_bf16 ? "training.num_layers_at_end_in_bf16"
                                                                           : "training.num_layers_at_start_in_bf16",
               "training.first_last_layers_bf16", "model.layers"},
              std::to_string(t.num_layers_at_start_in_bf16) + " layers at the start and " +
                  std::to_string(t.num_layers_at_end_in_bf16) + " at the end in bf16 of a model with " +
                  std::to_string(s.model.layers) + " layers, expected no more than it has"};
    }};

constexpr Rule frameworks_capture_graphs{
    .holds = [](const Scenario& s) { return s.training.cuda_graph == CudaGraph::none || !s.software.captured.empty(); },
    .objection = [](const Scenario& s) -> Objection {
      return {
          {"training.cuda_graph", "training.framework"},
          std::string("cuda_graph ") + name_of(s.training.cuda_graph) +
              " with a framework that does not say what it captures, expected cuda_graph none, or training.framework.captured"};
    }};

constexpr Rule rules_of_training[] = {recipes_are_of_the_precision,
                                      lightning_attends_in_whole_sequences,
                                      residual_factors_go_without_dropout,
                                      optimizer_casts_parameters,
                                      gathered_parameters_stay_on_the_gpu,
                                      attention_in_fp8_is_cast,
                                      attention_in_fp8_scales_tensors,
                                      rule_of<find_attention_without_fp8>,
                                      head_in_fp8_is_cast,
                                      head_in_fp8_is_not_tied,
                                      layers_in_bf16_differ,
                                      delayed_scales_are_of_all_layers,
                                      maxima_are_of_delayed_scales,
                                      layers_in_bf16_exist,
                                      frameworks_capture_graphs,
                                      rule_of<find_unknown_attention>,
                                      positions_hold_sequence,
                                      indexers_choose_in_whole_sequences,
                                      learned_positions_are_of_sequences,
                                      replicas_read_streams,
                                      recomputed_modules_exist,
                                      dropped_probabilities_exist,
                                      offload_knows_the_host,
                                      offloaded_activations_are_read_at_once,
                                      rule_of<find_missing_arithmetic>,
                                      offload_and_turns_do_not_meet,
                                      offloaded_layers_keep_something,
                                      fused_attention_has_sinks_and_caps,
                                      chosen_keys_are_attended_in_one_kernel};

}  // namespace

std::span<const Rule> training_rules() { return rules_of_training; }

}  // namespace tandem::scenarios
