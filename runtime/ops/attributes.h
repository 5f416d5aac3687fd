#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <variant>
#include <vector>

#include "runtime/base/dtype.h"

namespace tandem {

// Attributes of the operations: everything that is not an operand's shape. They are stored once per distinct value in the
// DAG, so they must be comparable, and hold no pointers.

/// C = op(A) op(B), added to C's old value when `accumulate`. Row-major; m, n, k follow from the operands' shapes, whose
/// leading dimensions are flattened into rows.
struct GemmAttributes {
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  auto operator<=>(const GemmAttributes&) const = default;
};

enum class NormKind : std::uint8_t {
  rms,
  layer
};
struct NormAttributes {
  NormKind kind = NormKind::rms;
  float epsilon = 1e-5F;
  auto operator<=>(const NormAttributes&) const = default;
};

/// The sequence positions a rank holds: one run, or two under zigzag context parallelism.
struct Positions {
  std::array<std::int32_t, 2> start{0, 0};
  std::array<std::int32_t, 2> length{0, 0};
  auto operator<=>(const Positions&) const = default;
  std::int32_t count() const { return length[0] + length[1]; }
  /// Global position of local index i.
  std::int32_t at(std::int32_t i) const { return i < length[0] ? start[0] + i : start[1] + i - length[0]; }
};

/// The documents that a micro-batch's sequences are packed of. Where there are `parts`, a sequence holds the first of so many
/// equal parts of each of its documents, then the second of each, and so on: its p-th run of equal length is every document's
/// p-th part. Where there are `runs`, each of them is such a sequence, with parts of its own: what groups of context-parallel
/// ranks hold one after the other, in the unsharded reference.
struct Documents {
  std::int32_t sequence = 0;                 ///< positions of a sequence
  std::int32_t parts = 1;                    ///< divides the length of each document
  std::vector<std::int64_t> starts = {};     ///< where each begins if all lay whole, through all sequences; empty: each is one
  std::vector<std::int64_t> runs = {};       ///< where each begins, through all sequences; empty: each sequence is one
  std::vector<std::int32_t> run_parts = {};  ///< of each run, in place of `parts`
  auto operator<=>(const Documents&) const = default;
};

/// Splits a [s, b, (heads + 2 kv_heads), head_dim] projection into q, k, v; rotates q and k when `rotate`.
struct SplitHeadsAttributes {
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  bool rotate = true;
  float base = 500000.0F;
  Positions positions;
  std::int32_t rotated = 0;  ///< elements of a head that turn, its first ones; 0: all
  Documents documents = {};  ///< each counts its positions from 0
  auto operator<=>(const SplitHeadsAttributes&) const = default;
};

/// How many elements of a head of `head_dim` turn.
inline std::int64_t rotated_of(const SplitHeadsAttributes& attributes, std::int64_t head_dim) {
  return attributes.rotated > 0 ? attributes.rotated : head_dim;
}

/// How rotary angles are stretched (YaRN): see runtime/ops/rotation.h.
struct YarnAttributes {
  float factor = 1.0F;       ///< 1: they are as they are
  float original = 4096.0F;  ///< positions of pre-training
  float beta_fast = 32.0F, beta_slow = 1.0F;
  auto operator<=>(const YarnAttributes&) const = default;
};

/// Rotates the last `rope_dim` elements of the heads of latent attention.
struct MlaHeadsAttributes {
  std::int32_t rope_dim = 0;
  float base = 10000.0F;
  Positions positions;
  Documents documents = {};  ///< each counts its positions from 0
  std::int32_t stride = 1;   ///< positions that each row stands for: its angle is that of the first
  YarnAttributes yarn = {};
  auto operator<=>(const MlaHeadsAttributes&) const = default;
};

/// softmax(scale * q k^T + causal mask) v. The mask compares global positions (runtime/ops/attention_mask.h).
struct AttentionAttributes {
  bool causal = true;
  float scale = 1.0F;
  Positions queries;
  Positions keys;
  std::int32_t window = 0;   ///< positions that a query sees at most, its own among them; 0: no limit
  std::int32_t chunk = 0;    ///< a query sees those of its own run of so many positions alone; 0: no runs
  float softcap = 0.0F;      ///< scores are softcap tanh(score / softcap); 0: as they are
  Documents documents = {};  ///< a query sees keys of its own alone, and each counts its positions from 0
  auto operator<=>(const AttentionAttributes&) const = default;
};

/// Says which positions each of `ranks` parts of a sequence holds: rank r holds the chunks r and 2 ranks - 1 - r of 2 ranks when
/// `zigzag`, else the r-th of `ranks` runs.
struct SequenceAttributes {
  std::int32_t ranks = 1;
  bool zigzag = false;
  auto operator<=>(const SequenceAttributes&) const = default;
};

struct GroupsAttributes {
  std::int32_t groups = 1;
  auto operator<=>(const GroupsAttributes&) const = default;
};

/// The number formats of a byte or less (runtime/ops/narrow.h).
enum class NarrowType : std::uint8_t {
  none,  ///< nothing is rounded
  e4m3,
  e5m2,
  e2m1
};
inline constexpr std::size_t narrow_type_count = 4;

/// How operands of products become fp8 or fp4; runtime/ops/cast.h says what each member does.
struct CastAttributes {
  std::vector<std::int32_t> rows = {};  ///< of each tensor, where several lie below each other, each with scales of its own
  NarrowType to = NarrowType::none;
  Scaling scaling = Scaling::none;
  bool stochastic = false;
  bool transforms = false;
  std::int32_t seed = 0;
  bool fused = false;     ///< as FusedAttributes
  bool in_place = false;  ///< of the operands, y by columns and x, the latter becomes y by rows
  bool alone = false;     ///< what the framework runs beside casts of the recipe, it does not run beside this one
  auto operator<=>(const CastAttributes&) const = default;
};

enum class Activation : std::uint8_t {
  swiglu,
  gelu,
  geglu,         ///< as swiglu, with GELU for SiLU
  squared_relu,  ///< (So et al. 2021, arXiv 2109.08668)
  silu,
  quick_geglu  ///< as swiglu, with x sigmoid(1.702 x) for SiLU (gpt-oss)
};
/// Whether it takes gates beside values.
constexpr bool is_gated(Activation kind) {
  return kind == Activation::swiglu || kind == Activation::geglu || kind == Activation::quick_geglu;
}

struct ActivationAttributes {
  Activation kind = Activation::swiglu;
  float limit = 0.0F;   ///< gates above it, and values beyond it either way, count as if they had it; 0: as they are
  float offset = 0.0F;  ///< added to values
  bool fused = false;   ///< as FusedAttributes
  auto operator<=>(const ActivationAttributes&) const = default;
};

/// The rows [vocab_start, vocab_start + rows of the table) live here; other tokens give zeros.
struct EmbeddingAttributes {
  std::int64_t vocab_start = 0;
  auto operator<=>(const EmbeddingAttributes&) const = default;
};

/// Vocabulary-parallel softmax cross entropy; `scale` is 1 / (tokens of the global batch).
struct CrossEntropyAttributes {
  std::int64_t vocab_start = 0;
  float scale = 1.0F;
  auto operator<=>(const CrossEntropyAttributes&) const = default;
};

struct AdamAttributes {
  float learning_rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float weight_decay = 0.1F;
  float clip_norm = 1.0F;  ///< gradients are scaled by min(1, clip_norm / global norm); 0 = no clipping
  std::int32_t step = 1;   ///< for the bias correction, counted from 1
  auto operator<=>(const AdamAttributes&) const = default;
};

struct MuonAttributes {
  float learning_rate = 1e-3F;
  float momentum = 0.95F;
  float weight_decay = 0.1F;
  float clip_norm = 1.0F;  ///< as AdamAttributes::clip_norm
  float scale = 1.0F;      ///< of a step whose singular values are about 1
  auto operator<=>(const MuonAttributes&) const = default;
};

/// The block of a tensor that a bucket of parameters has, row by row from `offset` on.
struct AdafactorPiece {
  std::int64_t offset = 0;
  std::int64_t rows = 0, columns = 0;
  std::int64_t tensor_rows = 0, tensor_columns = 0;
  std::int32_t copies = 1;  ///< ranks that add what they sum of the same elements to one sum
  auto operator<=>(const AdafactorPiece&) const = default;
};

/// The defaults of torch.optim.Adafactor (runtime/ops/adafactor.h).
struct AdafactorAttributes {
  float learning_rate = 1e-2F;
  float beta2_decay = -0.8F;
  float least_scale = 1e-3F;  ///< of weights, which a step is relative to
  float threshold = 1.0F;     ///< for the root mean square of a tensor's direction
  float weight_decay = 0.0F;
  float clip_norm = 1.0F;  ///< as AdamAttributes::clip_norm
  std::int32_t step = 1;   ///< counted from 1
  bool factored = false;   ///< all are matrices
  std::int64_t first = 0;  ///< where in the bucket the slice begins
  std::vector<AdafactorPiece> pieces = {};
  auto operator<=>(const AdafactorAttributes&) const = default;
};

/// out = factor * in (copy, scale); fill writes `factor`; an update of expert biases moves them by `factor`.
struct ScaleAttributes {
  float factor = 1.0F;
  auto operator<=>(const ScaleAttributes&) const = default;
};

enum class Reduction : std::uint8_t {
  sum,
  max,
  mean
};
/// Attributes of a collective that reduces.
struct ReductionAttributes {
  Reduction reduction = Reduction::sum;
  std::int32_t root = 0;  ///< position in the communicator; of broadcast, reduce, gather and scatter
  auto operator<=>(const ReductionAttributes&) const = default;
};

/// What a router makes of its logits before a token chooses by it.
enum class ScoreFunction : std::uint8_t {
  softmax,
  sigmoid,
  sqrtsoftplus  ///< the root of log(1 + e^x) (DeepSeek-V4)
};

/// Says which experts a token goes to, and which slots hold what is sent. Each pair of a token group and an expert has a fixed
/// number of them. The experts lie in `parts` runs of equal length, one per expert-parallel rank; each group sends each part one
/// block: rows [parts][groups][block], in which the part's experts have their slots one after the other, then padding.
struct RoutingAttributes {
  std::int32_t top_k = 1;
  std::int32_t groups = 1;  ///< of tokens, equally large, that are routed without regard to each other
  std::int32_t zigzag = 0;  ///< 0: groups are runs; n: runs of what n zigzag context-parallel ranks hold
  std::int32_t parts = 1;
  std::int32_t block = 0;
  std::int32_t nodes = 1;       ///< runs of experts, equally long, that lie in one node each
  std::int32_t node_limit = 0;  ///< a token's experts lie in at most so many < `nodes` and `top_k`; 0 = no limit
  bool forced = false;  ///< the load is given: so many choices for each expert as `load` says; else the top k by the numbers
  float balance = 0;    ///< coefficient of the balance loss / tokens of the global batch
  std::vector<std::int32_t> slots;      ///< by expert
  std::vector<std::int32_t> load = {};  ///< forced choices by expert, beyond its slots, too; empty: as many as it has slots
  bool expert_choice = false;           ///< each expert takes as many tokens as it has slots; `top_k` is then all experts
  ScoreFunction score = ScoreFunction::softmax;
  bool pre_softmax = false;  ///< gates are the softmax over all experts, and tokens choose by it
  float scaling = 1.0F;      ///< of the gates
  bool biased = false;       ///< tokens choose by the scores and a bias of each expert
  /// Where the balance loss is that of each sequence: how many there are, whose tokens take turns in the rows, and the tokens of
  /// a whole one. 0: it is that of a group.
  std::int32_t sequences = 0, sequence = 0;
  std::int32_t best_of_node = 0;  ///< scores that a node is chosen by, its best ones; 0: max(1, top_k / node_limit)
  bool hashed = false;            ///< a token's number chooses its experts, whatever the logits are
  auto operator<=>(const RoutingAttributes&) const = default;

