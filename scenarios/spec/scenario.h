#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dag/axis.h"
#include "runtime/dag/device.h"
#include "runtime/dag/software.h"
#include "runtime/ops/attributes.h"
#include "scenarios/spec/documents_spec.h"
#include "scenarios/spec/layer_kind.h"
#include "scenarios/spec/pipeline_layout.h"
#include "topology/cluster_spec.h"

namespace tandem::scenarios {

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).
struct MlaSpec {
  std::int64_t q_rank = 0;    ///< width of the compressed queries; 0: they are not compressed
  std::int64_t kv_rank = 0;   ///< width of the latent that keys and values come from; 0: no latent attention
  std::int64_t rope_dim = 0;  ///< the part of a head's query and key that carries the position
  std::int64_t nope_dim = 0;  ///< the part that does not
  std::int64_t v_dim = 0;

  bool enabled() const { return kv_rank > 0; }
  std::int64_t qk_dim() const { return nope_dim + rope_dim; }
};

/// The lightning indexer of sparse latent attention (DeepSeek-V3.2, arXiv 2512.02556, section 2.1), which chooses the keys that a
/// query attends to.
struct IndexerSpec {
  std::int64_t heads = 0;  ///< 0: every key that a query sees is attended to
  std::int64_t head_dim = 128;
  std::int64_t top_k = 2048;       ///< keys of a query, at most
  double loss_coefficient = 0.01;  ///< of the divergence from attention's distribution, which trains the indexer alone
  bool sparse_loss = true;         ///< over the chosen keys; false: over all that a query sees

  bool enabled() const { return heads > 0; }
};

/// How rotary angles are stretched for sequences longer than those of pre-training (YaRN, arXiv 2309.00071): see
/// runtime/ops/rotation.h.
struct YarnSpec {
  double factor = 1;  ///< 1: they are as they are
  std::int64_t original_positions = 4096;
  double beta_fast = 32, beta_slow = 1;

  bool stretches() const { return factor > 1; }
};

/// Attention whose heads share one key, beside keys that stand for several positions (DeepSeek-V4, section 2.3), in layers of
/// sliding, compressed sparse or heavily compressed attention.
struct CompressedAttentionSpec {
  std::int64_t q_rank = 0;                           ///< width of the compressed queries; 0: no such layers
  std::int64_t rope_dim = 0;                         ///< of a head, its last elements, which are rotated
  std::int64_t sparse_ratio = 4, heavy_ratio = 128;  ///< positions of a compressed key, by the kind of the layer
  std::int64_t output_groups = 1;                    ///< of heads, each projected down by itself
  std::int64_t output_rank = 0;                      ///< of each group
  double rotary_base = 160'000;                      ///< of layers with compressed keys
  std::int64_t index_heads = 0, index_head_dim = 128, index_top_k = 512;
  double index_loss_coefficient = 0.01;
  YarnSpec yarn = {};  ///< of layers with compressed keys

  bool enabled() const { return q_rank > 0; }
  std::int64_t ratio_of(Mixer mixer) const { return mixer == Mixer::compressed_sparse_attention ? sparse_ratio : heavy_ratio; }
  /// Compressed keys that a query of a sequence may attend to.
  std::int64_t keys_of(Mixer mixer, std::int64_t sequence) const {
    if (!has_compressed_keys(mixer)) return 0;
    const std::int64_t keys = sequence / ratio_of(mixer);
    return mixer == Mixer::compressed_sparse_attention ? std::min(index_top_k, keys) : keys;
  }
};

/// How the choices of a micro-batch's tokens spread over the experts before any is dropped.
struct ExpertLoad {
  std::vector<double> shares;  ///< by expert, in any unit; empty: by `zipf`
  double zipf = 0;             ///< expert e gets a share of 1 / (e + 1)^zipf; 0 = uniform

  bool is_uniform() const { return shares.empty() && zipf == 0; }
};

/// What is normalised of queries and keys, before they are rotated.
enum class QkNorm : std::uint8_t {
  none,
  head,  ///< each head, all with the same weights (Qwen3, Gemma 3)
  all,   ///< all heads of a token as one (OLMo 2)
  unit   ///< each head without weights, where and after it is rotated (Llama 4)
};

/// How rotary angles are stretched for sequences that are longer than those of pre-training, in the words of config.json. Said
/// for what it costs: steps that are executed turn by the angles as they are.
enum class RopeScaling : std::uint8_t {
  none,
  yarn  ///< arXiv 2309.00071; queries and keys are scaled, too, which a framework's kernel for positions may not know
};

/// Which projections of attention have biases.
enum class AttentionBias : std::uint8_t {
  none,
  qkv,  ///< to queries, keys and values (Qwen2, GLM-4.5)
  all   ///< and the output's (gpt-oss)
};

/// Where the norms of a layer's halves are.
enum class NormPlacement : std::uint8_t {
  pre,      ///< x + f(norm(x))
  post,     ///< x + norm(f(x)) (OLMo 2)
  both,     ///< x + norm(f(norm(x))) (Gemma 2 and 3)
  residual  ///< norm(x) + f(norm(x)) (MiniMax-Text-01)
};

