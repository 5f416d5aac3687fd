"""The families of models, and meshes that each is executed on: the first is one rank."""

BASE = {
    "model": "{layers: 4, hidden: 32, heads: 8, kv_heads: 4, head_dim: 4, ffn: 48, gated: true, vocab: 96, norm: rms}",
    "training": "{sequence: 16, micro_batch: 2, global_batch: 8, precision: fp32, schedule: 1f1b}",
    "cluster": "host",
}

UNSHARDED = ["parallelism.dp=1"]
DENSE_MESHES = [
    UNSHARDED,
    ["parallelism.tp=2", "parallelism.sp=true", "parallelism.pp=2", "parallelism.dp=2"],
    ["parallelism.tp=4", "parallelism.cp=2", "parallelism.dp=2", "parallelism.zero=3", "training.recompute=full"],
]
EXPERT_MESHES = [
    UNSHARDED,
    ["parallelism.tp=2", "parallelism.sp=true", "parallelism.ep=2", "parallelism.dp=2", "parallelism.zero=2"],
    ["parallelism.pp=2", "parallelism.ep=4", "parallelism.dp=4", "training.micro_batch=2"],
]


STATE_MESHES = [
    UNSHARDED,
    ["parallelism.tp=2", "parallelism.sp=true", "parallelism.pp=2", "parallelism.dp=2"],
    ["parallelism.tp=2", "parallelism.cp=2", "parallelism.dp=2", "parallelism.zero=3", "training.recompute=full"],
]
SPARSE_MESHES = [
    UNSHARDED,
    ["parallelism.tp=2", "parallelism.sp=true", "parallelism.pp=2", "parallelism.dp=2"],
    ["parallelism.tp=4", "parallelism.cp=2", "parallelism.cp_method=all-gather", "parallelism.dp=2", "parallelism.zero=3"]
    + ["training.recompute=full"],
]
ENCODER_MESHES = [
    UNSHARDED,
    ["parallelism.tp=2", "parallelism.sp=true", "parallelism.pp=2", "parallelism.dp=2"],
    ["parallelism.tp=4", "parallelism.dp=2", "parallelism.zero=3", "training.recompute=full"],
]
MUON_MESHES = [
    UNSHARDED,
    ["parallelism.tp=2", "parallelism.sp=true", "parallelism.pp=2", "parallelism.dp=4"],
    ["parallelism.tp=8", "parallelism.dp=2", "parallelism.zero=0"],
    ["parallelism.dp=4", "parallelism.cp=2", "parallelism.zero=2"],
]


def experts(**fields):
    moe = {"experts": 8, "top_k": 2, "ffn": 24, "balance_loss": 0.05} | fields
    return "model.moe={" + ", ".join(f"{key}: {value}" for key, value in moe.items()) + "}"


def vision(**fields):
    encoder = {"layers": 2, "hidden": 24, "heads": 4, "ffn": 40, "patches": 16, "merge": 2, "patch_width": 12} | fields
    return "model.encoder={" + ", ".join(f"{key}: {value}" for key, value in encoder.items()) + "}"


# What encoders have beside that of Qwen2-VL.
GEMMA3 = {"patch_bias": "true", "learned_positions": 18, "rotary": "false", "pool": "true", "projector_norm": "true"}
GEMMA3 |= {"projector_bias": "false"}
LLAMA4 = {"learned_positions": 9, "class_token": "true", "first_norm": "true", "projector": "[20, 28]", "projector_bias": "false"}

BIASED = {"score_function": "sigmoid", "expert_bias": "true", "bias_update_rate": 0.01}


def of_two_nodes(**fields):
    return "cluster={preset: dgx-h100, gpus_per_node: 2, nics_per_node: 2}", experts(node_limit=1, **fields)


def sliding(window):
    return f"model={{layer_types: [sliding_attention, full_attention], window: {window}}}"


def indexer(**fields):
    indexer = {"heads": 4, "head_dim": 8, "top_k": 5, "loss_coefficient": 0.5} | fields
    return "model.indexer={" + ", ".join(f"{key}: {value}" for key, value in indexer.items()) + "}"


def latent(q_rank):
    return "model.kv_heads=8", f"model.mla={{q_rank: {q_rank}, kv_rank: 12, rope_dim: 4, nope_dim: 6, v_dim: 8}}"


GPT = ["model.rotary=false", "model.max_positions=32", "model.norm=layer", "model.gated=false", "model.linear_bias=true"]
GPT += ["model.tied_embeddings=true", "model.kv_heads=8"]

MAMBA = "model.mamba={heads: 8, head_dim: 16, groups: 4, state: 8, chunk: 8}"
CHUNKED = "model={layer_types: [chunked_attention, full_attention], attention_chunk: 4}"
DELTA = "model.linear_attention={key_heads: 4, value_heads: 8, key_dim: 32, value_dim: 32, chunk: 8}"

