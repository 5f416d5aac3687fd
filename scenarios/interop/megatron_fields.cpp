#include "scenarios/interop/megatron_fields.h"

#include <array>

namespace tandem::scenarios {
namespace {

using enum FieldKind;

constexpr std::array of_transformers{
    MegatronField{"num_layers", "num-layers"},
    MegatronField{"hidden_size", "hidden-size"},
    MegatronField{"ffn_hidden_size", "ffn-hidden-size"},
    MegatronField{"num_attention_heads", "num-attention-heads"},
    MegatronField{"kv_channels", "kv-channels"},
    MegatronField{"normalization", "normalization"},
    MegatronField{"gated_linear_unit", "swiglu", flag},
    MegatronField{"add_bias_linear", "disable-bias-linear", inverse_flag},
    MegatronField{"add_qkv_bias", "add-qkv-bias", flag},
    MegatronField{"qk_layernorm", "qk-layernorm", flag},
    MegatronField{"share_embeddings_and_output_weights", "untie-embeddings-and-output-weights", inverse_flag},
    MegatronField{"position_embedding_type", "position-embedding-type"},
    MegatronField{"rotary_base", "rotary-base"},
    MegatronField{"rotary_percent", "rotary-percent"},
    MegatronField{"mtp_num_layers", "mtp-num-layers"},
    MegatronField{"softmax_type", "softmax-type"},
    MegatronField{"hidden_dropout", "hidden-dropout"},
    MegatronField{"attention_dropout", "attention-dropout"},
};

constexpr std::array of_latent_attention{
    MegatronField{"q_lora_rank", "q-lora-rank"},
    MegatronField{"kv_lora_rank", "kv-lora-rank"},
    MegatronField{"qk_head_dim", "qk-head-dim"},
    MegatronField{"qk_pos_emb_head_dim", "qk-pos-emb-head-dim"},
    MegatronField{"v_head_dim", "v-head-dim"},
    MegatronField{"experimental_attention_variant", "experimental-attention-variant"},
    MegatronField{"dsa_indexer_n_heads", "dsa-indexer-n-heads"},
    MegatronField{"dsa_indexer_head_dim", "dsa-indexer-head-dim"},
    MegatronField{"dsa_indexer_topk", "dsa-indexer-topk"},
    MegatronField{"dsa_indexer_loss_coeff", "dsa-indexer-loss-coeff"},
    MegatronField{"dsa_indexer_use_sparse_loss", "dsa-indexer-use-sparse-loss", flag},
};

constexpr std::array of_experts{
    MegatronField{"num_moe_experts", "num-experts"},
    MegatronField{"moe_router_topk", "moe-router-topk"},
    MegatronField{"moe_ffn_hidden_size", "moe-ffn-hidden-size"},
    MegatronField{"moe_latent_size", "moe-latent-size"},
    MegatronField{"moe_shared_expert_intermediate_size", "moe-shared-expert-intermediate-size"},
    MegatronField{"moe_grouped_gemm", "moe-grouped-gemm", flag},
    MegatronField{"moe_router_load_balancing_type", "moe-router-load-balancing-type"},
    MegatronField{"moe_aux_loss_coeff", "moe-aux-loss-coeff"},
    MegatronField{"moe_expert_capacity_factor", "moe-expert-capacity-factor"},
    MegatronField{"moe_pad_expert_input_to_capacity", "moe-pad-expert-input-to-capacity", flag},
    MegatronField{"moe_router_num_groups", "moe-router-num-groups"},
    MegatronField{"moe_router_group_topk", "moe-router-group-topk"},
    MegatronField{"moe_router_score_function", "moe-router-score-function"},
    MegatronField{"moe_router_pre_softmax", "moe-router-pre-softmax", flag},
    MegatronField{"moe_router_topk_scaling_factor", "moe-router-topk-scaling-factor"},
    MegatronField{"moe_router_enable_expert_bias", "moe-router-enable-expert-bias", flag},
    MegatronField{"moe_router_bias_update_rate", "moe-router-bias-update-rate"},
    MegatronField{"moe_token_dispatcher_type", "moe-token-dispatcher-type"},
    MegatronField{"moe_enable_deepep", "moe-enable-deepep", flag},
    MegatronField{"moe_flex_dispatcher_backend", "moe-flex-dispatcher-backend"},
    MegatronField{"overlap_moe_expert_parallel_comm", "overlap-moe-expert-parallel-comm", flag},
    MegatronField{"delay_wgrad_compute", "delay-wgrad-compute", flag},
};

constexpr std::array of_mamba{
    MegatronField{"is_hybrid_model", "is-hybrid-model", flag},
    MegatronField{"hybrid_override_pattern", "hybrid-override-pattern"},
    MegatronField{"hybrid_layer_pattern", "hybrid-layer-pattern"},
    MegatronField{"mamba_num_heads", "mamba-num-heads"},
    MegatronField{"mamba_head_dim", "mamba-head-dim"},
    MegatronField{"mamba_num_groups", "mamba-num-groups"},
    MegatronField{"mamba_state_dim", "mamba-state-dim"},
};

constexpr std::array of_ranks{
    MegatronField{"tensor_model_parallel_size", "tensor-model-parallel-size"},
    MegatronField{"pipeline_model_parallel_size", "pipeline-model-parallel-size"},
    MegatronField{"context_parallel_size", "context-parallel-size"},
    MegatronField{"expert_model_parallel_size", "expert-model-parallel-size"},
    MegatronField{"expert_tensor_parallel_size", "expert-tensor-parallel-size"},
    MegatronField{"sequence_parallel", "sequence-parallel", flag},
    MegatronField{"tp_comm_overlap", "tp-comm-overlap", flag},
    MegatronField{"hierarchical_context_parallel_sizes", "hierarchical-context-parallel-sizes"},
    MegatronField{"virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
    MegatronField{"num_layers_in_first_pipeline_stage", "decoder-first-pipeline-num-layers"},
    MegatronField{"num_layers_in_last_pipeline_stage", "decoder-last-pipeline-num-layers"},
    MegatronField{"account_for_embedding_in_pipeline_split", "account-for-embedding-in-pipeline-split", flag},
    MegatronField{"account_for_loss_in_pipeline_split", "account-for-loss-in-pipeline-split", flag},
    MegatronField{"overlap_p2p_comm", "no-overlap-p2p-communication", inverse_flag},
};

constexpr std::array of_data_parallelism{
    MegatronField{"use_distributed_optimizer", "use-distributed-optimizer", flag},
    MegatronField{"overlap_grad_reduce", "overlap-grad-reduce", flag},
    MegatronField{"overlap_param_gather", "overlap-param-gather", flag},
    MegatronField{"bucket_size", "ddp-bucket-size"},
    MegatronField{"num_distributed_optimizer_instances", "num-distributed-optimizer-instances"},
};

constexpr std::array of_optimizers{
    MegatronField{"optimizer", "optimizer"},
    MegatronField{"muon_tp_mode", "muon-tp-mode"},
    MegatronField{"muon_use_nesterov", "muon-use-nesterov", flag},
    MegatronField{"optimizer_cpu_offload", "optimizer-cpu-offload", flag},
    MegatronField{"use_precision_aware_optimizer", "use-precision-aware-optimizer", flag},
};

constexpr std::array of_optimizer_types{
    MegatronField{"exp_avg_dtype", "exp-avg-dtype", type},
    MegatronField{"exp_avg_sq_dtype", "exp-avg-sq-dtype", type},
    MegatronField{"main_params_dtype", "main-params-dtype", type},
};

// How weights begin, what is fused of element-wise kernels (which Megatron-Core's preset knows), logging, inference, checkpoints,
// scaled rotary angles, and what repeats another field.
constexpr std::string_view neutral[] = {
    "apply_query_key_layer_scaling", "apply_rope_fusion", "attention_softmax_in_fp32", "autocast_dtype", "barrier_with_L1_time",
    "batch_p2p_comm", "batch_p2p_sync", "bias_activation_fusion", "bias_dropout_fusion", "calculate_per_token_loss",
    "clone_scatter_output_in_embedding", "config_logger_dir", "cross_entropy_fusion_impl", "cross_entropy_loss_fusion",
    "cpu_offloading_activations", "cpu_offloading_double_buffering", "cpu_offloading_weights",
    "cuda_graph_retain_backward_graph", "cuda_graph_use_single_mempool", "cuda_graph_warmup_steps", "cuda_graph_modules",
    "deallocate_pipeline_outputs", "defer_embedding_wgrad_compute", "deterministic_mode", "disable_parameter_transpose_cache",
    "distribute_saved_activations", "embedding_init_method", "embedding_init_method_std", "enable_autocast",
    "finalize_model_grads_func", "flash_decode", "fp16_lm_cross_entropy", "fp8_amax_compute_algo", "fp8_amax_history_len",
    "fp8_interval", "fp8_margin", "fp8_multi_head_attention", "fp8_wgrad", "fp8_param", "fp4_param", "fp32_residual_connection",
    "generation_config", "glu_linear_offset", "grad_scale_func", "grad_sync_func", "gradient_accumulation_fusion",
    "heterogeneous_block_specs", "hf_model_id", "high_freq_factor", "inference_rng_tracker", "inference_sampling_seed",
    "init_method", "init_method_std", "init_model_with_meta_device", "layernorm_epsilon", "layernorm_zero_centered_gamma",
    "low_freq_factor", "masked_softmax_fusion", "make_vocab_size_divisible_by", "memory_efficient_layer_norm",
    "microbatch_group_size_per_vp_stage", "min_offloaded_tensor_size", "mlp_chunks_for_prefill", "moe_apply_probs_on_input",
    "moe_deepep_num_sms", "moe_hybridep_num_sms", "moe_input_jitter_eps", "moe_per_layer_logging", "moe_permute_fusion",
    "moe_router_dtype", "moe_router_force_load_balancing", "moe_router_fusion", "moe_router_padding_for_fp8",
    "moe_router_padding_for_quantization", "moe_shared_expert_overlap", "moe_token_drop_policy", "moe_token_dropping",
    "moe_z_loss_coeff", "mtp_enabled", "mtp_loss_scaling_factor", "no_sync_func", "old_context_len",
    "original_max_position_embeddings", "output_layer_init_method", "parallel_output", "param_sync_func", "params_dtype",
    "perform_initialization", "persist_layer_norm", "pipeline_dtype", "qk_clip_alpha", "qk_clip_threshold", "recompute_modules",
    "restore_modelopt_state", "rope_scaling", "rope_scaling_factor", "rope_type", "rotary_interleaved",
    "rotary_scaling_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "scale_factor",
    "scatter_embedding_sequence_parallel", "seq_len_interpolation_factor", "seq_length", "max_position_embeddings",
    "should_pad_vocab", "softmax_scale", "store_param_remainders", "symmetric_ar_type", "test_mode", "timers",
    "tp_comm_atomic_ag", "tp_comm_atomic_rs", "tp_comm_bootstrap_backend", "tp_comm_bulk_dgrad", "tp_comm_bulk_wgrad",
    "tp_comm_overlap_ag", "tp_comm_overlap_cfg", "tp_comm_overlap_disable_fc1", "tp_comm_overlap_disable_qkv",
    "tp_comm_overlap_rs", "tp_comm_overlap_rs_dgrad", "tp_comm_split_ag", "tp_comm_split_rs", "tp_only_amax_red",
    "transformer_impl", "transformer_layer_spec", "mamba_stack_spec", "hybrid_stack_spec", "use_cpu_initialization",
    "use_kitchen", "use_mamba_mem_eff_path", "use_te_activation_func", "use_te_rng_tracker",
    "use_transformer_engine_full_layer_spec", "use_transformer_engine_op_fuser", "variable_seq_lengths",
    "wgrad_deferral_limit", "vocab_size", "bf16", "fp16", "cp_comm_type", "account_for_embedding_in_pipeline_split",
    "attention_dropout", "hidden_dropout", "moe_router_topk_limited_devices", "fused_single_qkv_rope", "virtual_pipeline_size",
};

}  // namespace

std::span<const MegatronField> transformer_fields() { return of_transformers; }
std::span<const MegatronField> latent_attention_fields() { return of_latent_attention; }
std::span<const MegatronField> expert_fields() { return of_experts; }
std::span<const MegatronField> mamba_fields() { return of_mamba; }
std::span<const MegatronField> parallel_fields() { return of_ranks; }
std::span<const MegatronField> data_parallel_fields() { return of_data_parallelism; }
std::span<const MegatronField> optimizer_fields() { return of_optimizers; }
std::span<const MegatronField> optimizer_type_fields() { return of_optimizer_types; }
std::span<const std::string_view> neutral_transformer_fields() { return neutral; }

}  // namespace tandem::scenarios