/// Of a residual connection: alpha x + beta f(x) (DeepNorm: Wang et al. 2022, arXiv 2203.00555).
struct ResidualFactors {
  double alpha = 1, beta = 1;

  bool scale() const { return alpha != 1 || beta != 1; }
};

/// The factors by what a half of a layer does.
struct ResidualSpec {
  ResidualFactors full_attention;    ///< attention of any span
  ResidualFactors linear_attention;  ///< mixers that keep a state
  ResidualFactors mlp;               ///< or experts

  bool scale() const { return full_attention.scale() || linear_attention.scale() || mlp.scale(); }
  const ResidualFactors& of(Mixer mixer) const { return is_attention(mixer) ? full_attention : linear_attention; }
};

/// What an MLP's inner width goes through, or the gates of a gated one.
enum class MlpFunction : std::uint8_t {
  silu,
  gelu,
  squared_relu,
  quick_gelu  ///< x sigmoid(1.702 x), of gates alone (gpt-oss)
};

/// Who chooses whom.
enum class Routing : std::uint8_t {
  top_k,          ///< a token goes to the `top_k` experts of its highest logits
  expert_choice,  ///< an expert takes the tokens of the highest probabilities (Zhou et al. 2022, arXiv 2202.09368)
};

/// Of which tokens a balance loss counts the choices together.
enum class BalanceScope : std::uint8_t {
  micro_batch,  ///< those of a micro-batch that a rank routes
  sequence      ///< those of a sequence, wherever they are routed (DeepSeek-V3, arXiv 2412.19437, section 2.1.2)
};

/// Mixture of experts in place of the MLP: in layers `first_dense_layers`, `first_dense_layers` + `every`, ...
struct MoeSpec {
  std::int64_t experts = 0;  ///< 0: a dense model
  std::int64_t top_k = 1;    ///< experts that a token goes to; under expert choice on average
  Routing routing = Routing::top_k;
  std::int64_t ffn = 0;  ///< inner width of one expert
  /// Width of what the routed experts see: tokens are projected down to it before they are sent, and what returns is projected up
  /// (`moe_latent_size` of Megatron-Core). 0: as wide as the model.
  std::int64_t latent = 0;
  std::int64_t shared_experts = 0;  ///< that every token goes to, as one MLP of so many times `ffn`
  std::int64_t first_dense_layers = 0;
  std::int64_t every = 1;
  /// Slots of an expert as a multiple of its even share. 0: as many as `load` says, so that nothing is dropped. Choices are
  /// forced to `load`, but for an even one with a capacity: then tokens go where their numbers send them.
  double capacity_factor = 0;
  bool pad_to_capacity = true;  ///< slots that nobody took are sent and computed, too
  std::int64_t node_limit = 0;  ///< a token's experts lie in at most so many nodes, or `groups`; 0 = no limit
  ExpertLoad load;
  std::int64_t best_of_group = 0;  ///< scores that a group is chosen by, its best ones; 0: max(1, top_k / node_limit)
  double balance_loss = 0.01;      ///< coefficient of the auxiliary loss; default: Fedus et al. 2021, section 2.2
  BalanceScope balance_scope = BalanceScope::micro_batch;
  /// Of experts, equally many in each: `node_limit` counts those of a token. 0: the nodes that the experts lie in.
  std::int64_t groups = 0;
  ScoreFunction score_function = ScoreFunction::softmax;  ///< what gates are made of, see runtime/ops/route.h
  bool pre_softmax = false;                               ///< gates are the softmax over all experts, not over the chosen
  double scaling_factor = 1;                              ///< of the gates
  bool expert_bias = false;        ///< balances by a bias for each expert, see scenarios/lowering/expert_bias.h
  bool linear_bias = false;        ///< of the routed experts' projections (gpt-oss)
  bool router_bias = false;        ///< of the logits (gpt-oss)
  bool shared_gate = false;        ///< what the shared experts make is multiplied with the sigmoid of a projection (Qwen2)
  std::int64_t hash_layers = 0;    ///< of the model, the first ones: there a token's number chooses its experts (DeepSeek-V4)
  double bias_update_rate = 1e-3;  ///< what a bias moves by after a step; default: DeepSeek-V3, arXiv 2412.19437, section 4.2

  /// Whether tokens go where `load` says, and not where their numbers send them.
  bool forces_choices() const {
    return routing == Routing::top_k && (capacity_factor == 0 || !load.is_uniform() || !pad_to_capacity);
  }
  /// Whether the balance loss is that of each sequence. Experts that choose balance by themselves.
  bool balances_sequences() const {
    return experts > 0 && balance_scope == BalanceScope::sequence && balance_loss > 0 && routing == Routing::top_k;
  }
  /// Width of the rows that go to the experts of a model so wide.
  std::int64_t row_width(std::int64_t hidden) const { return latent > 0 ? latent : hidden; }
  /// Experts that a token goes to on average, before any choice is dropped.
  double experts_per_token() const {
    const auto chosen = static_cast<double>(top_k);
    if (routing == Routing::top_k || capacity_factor == 0) return chosen;
    return std::min(capacity_factor * chosen, static_cast<double>(experts));
  }
  /// Asked of layers whose type leaves it open: see ModelSpec::layer_kind.
  bool in_layer(std::int64_t layer) const {
    return experts > 0 && layer >= first_dense_layers && (layer - first_dense_layers) % every == 0;
  }
};