LIGHTNING = ["model.lightning_attention={heads: 8, head_dim: 8, chunk: 4}", "model.norm_placement=residual"]
LIGHTNING += ["model.layer_types=[lightning_attention, lightning_attention, lightning_attention, full_attention]"]
LIGHTNING += ["model.residual={linear_attention_alpha: 3.5, full_attention_alpha: 2, full_attention_beta: 0.5, mlp_alpha: 1.5}"]

CLAMPED = ["model.activation=quick-gelu", "model.activation_limit=0.5", "model.activation_offset=1"]
GRANITE = ["model.embedding_factor=3", "model.logit_factor=0.25", "model.attention_scale=0.4"]
GRANITE += ["model.residual={full_attention_beta: 0.5, mlp_beta: 0.5}"]

def compressed(**fields):
    spec = {"q_rank": 16, "rope_dim": 4, "sparse_ratio": 2, "heavy_ratio": 8, "output_groups": 4, "output_rank": 6, "index_heads": 4}
    spec |= {"index_head_dim": 6, "index_top_k": 3, "index_loss_coefficient": 0.5} | fields
    return "model.compressed_attention={" + ", ".join(f"{key}: {value}" for key, value in spec.items()) + "}"


YARN = "{factor: 4, original_positions: 8, beta_fast: 2, beta_slow: 0.25}"
KINDS = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention", "compressed_sparse_attention"]
V4 = ["model.kv_heads=1", "model.head_dim=8", "model.window=3", f"model.layer_types=[{', '.join(KINDS)}]"]
STREAMS = "model.hyper_connections={streams: 3, iterations: 5}"
HASHED = {"hash_layers": 2, "score_function": "sqrtsoftplus", "shared_experts": 1, "expert_bias": "true"}

MUON = "training.optimizer=muon"
ADAFACTOR = "training.optimizer=adafactor"