  const std::vector<std::int32_t>& forced_load() const { return load.empty() ? slots : load; }
};

/// One matrix product per expert; `rows[e]` rows of tokens belong to expert e.
struct GroupedGemmAttributes {
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  std::vector<std::int32_t> rows;
  bool fused = false;  ///< as FusedAttributes: of a bias that a product adds, or whose gradient it sums up
  auto operator<=>(const GroupedGemmAttributes&) const = default;
};

/// Reorders rows by source, [blocks][block] in which each expert e has `rows[e]`, then padding, into rows by expert, or back.
struct RegroupAttributes {
  std::int32_t blocks = 1;
  std::int32_t block = 0;
  bool inverse = false;
  std::vector<std::int32_t> rows;
  auto operator<=>(const RegroupAttributes&) const = default;
};

/// A product for each head. Says which operands are transposed, as GemmAttributes do; results are multiplied by `factor`.
struct BatchedGemmAttributes {
  bool transpose_a = false;
  bool transpose_b = false;
  float factor = 1.0F;
  auto operator<=>(const BatchedGemmAttributes&) const = default;
};

/// Says where in the unsharded model the elements lie that are dropped, each with `probability` (runtime/ops/dropout.h).
struct DropoutAttributes {
  float probability = 0.0F;
  std::int32_t stream = 0;  ///< of random numbers: one for each place of the model that drops elements
  std::int32_t first_head = 0;
  Positions rows;
  auto operator<=>(const DropoutAttributes&) const = default;
};

/// Marks a kernel whose work another before or after it does on its way: an exchange (DeepEP: scenarios/lowering/exchange.h), or
/// a product that adds a bias or applies an activation. It is executed like any other, and takes no time in a simulation.
struct FusedAttributes {
  bool fused = true;
  auto operator<=>(const FusedAttributes&) const = default;
};

/// How many of the elements that a sign_compress reads there are; those beyond fill the last part up (runtime/ops/sign.h).
struct SignAttributes {
  std::int64_t valid = 0;
  auto operator<=>(const SignAttributes&) const = default;
};

/// Says which columns of its input a causal convolution reads, and which rows of its weight: channel c those of the c-th row in
/// up to three runs.
struct CausalConvAttributes {
  std::int64_t first_column = 0;
  std::array<std::int64_t, 3> row{0, 0, 0};
  std::array<std::int64_t, 3> rows{0, 0, 0};
  bool biased = false;       ///< the last column of the weight is a bias
  Documents documents = {};  ///< before the first token of each there are zeros
  auto operator<=>(const CausalConvAttributes&) const = default;
  std::int64_t channels() const { return rows[0] + rows[1] + rows[2]; }
  constexpr std::int64_t row_of(std::int64_t channel) const {
    if (channel < rows[0]) return row[0] + channel;
    channel -= rows[0];
    return channel < rows[1] ? row[1] + channel : row[2] + channel - rows[1];
  }
};

/// Sizes of Mamba-2's scan (runtime/ops/ssd_scan.h). The heads here are those from `first_head` on of the parameters.
struct SsdAttributes {
  std::int32_t head_dim = 64;
  std::int32_t groups = 1;  ///< of heads, each with keys (B) and queries (C) of its own
  std::int32_t state = 128;
  std::int32_t chunk = 128;
  std::int32_t first_head = 0;
  Documents documents = {};  ///< the state before each is 0
  auto operator<=>(const SsdAttributes&) const = default;
};

/// Sizes of the gated delta rule (runtime/ops/delta_rule.h). The value heads here are those from `first_head` on of the
/// parameters.
struct DeltaRuleAttributes {
  std::int32_t key_heads = 16;
  std::int32_t key_dim = 128;
  std::int32_t value_dim = 128;
  std::int32_t chunk = 64;
  std::int32_t first_head = 0;
  Documents documents = {};  ///< the state before each is 0
  auto operator<=>(const DeltaRuleAttributes&) const = default;
};

/// An RMSNorm of each of so many equal parts of a row.
struct GroupNormAttributes {
  std::int32_t groups = 1;
  float epsilon = 1e-5F;
  std::int64_t gate_column = 0;  ///< of the tensor that holds the gate, where there is one
  auto operator<=>(const GroupNormAttributes&) const = default;
};

/// A row as `parts` of such widths, each shared out over `ranks`; part i is held `repeats[i]` times, so that as many neighbours
/// have the same columns.
struct ColumnPartsAttributes {
  std::int32_t ranks = 1;
  bool zigzag = false;   ///< positions of ranks, as in SequenceAttributes
  bool inverse = false;  ///< the way back
  std::vector<std::int32_t> widths;
  std::vector<std::int32_t> repeats;
  auto operator<=>(const ColumnPartsAttributes&) const = default;
};

/// Which block of a weight [heads * head_rows, columns] each head multiplies with: its rows from `first_row` on
/// (runtime/ops/head_gemm.h).
struct HeadGemmAttributes {
  bool transpose_a = false;
  bool transpose_b = false;
  std::int32_t head_rows = 0;
  std::int32_t first_row = 0;
  auto operator<=>(const HeadGemmAttributes&) const = default;
};

/// Attention to keys that an indexer chose (runtime/ops/sparse_attention.h, runtime/ops/indexer.h). A query sees its own position
/// and those before, and keys that stand for `ratio` positions each where it sees all of these.
struct SparseAttentionAttributes {
  float scale = 1.0F;  ///< of attention's scores, or the indexer's
  Positions queries;
  Positions keys;
  bool all_keys = false;     ///< the indexer learns from attention to all keys that a query sees, not to the chosen alone
  float coefficient = 0.0F;  ///< of the indexer's loss / tokens of the global batch
  std::int32_t window = 0;   ///< of keys of single positions that are chosen, before those of `ratio` positions; 0: none are
  std::int32_t ratio = 1;
  auto operator<=>(const SparseAttentionAttributes&) const = default;
};

/// Windows of positions that become one key each (runtime/ops/compress_keys.h).
struct CompressAttributes {
  std::int32_t ratio = 1;
  bool overlap = false;
  auto operator<=>(const CompressAttributes&) const = default;
};

/// Residual streams side by side, mixed for every token (runtime/ops/hyper_connection.h).
struct HyperAttributes {
  std::int32_t streams = 4;
  std::int32_t iterations = 20;  ///< of Sinkhorn and Knopp; 0: streams are only gathered, not mixed
  float epsilon = 1e-6F;         ///< of sums, and the least share of a stream
  float epsilon_of_norm = 1e-6F;
  auto operator<=>(const HyperAttributes&) const = default;
};

/// Sizes of lightning attention (runtime/ops/lightning_attention.h). The heads here are those from `first_head` on of the
/// model's.
struct LightningAttributes {
  std::int32_t head_dim = 128;
  std::int32_t chunk = 256;
  std::int32_t heads = 64;  ///< of the model
  std::int32_t first_head = 0;
  float decay = 1.0F;  ///< of this layer: a factor of the heads' rates
  auto operator<=>(const LightningAttributes&) const = default;
};

/// An RMSNorm of rows of so many columns, of which a rank has some (runtime/ops/split_norm.h).
struct SplitNormAttributes {
  std::int64_t width = 1;
  float epsilon = 1e-6F;
  bool gated = true;
  auto operator<=>(const SplitNormAttributes&) const = default;
};

/// c = first a + second b
struct WeightedSumAttributes {
  float first = 1.0F;
  float second = 1.0F;
  auto operator<=>(const WeightedSumAttributes&) const = default;
};

using OpAttributes =
    std::variant<std::monostate, GemmAttributes, NormAttributes, SplitHeadsAttributes, MlaHeadsAttributes, AttentionAttributes,
                 SequenceAttributes, GroupsAttributes, ActivationAttributes, EmbeddingAttributes, CrossEntropyAttributes,
                 AdamAttributes, ScaleAttributes, ReductionAttributes, RoutingAttributes, GroupedGemmAttributes,
                 RegroupAttributes, FusedAttributes, BatchedGemmAttributes, DropoutAttributes, SignAttributes,
                 CausalConvAttributes, SsdAttributes, GroupNormAttributes, ColumnPartsAttributes, DeltaRuleAttributes,
                 MuonAttributes, CastAttributes, HeadGemmAttributes, SparseAttentionAttributes, AdafactorAttributes,
                 LightningAttributes, SplitNormAttributes, WeightedSumAttributes, CompressAttributes, HyperAttributes>;

inline bool is_fused(const OpAttributes& attributes) {
  const auto* fused = std::get_if<FusedAttributes>(&attributes);
  const auto* cast = std::get_if<CastAttributes>(&attributes);
  const auto* grouped = std::get_if<GroupedGemmAttributes>(&attributes);
  const auto* activation = std::get_if<ActivationAttributes>(&attributes);
  return (fused != nullptr && fused->fused) || (cast != nullptr && cast->fused) || (grouped != nullptr && grouped->fused) ||
         (activation != nullptr && activation->fused);
}

}  // namespace tandem