/// Mamba-2 (Dao & Gu 2024, arXiv 2405.21060), in layers of type `mamba`.
struct MambaSpec {
  std::int64_t heads = 0;  ///< 0: no such layers
  std::int64_t head_dim = 64;
  std::int64_t groups = 8;   ///< of heads, each with B and C of its own
  std::int64_t state = 128;  ///< width of B and C
  std::int64_t conv = 4;     ///< positions that the convolution sees
  std::int64_t chunk = 128;  ///< positions that the scan takes at once

  bool enabled() const { return heads > 0; }
  std::int64_t inner() const { return heads * head_dim; }
  /// Channels of the convolution.
  std::int64_t mixed() const { return inner() + 2 * groups * state; }
  /// Outputs of the projection.
  std::int64_t projected() const { return inner() + mixed() + heads; }
};

/// Gated delta net (Yang et al. 2024, arXiv 2412.06464), in layers of type `linear_attention`.
struct LinearAttentionSpec {
  std::int64_t key_heads = 0;    ///< 0: no such layers
  std::int64_t value_heads = 0;  ///< equally many for each key head
  std::int64_t key_dim = 128, value_dim = 128;
  std::int64_t conv = 4;    ///< positions that the convolution sees
  std::int64_t chunk = 64;  ///< positions that the rule takes at once

  bool enabled() const { return key_heads > 0; }
  std::int64_t keys() const { return key_heads * key_dim; }
  std::int64_t values() const { return value_heads * value_dim; }
  /// Channels of the convolution.
  std::int64_t mixed() const { return 2 * keys() + values(); }
  /// Outputs of the projection.
  std::int64_t projected() const { return mixed() + values() + 2 * value_heads; }
};

/// A vision transformer whose outputs stand in place of a sequence's first tokens: a product that embeds patches, layers of
/// attention to all patches of an image, a norm, and a projector, products with GELU between them on what `merge` neighbouring
/// patches have together, which makes one token of them (Qwen2-VL, arXiv 2409.12191; Llama 4), or on their mean (Gemma 3, arXiv
/// 2503.19786).
struct EncoderSpec {
  std::int64_t layers = 0;  ///< 0: no encoder
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t ffn = 0;
  std::int64_t patches = 0;            ///< of an image
  std::int64_t merge = 4;              ///< patches that become one token
  std::int64_t images = 1;             ///< of a sequence
  std::int64_t patch_width = 0;        ///< numbers of a patch: its pixels' colours
  bool patch_bias = false;             ///< of the product that embeds patches
  std::int64_t learned_positions = 0;  ///< rows of a table, of which the first are added to each image's patches; 0: no table
  bool class_token = false;  ///< a learned row behind each image's patches, which the layers see and the projector does not
  bool first_norm = false;   ///< a norm before the layers
  bool gated = false;
  MlpFunction activation = MlpFunction::gelu;
  NormKind norm = NormKind::layer;
  bool linear_bias = true;  ///< of the layers' projections
  bool rotary = true;
  bool pool = false;                         ///< the mean of `merge` patches goes to the projector, not all of them
  bool projector_norm = false;               ///< of the model's kind, before the projector's products
  std::vector<std::int64_t> projector = {};  ///< inner widths
  bool projector_bias = true;
  bool frozen = false;  ///< forward alone: its weights, the projector's among them, have no gradients

  bool enabled() const { return layers > 0; }
  /// Rows of an image in the layers.
  std::int64_t rows() const { return patches + (class_token ? 1 : 0); }
  std::int64_t positions() const { return images * rows(); }
  /// Of the language model.
  std::int64_t tokens() const { return images * patches / merge; }
  /// What the projector's first product takes.
  std::int64_t merged() const { return pool ? hidden : merge * hidden; }
  /// Outputs and inputs of the projector's products, of which the last makes tokens of the model's width.
  std::vector<std::pair<std::int64_t, std::int64_t>> products(std::int64_t model_hidden) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    std::int64_t inputs = merged();
    for (const std::int64_t width : projector) {
      all.emplace_back(width, inputs);
      inputs = width;
    }
    all.emplace_back(model_hidden, inputs);
    return all;
  }
};

/// Manifold-constrained hyper-connections (Xie et al. 2025, arXiv 2512.24880; DeepSeek-V4): several residual streams in place of
/// one, which every half of a layer gathers for itself and mixes with what it makes (scenarios/lowering/hyper_connection.h).
struct HyperConnectionSpec {
  std::int64_t streams = 1;  ///< 1: one residual stream, as ever
  std::int64_t iterations = 20;

  bool enabled() const { return streams > 1; }
  /// Numbers of a token: how much of each stream a half reads, how much of what it makes goes to each, and how they mix.
  std::int64_t gates() const { return streams * (streams + 2); }
};