# By family: what sets each of its models apart, and the meshes.
FAMILIES = {
    "gpt": [(GPT, DENSE_MESHES), (GPT + ["model.causal=false"], DENSE_MESHES)],
    "llama": [
        ([], DENSE_MESHES),
        (["model.tied_embeddings=true", "model.kv_heads=2"], DENSE_MESHES),
        (["model.attention_bias=qkv", "model.logit_softcap=0.5"], DENSE_MESHES),
    ],
    "experts": [
        ([experts(capacity_factor=1.25)], EXPERT_MESHES),
        ([experts(capacity_factor=1.0, top_k=1, shared_experts=1)], EXPERT_MESHES),
        ([experts(load="{zipf: 0.5}", capacity_factor=1.0, shared_experts=2, first_dense_layers=1)], EXPERT_MESHES),
        ([experts(every=2)], EXPERT_MESHES),
        ([experts(capacity_factor=1.25, linear_bias="true"), "model.attention_bias=all"], EXPERT_MESHES),
        ([*of_two_nodes(capacity_factor=1.25)], EXPERT_MESHES),
        ([*of_two_nodes(shared_experts=1)], EXPERT_MESHES),
        ([experts(routing="expert-choice", capacity_factor=1.5)], EXPERT_MESHES),
        ([experts(capacity_factor=1.25, score_function="sigmoid", scaling_factor=2.5)], EXPERT_MESHES),
        ([experts(capacity_factor=1.0, top_k=1, score_function="sigmoid", expert_bias="true")], EXPERT_MESHES),
        ([experts(capacity_factor=1.25, **BIASED | {"score_function": "sqrtsoftplus"})], EXPERT_MESHES),
        ([experts(capacity_factor=1.25, top_k=4, groups=4, node_limit=2, **BIASED)], EXPERT_MESHES),
        ([experts(capacity_factor=1.25, pre_softmax="true", scaling_factor=16)], EXPERT_MESHES),
        ([experts(capacity_factor=1.25, linear_bias="true", router_bias="true"), *CLAMPED], EXPERT_MESHES),
        ([experts(capacity_factor=1.25, shared_experts=1, shared_gate="true")], EXPERT_MESHES),
        ([experts(capacity_factor=1.25, top_k=4, groups=4, node_limit=2, best_of_group=1, pre_softmax="true")], EXPERT_MESHES),
        ([experts(capacity_factor=1.25, balance_scope="sequence")], EXPERT_MESHES),
        ([experts(capacity_factor=1.25, balance_scope="sequence", score_function="sigmoid")], EXPERT_MESHES),
    ],
    "latent_attention": [
        ([*latent(16)], DENSE_MESHES),
        ([*latent(0)], DENSE_MESHES),
        ([*latent(16), experts(shared_experts=1, capacity_factor=1.25)], EXPERT_MESHES),
    ],
    "sparse_attention": [
        ([*latent(16), indexer()], SPARSE_MESHES),
        ([*latent(0), indexer(sparse_loss="false")], SPARSE_MESHES),
        ([*latent(16), indexer(), "model.mtp_depth=1", experts(shared_experts=1, capacity_factor=1.25)], EXPERT_MESHES),
    ],
    "further_tokens": [
        (["model.mtp_depth=1"], DENSE_MESHES),
        (["model.mtp_depth=2", "model.tied_embeddings=true"], DENSE_MESHES),
        (["model.mtp_depth=1", *latent(16), experts(shared_experts=1, first_dense_layers=1)], EXPERT_MESHES),
    ],
    "attention": [
        ([sliding(5), "model.qk_norm=head", "model.sliding_rotary_base=10000"], DENSE_MESHES),
        ([sliding(7), "model.attention_sinks=true"], DENSE_MESHES),
        ([CHUNKED, "model.rotary_full_attention=false"], DENSE_MESHES),
        (["model.attention_softcap=2", "model.norm_placement=both", "model.activation=gelu", "model.rotary_share=0.5"], DENSE_MESHES),
        (["model.norm_placement=post", "model.qk_norm=all"], DENSE_MESHES),
        (["model.attention_gate=true", "model.qk_norm=head", "model.rotary_share=0.5"], DENSE_MESHES),
        ([*CLAMPED], DENSE_MESHES),
        ([*GRANITE], DENSE_MESHES),
        (["model.activation=squared-relu", "model.gated=false"], DENSE_MESHES),
    ],
    "states": [
        ([MAMBA, "model.layer_types=M-*M"], STATE_MESHES),
        ([MAMBA, "model.layer_types=M*EM", experts(latent=16, capacity_factor=1.25, shared_experts=1)], EXPERT_MESHES),
        ([DELTA, "model.layer_types=[linear_attention, full_attention]"], STATE_MESHES),
        ([DELTA, "model.layer_types=[linear_attention, full_attention]", experts(shared_experts=1)], EXPERT_MESHES),
        (LIGHTNING, STATE_MESHES),
        ([*LIGHTNING, experts(shared_experts=1)], EXPERT_MESHES),
        ([*LIGHTNING, "model.norm_placement=both", "model.residual={mlp_beta: 0.5}"], STATE_MESHES),
    ],
    "encoders": [
        ([vision(), "training.micro_batch=1"], ENCODER_MESHES),
        ([vision(images=2, patches=8, gated="true", norm="rms", linear_bias="false"), "training.micro_batch=1"], ENCODER_MESHES),
        ([vision(**GEMMA3), "model.embedding_factor=3", "training.micro_batch=1"], ENCODER_MESHES),
        ([vision(images=2, patches=8, **LLAMA4), "training.micro_batch=1"], ENCODER_MESHES),
    ],
    "compressed_attention": [
        ([*V4, compressed(), "model.attention_sinks=true"], SPARSE_MESHES),
        ([*V4, compressed(yarn=YARN, index_top_k=1), "model.attention_scale=0.4", "model.hyper_connections={streams: 2}"], SPARSE_MESHES),
        ([*V4, compressed(yarn=YARN), STREAMS, "model.mtp_depth=1", experts(capacity_factor=1.25, **HASHED)], EXPERT_MESHES),
    ],
    "hyper_connections": [
        ([STREAMS], DENSE_MESHES),
        ([STREAMS, "model.mtp_depth=2", "model.tied_embeddings=true", "model.norm_placement=both"], DENSE_MESHES),
        ([STREAMS, experts(capacity_factor=2, balance_scope="sequence", **HASHED)], EXPERT_MESHES),
        ([experts(hash_layers=1, top_k=3)], EXPERT_MESHES),
    ],
    "muon": [
        ([MUON, *V4, compressed(), STREAMS, "model.mtp_depth=1"], MUON_MESHES[:2]),
        ([MUON, "model.kv_heads=2"], MUON_MESHES),
        ([MUON, *GPT], DENSE_MESHES[:2]),
        ([MUON, *latent(16), experts(shared_experts=1)], EXPERT_MESHES),
        ([MUON, MAMBA, "model.layer_types=M-*M"], DENSE_MESHES[:2]),
    ],
    "adafactor": [
        ([ADAFACTOR, "model.kv_heads=2"], DENSE_MESHES),
        ([ADAFACTOR, *GPT], DENSE_MESHES),
        ([ADAFACTOR, *latent(16), experts(shared_experts=1)], EXPERT_MESHES),
        ([ADAFACTOR, MAMBA, "model.layer_types=M-*M"], STATE_MESHES),
    ],
}


def scenario():
    """The text of a scenario, to which --set adds the mesh."""
    return "name: reference\n" + "".join(f"{key}: {value}\n" for key, value in BASE.items())
