#include "scenarios/reading/hf_fields.h"

#include <algorithm>

namespace tandem::scenarios {
namespace {

constexpr std::string_view without_effect[] = {
    // names and versions
    "_name_or_path",
    "architectures",
    "auto_map",
    "dtype",
    "finetuning_task",
    "id2label",
    "label2id",
    "model_max_length",
    "name",
    "num_labels",
    "problem_type",
    "processor_class",
    "task_specific_params",
    "tokenizer_class",
    "torch_dtype",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    // sizes that hold no weights
    "initial_context_length",
    "max_position_embeddings",
    "max_seq_len",
    "original_max_position_embeddings",
    "seq_length",
    // numbers inside a kernel
    "attn_scale",
    "floor_scale",
    "hc_eps",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "norm_eps",
    "rms_norm_eps",
    // angles
    "rope_interleave",
    "rope_scaling",
    "rope_type",
    // how training begins, and what generation and serving do
    "bad_words_ids",
    "cache_implementation",
    "chunk_size_feed_forward",
    "diversity_penalty",
    "do_sample",
    "ep_size",
    "gradient_checkpointing",
    "initializer_factor",
    "initializer_range",
    "is_decoder",
    "for_llm_compressor",
    "keep_window_size",
    "length_penalty",
    "mamba_ssm_cache_dtype",
    "max_length",
    "min_length",
    "mm_tokens_per_image",
    "num_beams",
    "num_logits_to_keep",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "output_scores",
    "prefix",
    "pretraining_tp",
    "rescale_prenorm_residual",
    "residual_in_fp32",
    "return_dict",
    "return_dict_in_generate",
    "temperature",
    "top_k",
    "top_p",
    "torchscript",
    "truncate",
    "use_bfloat16",
    "use_cache",
    "use_flash_attn",
    "use_mamba_kernels",
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "use_cache_quantization",
    "use_cache_kernel",
    // of Mamba: what its heads make of the inner width, its steps, and that its convolution has biases
    "expand",
    "mamba_expand",
    "mamba_hidden_act",
    "time_step_floor",
    "time_step_limit",
    "time_step_max",
    "time_step_min",
    "time_step_rank",
    "use_conv_bias",
    "mamba_conv_bias",
};

constexpr std::string_view endings_without_effect[] = {"_token_id", "_token_ids", "_token_index", "dropout", "_pdrop", "_drop"};

constexpr HfNotModelled not_modelled[] = {
    {"parallel_attn", HfWithout::another, "attention and MLP side by side in a layer are not lowered"},
    {"use_parallel_residual", HfWithout::another, "attention and MLP side by side in a layer are not lowered"},
    {"alibi", HfWithout::another, "linear biases of attention (ALiBi) are not lowered"},
    {"is_encoder_decoder", HfWithout::another, "an encoder before the decoder is not lowered"},
    {"cross_attention_layers", HfWithout::another, "cross-attention is not lowered"},
    {"use_bidirectional_attention", HfWithout::another, "attention to later positions is not read from a config.json"},
    {"num_kv_shared_layers", HfWithout::another, "layers that take the keys and values of others are not lowered"},
    {"vision_config", HfWithout::the_same, "the encoder of images is left out, and the model is the language model alone"},
    {"audio_config", HfWithout::the_same, "the encoder of sound is left out, and the model is the language model alone"},
    {"quantization_config", HfWithout::the_same,
     "how the file keeps its weights is not what training computes in; training.precision says that"},
    {"expert_dtype", HfWithout::the_same,
     "how the file keeps the weights of experts is not what training computes in; training.precision says that"},
    {"clip_qkv", HfWithout::the_same, "the clipping of queries, keys and values is not modelled"},
    {"attn_temperature_tuning", HfWithout::the_same, "scores that positions scale are not modelled"},
    {"mtp_hybrid_override_pattern", HfWithout::the_same, "what predicts further tokens has attention and an MLP or experts here"},
    {"router_jitter_noise", HfWithout::the_same, "noise in the router is not modelled"},
    {"mamba_proj_bias", HfWithout::the_same, "biases of Mamba's projections are not modelled"},
    {"use_bias", HfWithout::the_same, "biases of Mamba's projections are not modelled"},
};

}  // namespace

bool changes_no_step(std::string_view field) {
  return std::ranges::find(without_effect, field) != std::end(without_effect) ||
         std::ranges::any_of(endings_without_effect, [&](std::string_view ending) { return field.ends_with(ending); });
}

std::span<const HfNotModelled> hf_not_modelled() { return not_modelled; }

}  // namespace tandem::scenarios