/// Lightning attention (Qin et al. 2024, arXiv 2401.04658), in layers of type `lightning_attention`.
struct LightningSpec {
  std::int64_t heads = 0;  ///< 0: no such layers
  std::int64_t head_dim = 128;
  std::int64_t chunk = 256;  ///< positions that are attended to at once

  bool enabled() const { return heads > 0; }
  std::int64_t inner() const { return heads * head_dim; }
  /// Outputs of the projections: queries, keys, values and the gate of the output.
  std::int64_t projected() const { return 4 * inner(); }
};

/// A decoder-only transformer, unsharded.
struct ModelSpec {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;  ///< inner width; a gated MLP has two such projections
  bool gated = true;
  MlpFunction activation = MlpFunction::silu;
  double activation_limit = 0;   ///< of a gated MLP's gates and values, see runtime/ops/activation.h; 0: none
  double activation_offset = 0;  ///< added to its values
  std::int64_t vocab = 0;
  NormKind norm = NormKind::rms;
  NormPlacement norm_placement = NormPlacement::pre;
  ResidualSpec residual;
  bool tied_embeddings = false;
  bool rotary = true;              ///< false: learned position embeddings of `max_positions` rows, or no positions
  std::int64_t max_positions = 0;  ///< only with learned positions; 0: attention knows no positions
  double rotary_base = 500000.0;
  double sliding_rotary_base = 0;     ///< of layers of sliding attention; 0: as in the others
  double rotary_share = 1;            ///< of a head's elements, its first ones, that are rotated
  bool rotary_full_attention = true;  ///< false: layers of full attention have no positions (Llama 4)
  bool causal = true;                 ///< a position attends to itself and those before; false: to all of the sequence
  bool linear_bias = false;           ///< of attention's and the MLP's projections
  AttentionBias attention_bias = AttentionBias::none;  ///< beside `linear_bias`
  QkNorm qk_norm = QkNorm::none;
  bool attention_gate = false;  ///< outputs of heads are multiplied with the sigmoid of a projection, element by element
  double attention_scale = 0;   ///< of scores; 0: 1 / sqrt(head_dim)
  RopeScaling rope_scaling = RopeScaling::none;
  bool attention_sinks = false;  ///< each head has a learned score that every query sees beside its keys (gpt-oss)
  double attention_softcap = 0;  ///< c: scores are c tanh(score / c); 0: as they are
  double logit_softcap = 0;      ///< c: logits are c tanh(logit / c); 0: as they are
  double embedding_factor = 1;   ///< of what the token table gives (Gemma, Granite)
  double logit_factor = 1;       ///< (Granite)
  MlaSpec mla;
  IndexerSpec indexer = {};
  CompressedAttentionSpec compressed = {};
  MoeSpec moe;
  MambaSpec mamba;
  LinearAttentionSpec linear_attention;
  LightningSpec lightning;
  std::int64_t mtp_depth = 0;          ///< tokens predicted beyond the next one, by one more layer each
  std::vector<LayerType> layer_types;  ///< of the layers, over and over; empty: full attention in all
  std::int64_t window = 0;             ///< positions that sliding attention sees, the query's own among them
  std::int64_t attention_chunk = 0;    ///< positions that see each other alone in chunked attention
  EncoderSpec encoder = {};
  HyperConnectionSpec hyper = {};

  /// Of a layer, or beyond the last of what predicts further tokens.
  LayerKind layer_kind(std::int64_t layer) const {
    const bool further = layer_types.empty() || layer >= layers;
    const LayerType type = further ? further_type() : layer_types[static_cast<std::size_t>(layer) % layer_types.size()];
    return {type.mixer, type.feed.value_or(moe.in_layer(layer) ? Feed::experts : Feed::dense)};
  }
  /// Of what predicts further tokens: full attention, or beside compressed keys that to the window alone (DeepSeek-V4, whose
  /// `compress_ratios` end with 0).
  LayerType further_type() const { return {compressed.enabled() ? Mixer::sliding_attention : Mixer::full_attention}; }

  /// The encoder's layers as those of a model.
  ModelSpec of_encoder() const;
  /// Of layers with keys of their own.
  AttentionBias biases_of_attention() const { return linear_bias ? AttentionBias::all : attention_bias; }
  /// Whether some layers pass a state from position to position, so that a rank needs whole sequences of them.
  bool keeps_states() const { return mamba.enabled() || linear_attention.enabled() || lightning.enabled(); }
  bool learns_positions() const { return !rotary && max_positions > 0; }
  bool has_mixer(Mixer mixer) const { return std::ranges::find(layer_types, mixer, &LayerType::mixer) != layer_types.end(); }
  /// Elements of a head that are rotated.
  std::int64_t rotated_width() const { return std::llround(rotary_share * static_cast<double>(head_dim)); }
  /// Whether the token table is used at the end of the model, too: as LM head, or to predict further tokens.
  bool embeds_at_the_end() const { return tied_embeddings || mtp_depth > 0; }
};

/// How context-parallel ranks attend to each other's keys.
enum class CpMethod : std::uint8_t {
  ring,
  all_gather,
  ulysses,
  ulysses_ring  ///< ulysses among `cp_ulysses` neighbours, a ring among those of equal place in their groups
};
/// Which positions they hold: two chunks that make causal work equal, of the sequence or of each document, or one run each.
enum class CpLayout : std::uint8_t {
  zigzag,
  contiguous,
  document_zigzag  ///< zigzag chunks of each document
};

/// With ZeRO-3: whose weights are gathered, and whose gradients are reduced, in one go.
enum class GatherUnit : std::uint8_t {
  layer,  ///< what FSDP wraps: a layer, the embedding, the head
  weight  ///< each large weight of it by itself, as DeepSpeed's modules fetch them
};

/// Which GPU a rank runs on.
struct RankPlacement {
  enum class Kind : std::uint8_t {
    packed,       ///< rank r on GPU r: nodes fill up one after the other
    round_robin,  ///< ranks dealt out to the nodes in turn
    listed        ///< as `gpus` says
  };
  Kind kind = Kind::packed;
  std::vector<std::uint32_t> gpus;  ///< by rank

  bool is_packed() const { return kind == Kind::packed; }
};

/// Who exchanges the experts' tokens.
enum class Dispatcher : std::uint8_t {
  nccl,     ///< its all-to-all: every choice of a token travels by itself
  deepep,   ///< DeepEP's kernels, which a rank's tokens go through as they are
  hybridep  ///< those of its branch hybrid-ep, which learn how many tokens arrived when all have
};
/// Whether a token travels once to a rank, or to a node, whatever it chose there.
constexpr bool sends_once(Dispatcher dispatcher) { return dispatcher != Dispatcher::nccl; }

/// Among which dynamic context parallelism makes groups.
inline constexpr std::int64_t most_dynamic_ranks = 64;

struct ParallelismSpec {
  std::int64_t tp = 1;
  bool sp = false;  ///< sequence parallelism over the tp group; never with tp 1
  std::int64_t pp = 1;
  std::int64_t vpp = 1;  ///< model chunks per stage
  std::int64_t cp = 1;
  CpMethod cp_method = CpMethod::ring;
  CpLayout cp_layout = CpLayout::zigzag;
  std::int64_t cp_ulysses = 0;
  bool dynamic_cp = false;  ///< every micro-batch has groups of its own among the cp ranks, as large as their documents need
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  bool own_expert_axis = false;  ///< ep is an axis of the mesh; else expert ranks lie inside tp x cp x dp
  Dispatcher dispatcher = Dispatcher::nccl;
  std::int64_t dp = 1;
  int zero = 1;
  bool reshard_after_forward = true;   ///< ZeRO-3: drop gathered weights after the forward, gather them again for the backward
  bool gather_per_micro_batch = true;  ///< ZeRO-3: false keeps gathered weights until the chunk's last backward
  GatherUnit gather_unit = GatherUnit::layer;
  std::int64_t prefetch = 1;           ///< ZeRO-3: units whose weights are gathered ahead of the one that computes
  std::int64_t hsdp = 0;               ///< data-parallel ranks that share one set of slices (HSDP); 0: all of them
  bool account_for_embedding = false;  ///< the embedding takes a layer's place in the split over stages
  bool account_for_loss = false;
  std::int64_t first_stage_layers = 0;  ///< 0: as many as the others
  std::int64_t last_stage_layers = 0;
  PipelineLayout pipeline_layout = {};  ///< what each virtual stage holds, in place of the four fields before
  std::vector<Axis> order{mesh_axes.begin(), mesh_axes.end()};  ///< innermost first
  RankPlacement placement = {};
  /// What is the same on all tensor-parallel ranks travels between stages in their parts, and is gathered there (Narayanan et al.
  /// 2021, arXiv 2104.04473, section 4.1); with sp they have parts anyway.
  bool scatter_gather = false;

  /// What a rank routes apart, and where experts lie, as the numbers depend on it: set in the unsharded reference, derived
  /// from the mesh elsewhere.
  std::int64_t reference_token_groups = 1;
  std::int64_t reference_zigzag = 0;  ///< ranks among whom the groups' tokens are dealt in a zigzag
  std::int64_t reference_expert_nodes = 1;
  /// Ranks whose shards Muon takes for matrices of their own, of the layers and of experts: in the unsharded reference, too.
  std::int64_t reference_tp = 1, reference_etp = 1;

  /// Whether context-parallel ranks hold two chunks each.
  bool has_zigzag_chunks() const { return cp > 1 && cp_layout != CpLayout::contiguous; }
  /// Context-parallel ranks, neighbours, that deal out heads among them.
  std::int64_t heads_ranks() const {
    if (cp == 1 || cp_method == CpMethod::ring || cp_method == CpMethod::all_gather) return 1;
    return cp_method == CpMethod::ulysses ? cp : cp_ulysses;
  }
  /// Groups of these, which pass on or gather keys.
  std::int64_t ring_ranks() const { return cp / heads_ranks(); }
  /// Ranks of one data-parallel replica of the model.
  std::int64_t replica_size() const { return tp * pp * cp * (own_expert_axis ? ep : 1); }
  /// Ranks in all.
  std::int64_t world_size() const { return replica_size() * dp; }
  /// Ranks, or groups of them, that each work on sequences of their own.
  std::int64_t data_replicas() const { return dp * (own_expert_axis ? ep : 1); }
  /// Ranks of tp x cp x dp that share a layer's experts among them; those along an expert axis of the mesh come on top.
  std::int64_t expert_shards() const { return etp * (own_expert_axis ? 1 : ep); }
};

enum class ScheduleKind : std::uint8_t {
  gpipe,
  one_f_one_b,
  interleaved,
  zero_bubble_h1,
  zero_bubble_v,
  dualpipe
};
/// What the backward computes once more instead of keeping it from the forward.
struct RecomputeSpec {
  std::int64_t every = 0;      ///< whole layers: those whose number it divides; 0: none
  std::int64_t segment = 1;    ///< whole layers: so many of a model chunk, one after the other, keep one input together
  bool norm = false;           ///< outputs of the norms
  bool activation = false;     ///< outputs of the MLP's activation function
  bool attention = false;      ///< attention between its projections ("selective")
  bool mlp = false;            ///< what is between the MLP's input and output
  std::int64_t mlp_every = 1;  ///< in those layers alone whose number it divides
  bool mla_up = false;         ///< the up-projections of latent attention

  bool whole(std::int64_t layer) const { return every > 0 && layer % every == 0; }
  bool in_segments() const { return every > 0 && segment > 1; }
  bool mlp_of(std::int64_t layer) const { return mlp && layer % mlp_every == 0; }

  bool operator==(const RecomputeSpec&) const = default;
};

/// How operands in fp8 and fp4 get their scales: the recipes of Transformer Engine (common/recipe/__init__.py).
enum class Recipe : std::uint8_t {
  delayed,    ///< fp8; one for a tensor, from the maxima of earlier steps
  current,    ///< fp8; one for a tensor, from its own maximum ("tensorwise")
  blockwise,  ///< fp8; one for 128 elements of activations and 128 x 128 of weights
  mxfp8,      ///< fp8; one for 32 elements
  nvfp4       ///< fp4; one for 16 elements of activations and 16 x 16 of weights, and one for the tensor
};
constexpr const char* name_of(Recipe recipe) {
  constexpr const char* names[] = {"delayed", "current", "blockwise", "mxfp8", "nvfp4"};
  return names[static_cast<int>(recipe)];
}
/// The one that is used where none is named.
constexpr Recipe usual_recipe(DType precision) { return precision == DType::f4 ? Recipe::nvfp4 : Recipe::delayed; }
constexpr bool is_of(Recipe recipe, DType precision) {
  return precision == DType::f4 ? recipe == Recipe::nvfp4 : precision == DType::f8 && recipe != Recipe::nvfp4;
}

/// Which kernels the CPU issues as CUDA graphs.
enum class CudaGraph : std::uint8_t {
  none,
  attention,  ///< what the framework captures of a layer (`Software::captured`): with experts, all before the exchange
  full        ///< the whole step
};
constexpr const char* name_of(CudaGraph graph) {
  constexpr const char* names[] = {"none", "attention", "full"};
  return names[static_cast<int>(graph)];
}

/// How Muon takes a matrix that tensor-parallel ranks share out (--muon-tp-mode of Megatron-Core).
enum class MuonTp : std::uint8_t {
  distributed,  ///< as one, whose shards work together
  blockwise     ///< every shard as a matrix of its own
};

/// What is kept in the memory of the host.
struct OffloadSpec {
  double optimizer = 0;            ///< share of the optimizer's states, which Adam then updates on the CPU
  bool overlap_optimizer = false;  ///< gradients, Adam and weights follow each other bucket by bucket
  std::int64_t activations = 0;    ///< layers of each model chunk, the first ones, whose activations wait there for the backward
  bool any() const { return optimizer > 0 || activations > 0; }
};

/// What updates the weights.
enum class OptimizerKind : std::uint8_t {
  adam,
  muon,      ///< the matrices inside the layers, and Adam all else: Jordan et al. 2024 (runtime/ops/muon.h)
  adafactor  ///< all: Shazeer and Stern 2018 (runtime/ops/adafactor.h)
};

/// How gradients are made smaller on their way between data-parallel ranks (lowering/compressor.h).
enum class CompressionMethod : std::uint8_t {
  cast,     ///< to a smaller type: `grad_compression`
  top_k,    ///< the largest alone travel, with their places
  one_bit,  ///< signs travel, with the mean magnitude
  powersgd  ///< factors of low rank travel
};
struct CompressorSpec {
  CompressionMethod method = CompressionMethod::cast;
  double ratio = 100;     ///< top_k: one gradient of so many travels. Default: Aji and Heafield 2017 (arXiv 1704.05021) drop 99 %
  std::int64_t rank = 1;  ///< powersgd: columns of the factors. Default: that of torch's powerSGD_hook

  /// Whether what does not travel is added to the gradients of the next step.
  bool keeps_residuals() const { return method != CompressionMethod::cast; }
};

/// Who waits for whom where data-parallel replicas differ in pace; of what is played beside the simulated step.
enum class SyncKind : std::uint8_t {
  synchronous,   ///< every step takes the gradients of all
  backup,        ///< every step takes the first ones, and drops those of `backups` replicas (Chen et al. 2016, arXiv 1604.00981)
  stale,         ///< each updates by itself, at most `staleness` steps ahead of the slowest (Ho et al. 2013, NIPS)
  asynchronous,  ///< each updates by itself, and waits for nobody
  local          ///< each takes `every` steps by itself, and then their weights are averaged (local SGD)
};

struct SyncPolicy {
  SyncKind kind = SyncKind::synchronous;
  std::int64_t backups = 0;
  bool abandons = false;  ///< a backup worker that is late stops, and begins the next step with the others
  std::int64_t staleness = 0;
  std::int64_t every = 1;
  std::int64_t servers = 0;  ///< nodes of parameter servers beside the cluster's; 0: the replicas serve slices of the weights

  bool operator==(const SyncPolicy&) const = default;
};

struct TrainingSpec {
  std::int64_t sequence = 0;
  std::int64_t micro_batch = 1;   ///< sequences
  std::int64_t global_batch = 0;  ///< sequences
  DocumentsSpec documents;
  DType precision = DType::bf16;
  Recipe recipe = Recipe::delayed;
  /// To be executed on GPUs, where products read an operand along its depth alone: no field of a scenario file.
  bool casts_both_ways = false;
  /// Delayed scaling reduces maxima over ranks that share sequences and tensors, not over data-parallel ones.
  bool tp_only_amax_red = false;
  bool first_last_layers_bf16 = false;  ///< linear layers of the first and the last layers multiply in bf16
  std::int64_t num_layers_at_start_in_bf16 = 1;
  std::int64_t num_layers_at_end_in_bf16 = 1;
  CudaGraph cuda_graph = CudaGraph::none;
  DType grad_dtype = DType::f32;
  OptimizerKind optimizer = OptimizerKind::adam;
  MuonTp muon_tp = MuonTp::distributed;
  DType moment_dtype = DType::f32;         ///< of Adam's first moment, and of Muon's momentum
  DType second_moment_dtype = DType::f32;  ///< of its second
  DType master_dtype = DType::f32;         ///< of the weights that the optimizer updates, from which those of the step are cast
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  RecomputeSpec recompute;
  /// Linear weights of layers that cast are kept, and gathered under ZeRO-1, in the type that they are multiplied in:
  /// `fp8_param_gather` and `fp4_param_gather`.
  bool param_gather = false;
  bool fp8_attention = false;         ///< attention's products have operands in fp8, in layers that cast
  bool fp8_output_proj = false;       ///< so has the LM head's
  bool fp8_activation_input = false;  ///< what the MLPs' activation functions read is kept for the backward in fp8
  bool overlap_dp = true;
  bool overlap_tp = false;
  bool overlap_pp = true;
  bool overlap_ep = false;
  /// Each expert weights its rows by their gates, between its two products, so that what returns need only be added up and need
  /// not be kept; else the gates weight it where it returns.
  bool gates_at_experts = false;
  std::int64_t bucket_parameters = 0;    ///< gradient bucket, in parameters; from `bucket_MB` of gradients
  bool hierarchical_all_reduce = false;  ///< gradients inside the node first, then across nodes
  /// Optimizer steps from one exchange of the data-parallel replicas to the next. 1: they reduce their gradients in every step;
  /// more: each takes steps of its own, and then their weights are averaged (local SGD, see lowering/local_steps.h).
  std::int64_t sync_every = 1;
  std::vector<SyncPolicy> sync;              ///< to compare with the synchronous step
  std::int64_t sync_steps = 200;             ///< that are played with each of them
  std::optional<AttentionKernel> attention;  ///< none: what the framework runs on the GPU
  double hidden_dropout = 0;                 ///< of the embedding's output and of the residual branches
  double attention_dropout = 0;              ///< of attention's probabilities
  std::int64_t grad_compression = 1;         ///< gradients are reduced in a type so many times smaller
  CompressorSpec compressor;
  OffloadSpec offload;

  /// What the optimizer keeps of each parameter; with Muon and Adafactor of each of a matrix, of others more.
  Bytes state_bytes() const {
    const Bytes first = optimizer == OptimizerKind::adafactor ? 0 : size_of(moment_dtype);
    const Bytes second = optimizer == OptimizerKind::adam ? size_of(second_moment_dtype) : 0;
    return size_of(master_dtype) + first + second;
  }
  /// Whether operands of the layers' linear GEMMs are cast to fp8 or fp4.
  bool casts() const { return precision == DType::f8 || precision == DType::f4; }
  /// What those weights are gathered in. Scales of 32 in both directions need both made of the same numbers: Megatron-Core
  /// gathers bf16 into the buffer of the gradients, and casts that (core/distributed/param_and_grad_buffer.py). So it does with
  /// Muon, whatever the recipe (core/optimizer/layer_wise_optimizer.py).
  DType gathered() const { return recipe == Recipe::mxfp8 || optimizer == OptimizerKind::muon ? storage() : precision; }
  /// What weights and activations are kept in: fp8 and fp4 are for the operands of GEMMs.
  DType storage() const { return casts() ? DType::bf16 : precision; }
  std::int64_t micro_batches(const ParallelismSpec& p) const { return global_batch / (p.data_replicas() * micro_batch); }
  bool local_steps() const { return sync_every > 1; }
  /// Sequences whose mean gradient a step of the optimizer follows.
  std::int64_t gradient_batch(const ParallelismSpec& p) const { return local_steps() ? global_batch / p.dp : global_batch; }
};

/// One slow GPU: every kernel on `rank` takes 1 / factor times as long.
struct SlowGpu {
  std::int64_t rank = 0;
  double factor = 1;
};

/// How much the times of one step vary from GPU to GPU and from kernel to kernel.
struct JitterSpec {
  double kernel = 0;         ///< coefficient of variation of a kernel's time from one run to the next
  double rank = 0;           ///< of the speed of whole GPUs
  double communication = 0;  ///< of a collective's or transfer's time
  std::int64_t draws = 0;    ///< steps to draw; 0: none
  std::uint64_t seed = 1;

  bool enabled() const { return draws > 0; }
};

struct Scenario {
  std::string name;
  ModelSpec model;
  ClusterSpec cluster;
  ParallelismSpec parallelism;
  TrainingSpec training;
  Software software;  ///< of `training.framework`
  std::vector<SlowGpu> slow_gpus;
  JitterSpec jitter;
  std::vector<std::string> warnings;  ///< sentences about what is possible but unwise, each with its place

  /// Neighbouring tensor-parallel ranks that hold the same key-value head, where there are more ranks than heads.
  std::int64_t kv_replicas() const { return std::max<std::int64_t>(1, parallelism.tp / model.kv_heads); }

  /// Equal parts that context-parallel ranks hold of each document; its length is a multiple of them.
  std::int64_t document_parts() const {
    if (training.documents.reference.parts > 0) return training.documents.reference.parts;
    if (parallelism.dynamic_cp) return 1;  // and what a document's group needs, once it is packed
    return parallelism.cp > 1 && parallelism.cp_layout == CpLayout::document_zigzag ? 2 * parallelism.cp : 1;
  }

  /// Whether the probabilities of attention are there to be dropped: on every GPU it is unfused, and no block of keys comes from
  /// another rank.
  bool has_probabilities() const {
    const auto unfused = [](const Device& gpu) { return gpu.efficiency.attention_kernel == AttentionKernel::unfused; };
    return unfused(cluster.gpu) && std::ranges::all_of(cluster.other_gpus, unfused, &OtherGpus::gpu) &&
           (parallelism.cp == 1 || parallelism.cp_method == CpMethod::ulysses);
  }

  /// Whether the GEMMs of the layer have operands in fp8 or fp4. Layers that predict further tokens do: Megatron-Core counts
  /// those of the decoder alone (core/fp8_utils.py, is_first_last_bf16_layer).
  bool casts_in(std::int64_t layer) const {
    if (!training.casts()) return false;
    const bool first = layer >= 0 && layer < training.num_layers_at_start_in_bf16;
    const bool last = layer < model.layers && layer >= model.layers - training.num_layers_at_end_in_bf16;
    return !training.first_last_layers_bf16 || !(first || last);
  }

  /// Whether all of a tensor that is cast shares one scale.
  /// Whether maxima are reduced for the scales of later passes (lowering/delayed_scales.h).
  bool reduces_amax() const {
    return training.precision == DType::f8 && training.recipe == Recipe::delayed && software.reduces_amax;
  }
  bool scales_whole_tensors() const { return training.recipe == Recipe::delayed || training.recipe == Recipe::current; }

  /// Whether an operand is cast once, for products by rows and by columns.
  bool casts_once() const {
    const auto reads_both = [this](const Device& gpu) {
      return std::ranges::find(software.casts_once, gpu.architecture) != software.casts_once.end();
    };
    return scales_whole_tensors() && !training.casts_both_ways && reads_both(cluster.gpu) &&
           std::ranges::all_of(cluster.other_gpus, reads_both, &OtherGpus::gpu);
  }

  /// Whether the products of experts apply the activation and cast its output (scenarios/lowering/experts.cpp).
  bool fuses_experts() const {
    const auto fuses = [this](const Device& gpu) {
      return std::ranges::find(software.fuses_experts, gpu.architecture) != software.fuses_experts.end();
    };
    return fuses(cluster.gpu) && std::ranges::all_of(cluster.other_gpus, fuses, &OtherGpus::gpu);
  }

  /// Whether shards of the sequence travel beside the GEMMs (lowering/tp_overlap.h).
  bool overlaps_tp() const { return training.overlap_tp && parallelism.tp > 1; }

  /// Whether tokens travel to experts and back beside the compute of another pass (lowering/turns.h).
  bool overlaps_ep() const { return training.overlap_ep && parallelism.ep > 1; }
};

}  // namespace tandem::scenarios
