#include <numeric>
#include <string>

#include "runtime/base/nearest.h"
#include "scenarios/checks/rules.h"

namespace tandem::scenarios {
namespace {

std::string with_nearest(const std::string& sentence, std::int64_t unit, std::int64_t size) {
  return sentence + "; nearest that are: " + joined(nearest_multiples(unit, size));
}

// What tensor parallelism splits.

Objection undivided(const Scenario& s, std::int64_t size, const std::string& field) {
  const std::int64_t tp = s.parallelism.tp;
  return {{"parallelism.tp", "model." + field},
          named(Axis::tp, tp) + " does not divide " + std::to_string(size) + " " + field +
              "; nearest that do: " + joined(nearest_divisors(size, tp))};
}

constexpr Rule tp_divides_heads{.sizes = Sizes::split,
                                .holds = [](const Scenario& s) { return s.model.heads % s.parallelism.tp == 0; },
                                .objection = [](const Scenario& s) { return undivided(s, s.model.heads, "heads"); }};

constexpr Rule tp_spreads_kv_heads{
    .sizes = Sizes::split,
    .holds =
        [](const Scenario& s) {
          const std::int64_t tp = s.parallelism.tp, kv_heads = s.model.kv_heads;
          return tp <= kv_heads ? kv_heads % tp == 0 : tp % kv_heads == 0;
        },
    .objection = [](const Scenario& s) -> Objection {
      const std::int64_t tp = s.parallelism.tp, kv_heads = s.model.kv_heads;
      if (tp <= kv_heads) return undivided(s, kv_heads, "kv_heads");
      return {{"parallelism.tp", "model.kv_heads"},
              named(Axis::tp, tp) + " above " + named("kv_heads", kv_heads) +
                  " is not a multiple of it, so that equally many ranks could hold each head; nearest that are: " +
                  joined(nearest_multiples(kv_heads, tp))};
    }};

constexpr Rule tp_divides_ffn{.sizes = Sizes::split,
                              .holds = [](const Scenario& s) { return s.model.ffn % s.parallelism.tp == 0; },
                              .objection = [](const Scenario& s) { return undivided(s, s.model.ffn, "ffn"); }};

constexpr Rule tp_divides_vocabulary{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return s.model.vocab % s.parallelism.tp == 0; },
    .objection = [](const Scenario& s) -> Objection {
      const std::int64_t tp = s.parallelism.tp;
      return {{"model.vocab", "parallelism.tp"},
              with_nearest(named("vocab", s.model.vocab) + " is not a multiple of " + named(Axis::tp, tp), tp, s.model.vocab)};
    }};

// What context and sequence parallelism split.

std::string uneven_sequence(const Scenario& s) { return named("sequence", s.training.sequence) + " is not a multiple of "; }

constexpr Rule ulysses_has_whole_sequences{
    .holds = [](const Scenario& s) { return !s.parallelism.has_zigzag_chunks() || s.parallelism.cp_method != CpMethod::ulysses; },
    .objection = [](const Scenario&) -> Objection {
      return {{"parallelism.cp_layout", "parallelism.cp_method"},
              "zigzag chunks with ulysses, which gives every rank whole sequences of some heads; expected cp_layout contiguous"};
    }};

constexpr Rule zigzag_divides_sequence{
    .sizes = Sizes::split,
    .holds =
        [](const Scenario& s) { return !s.parallelism.has_zigzag_chunks() || s.training.sequence % (2 * s.parallelism.cp) == 0; },
    .objection = [](const Scenario& s) -> Objection {
      const std::int64_t cp = s.parallelism.cp;
      return {{"training.sequence", "parallelism.cp"},
              with_nearest(uneven_sequence(s) + "2 * " + named(Axis::cp, cp) + ", as zigzag's two chunks per rank need", 2 * cp,
                           s.training.sequence)};
    }};

constexpr Rule document_chunks_are_of_documents{
    .holds = [](const Scenario& s) { return s.parallelism.cp_layout != CpLayout::document_zigzag || s.training.documents.any(); },
    .objection = [](const Scenario&) -> Objection {
      return {{"parallelism.cp_layout", "training.documents"},
              "cp_layout document-zigzag without training.documents, expected zigzag, or documents"};
    }};

constexpr Rule dynamic_groups_are_of_documents{
    .holds =
        [](const Scenario& s) {
          const DocumentsSpec& documents = s.training.documents;
          return !s.parallelism.dynamic_cp || (documents.any() && documents.packing == Packing::best_fit);
        },
    .objection = [](const Scenario&) -> Objection {
      return {{"parallelism.dynamic_cp", "training.documents.packing", "training.documents"},
              "dynamic_cp without documents that are packed by best fit, into groups of ranks as large as they need; expected "
              "training.documents with packing best-fit"};
    }};

constexpr Rule dynamic_groups_pass_keys{
    .holds =
        [](const Scenario& s) {
          const ParallelismSpec& p = s.parallelism;
          const bool passes = p.cp_method == CpMethod::ring || p.cp_method == CpMethod::all_gather;
          return !p.dynamic_cp || (passes && p.cp_layout == CpLayout::document_zigzag);
        },
    .objection = [](const Scenario&) -> Objection {
      return {{"parallelism.dynamic_cp", "parallelism.cp_method", "parallelism.cp_layout"},
              "dynamic_cp is lowered for chunks of documents whose keys are passed on or gathered; expected cp_method ring or "
              "all-gather, and cp_layout document-zigzag"};
    }};

constexpr Rule dynamic_groups_halve{
    .sizes = Sizes::split,
    .holds =
        [](const Scenario& s) {
          const std::int64_t cp = s.parallelism.cp;
          return !s.parallelism.dynamic_cp || (cp > 1 && cp <= most_dynamic_ranks && (cp & (cp - 1)) == 0);
        },
    .objection = [](const Scenario& s) -> Objection {
      return {{"parallelism.cp", "parallelism.dynamic_cp"},
              named(Axis::cp, s.parallelism.cp) +
                  " with dynamic_cp, whose groups are powers of two of ranks; expected one from 2 to " +
                  std::to_string(most_dynamic_ranks)};
    }};

constexpr Rule dynamic_groups_have_one_sequence{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return !s.parallelism.dynamic_cp || s.training.micro_batch == 1; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.micro_batch", "parallelism.dynamic_cp"},
              "micro_batch " + std::to_string(s.training.micro_batch) +
                  " with dynamic_cp, which groups ranks for the documents of one sequence; expected 1"};
    }};

constexpr Rule dynamic_groups_route_nothing{
    .holds = [](const Scenario& s) { return !s.parallelism.dynamic_cp || s.model.moe.experts == 0; },
    .objection = [](const Scenario&) -> Objection {
      return {
          {"parallelism.dynamic_cp", "model.moe"},
          "dynamic_cp with experts, whose ranks route tokens in groups that are the same in every micro-batch; expected one of "
          "the two"};
    }};

constexpr Rule dynamic_rings_make_no_keys{
    .holds =
        [](const Scenario& s) {
          return !s.parallelism.dynamic_cp || !s.model.mla.enabled() || s.parallelism.cp_method == CpMethod::all_gather;
        },
    .objection = [](const Scenario&) -> Objection {
      return {
          {"parallelism.cp_method", "parallelism.dynamic_cp", "model.mla"},
          "dynamic_cp with a ring of latents, whose keys are made once for each rank of a group; expected cp_method all-gather"};
    }};

constexpr Rule cp_divides_sequence{.sizes = Sizes::split,
                                   .holds = [](const Scenario& s) { return s.training.sequence % s.parallelism.cp == 0; },
                                   .objection = [](const Scenario& s) -> Objection {
                                     const std::int64_t cp = s.parallelism.cp;
                                     return {{"training.sequence", "parallelism.cp"},
                                             with_nearest(uneven_sequence(s) + named(Axis::cp, cp), cp, s.training.sequence)};
                                   }};

/// With sp, or where each tensor-parallel rank routes tokens to experts.
constexpr Rule tp_divides_sequence{
    .sizes = Sizes::split,
    .holds =
        [](const Scenario& s) {
          const ParallelismSpec& p = s.parallelism;
          return (!p.sp && s.model.moe.experts == 0) || s.training.sequence % (p.cp * p.tp) == 0;
        },
    .objection = [](const Scenario& s) -> Objection {
      const ParallelismSpec& p = s.parallelism;
      const std::int64_t unit = p.has_zigzag_chunks() ? std::lcm(2 * p.cp, p.cp * p.tp) : p.cp * p.tp;
      return {{"training.sequence", "parallelism.tp"},
              with_nearest(uneven_sequence(s) + (p.cp > 1 ? named(Axis::cp, p.cp) + " * " : "") + named(Axis::tp, p.tp) +
                               (p.sp ? ", which sp needs" : ", whose ranks each route a run of the tokens to the experts"),
                           unit, s.training.sequence)};
    }};

constexpr Rule tp_overlaps_collectives_of_sp{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return !s.overlaps_tp() || s.parallelism.sp; },
    .objection = [](const Scenario&) -> Objection {
      return {{"training.overlap.tp", "parallelism.sp"},
              "overlap.tp without sp, whose all-gathers and reduce-scatters are what runs beside the GEMMs; expected "
              "parallelism.sp true"};
    }};

// What Ulysses deals out: the heads of each tensor-parallel rank.

std::int64_t heads_of_rank(const Scenario& s) { return s.model.heads / s.parallelism.tp; }
std::int64_t kv_heads_of_rank(const Scenario& s) { return s.model.kv_heads * s.kv_replicas() / s.parallelism.tp; }

bool deals_out(const ParallelismSpec& p, std::int64_t heads) { return heads % p.heads_ranks() == 0; }

Objection undealt(const Scenario& s, std::int64_t heads, const std::string& field) {
  const ParallelismSpec& p = s.parallelism;
  const std::string ranks = p.cp_method == CpMethod::ulysses ? named(Axis::cp, p.cp) : named("cp_ulysses", p.cp_ulysses);
  return {
      {p.cp_method == CpMethod::ulysses ? "parallelism.cp" : "parallelism.cp_ulysses", "parallelism.cp_method", "model." + field},
      ranks + " does not divide the " + std::to_string(heads) + " " + field +
          " of a tensor-parallel rank, which ulysses deals out; nearest that do: " +
          joined(nearest_divisors(heads, p.heads_ranks()))};
}

constexpr Rule ulysses_and_ring_have_several_ranks{
    .sizes = Sizes::split,
    .holds =
        [](const Scenario& s) {
          const ParallelismSpec& p = s.parallelism;
          return p.cp == 1 || p.cp_method != CpMethod::ulysses_ring || (p.cp_ulysses < p.cp && p.cp % p.cp_ulysses == 0);
        },
    .objection = [](const Scenario& s) -> Objection {
      const ParallelismSpec& p = s.parallelism;
      return {{"parallelism.cp_ulysses", "parallelism.cp"},
              p.cp_ulysses >= p.cp ? named("cp_ulysses", p.cp_ulysses) + " leaves no ring of " + named(Axis::cp, p.cp) +
                                         ", expected less than cp, or cp_method ulysses"
                                   : named("cp_ulysses", p.cp_ulysses) + " does not divide " + named(Axis::cp, p.cp) +
                                         "; nearest that do: " + joined(nearest_divisors(p.cp, p.cp_ulysses))};
    }};

constexpr Rule ulysses_deals_out_heads{.sizes = Sizes::split,
                                       .holds = [](const Scenario& s) { return deals_out(s.parallelism, heads_of_rank(s)); },
                                       .objection = [](const Scenario& s) { return undealt(s, heads_of_rank(s), "heads"); }};

constexpr Rule ulysses_deals_out_kv_heads{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return deals_out(s.parallelism, kv_heads_of_rank(s)); },
    .objection = [](const Scenario& s) { return undealt(s, kv_heads_of_rank(s), "kv_heads"); }};

// What Mamba-2's layers deal out: heads and groups over tp, and the heads of each rank over cp, whose method matters to attention
// alone.

constexpr Rule tp_divides_mamba_heads{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return s.model.mamba.heads % s.parallelism.tp == 0; },
    .objection = [](const Scenario& s) { return undivided(s, s.model.mamba.heads, "mamba.heads"); }};

constexpr Rule tp_divides_mamba_groups{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return !s.model.mamba.enabled() || s.model.mamba.groups % s.parallelism.tp == 0; },
    .objection = [](const Scenario& s) { return undivided(s, s.model.mamba.groups, "mamba.groups"); }};

Objection undealt_to_cp(const Scenario& s, std::int64_t count, const std::string& field) {
  const std::int64_t cp = s.parallelism.cp;
  return {{"parallelism.cp", "model." + field},
          named(Axis::cp, cp) + " does not divide the " + std::to_string(count) + " " + field +
              " of a tensor-parallel rank; nearest that do: " + joined(nearest_divisors(count, cp))};
}

constexpr Rule cp_deals_out_mamba_heads{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return s.model.mamba.heads / s.parallelism.tp % s.parallelism.cp == 0; },
    .objection = [](const Scenario& s) { return undealt_to_cp(s, s.model.mamba.heads / s.parallelism.tp, "mamba.heads"); }};

/// Or several ranks have the same group.
constexpr Rule cp_deals_out_mamba_groups{
    .sizes = Sizes::split,
    .holds =
        [](const Scenario& s) {
          const std::int64_t cp = s.parallelism.cp, groups = s.model.mamba.groups / s.parallelism.tp;
          return !s.model.mamba.enabled() || groups == 0 || groups % cp == 0 || cp % groups == 0;
        },
    .objection = [](const Scenario& s) { return undealt_to_cp(s, s.model.mamba.groups / s.parallelism.tp, "mamba.groups"); }};

// The same of linear attention, whose key heads go with their value heads.

constexpr Rule tp_divides_key_heads{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return s.model.linear_attention.key_heads % s.parallelism.tp == 0; },
    .objection =
        [](const Scenario& s) { return undivided(s, s.model.linear_attention.key_heads, "linear_attention.key_heads"); }};

constexpr Rule cp_deals_out_key_heads{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return s.model.linear_attention.key_heads / s.parallelism.tp % s.parallelism.cp == 0; },
    .objection =
        [](const Scenario& s) {
          return undealt_to_cp(s, s.model.linear_attention.key_heads / s.parallelism.tp, "linear_attention.key_heads");
        }};

// Heads that share a key.

constexpr Rule tp_divides_output_groups{
    .sizes = Sizes::split,
    .holds =
        [](const Scenario& s) {
          return !s.model.compressed.enabled() || s.model.compressed.output_groups % s.parallelism.tp == 0;
        },
    .objection =
        [](const Scenario& s) { return undivided(s, s.model.compressed.output_groups, "compressed_attention.output_groups"); }};

constexpr Rule compressed_keys_are_gathered{
    .sizes = Sizes::split,
    .holds =
        [](const Scenario& s) {
          const ParallelismSpec& p = s.parallelism;
          return !s.model.compressed.enabled() || p.cp == 1 || p.cp_method == CpMethod::all_gather;
        },
    .objection = [](const Scenario& s) -> Objection {
      return {{"parallelism.cp_method", "model.compressed_attention"},
              "cp_method " + std::string(name_in(cp_method_names, s.parallelism.cp_method)) +
                  " with model.compressed_attention, whose keys are made of whole sequences; expected all-gather"};
    }};

// And of lightning attention.

constexpr Rule tp_divides_lightning_heads{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return s.model.lightning.heads % s.parallelism.tp == 0; },
    .objection = [](const Scenario& s) { return undivided(s, s.model.lightning.heads, "lightning_attention.heads"); }};

constexpr Rule cp_deals_out_lightning_heads{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return s.model.lightning.heads / s.parallelism.tp % s.parallelism.cp == 0; },
    .objection =
        [](const Scenario& s) {
          return undealt_to_cp(s, s.model.lightning.heads / s.parallelism.tp, "lightning_attention.heads");
        }};

constexpr Rule indexed_keys_are_gathered{
    .sizes = Sizes::split,
    .holds =
        [](const Scenario& s) {
          const ParallelismSpec& p = s.parallelism;
          return !s.model.indexer.enabled() || p.cp == 1 || p.cp_method == CpMethod::all_gather;
        },
    .objection = [](const Scenario& s) -> Objection {
      return {{"parallelism.cp_method", "model.indexer"},
              "cp_method " + std::string(name_in(cp_method_names, s.parallelism.cp_method)) +
                  " with model.indexer, whose queries choose among the keys of the whole sequence; expected all-gather"};
    }};

constexpr Rule tp_divides_encoder_heads{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return s.model.encoder.heads % s.parallelism.tp == 0; },
    .objection = [](const Scenario& s) { return undivided(s, s.model.encoder.heads, "encoder.heads"); }};

constexpr Rule tp_divides_encoder_ffn{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return s.model.encoder.ffn % s.parallelism.tp == 0; },
    .objection = [](const Scenario& s) { return undivided(s, s.model.encoder.ffn, "encoder.ffn"); }};

/// Every second product of a projector has its outputs shared out.
std::optional<Objection> find_undivided_projector(const Scenario& s) {
  const std::vector<std::int64_t>& widths = s.model.encoder.projector;
  for (std::size_t i = 0; i < widths.size(); i += 2)
    if (widths[i] % s.parallelism.tp != 0) return undivided(s, widths[i], "encoder.projector");
  return {};
}

constexpr Rule tp_divides_projector{.sizes = Sizes::split,
                                    .holds = [](const Scenario& s) { return !find_undivided_projector(s); },
                                    .objection = [](const Scenario& s) { return *find_undivided_projector(s); }};

/// Ranks of a sequence have whole images, or each a part of one, where rows of an image differ from each other.
std::optional<Objection> find_images_cut(const Scenario& s) {
  const EncoderSpec& e = s.model.encoder;
  const std::int64_t tp = s.parallelism.tp;
  if (!e.enabled() || !s.parallelism.sp || e.images % tp == 0) return {};
  if (e.class_token)
    return Objection{{"model.encoder.class_token", "model.encoder.images", "parallelism.tp"},
                     "encoder.class_token with sp needs images that " + named(Axis::tp, tp) +
                         " divides, as each rank appends it to " + "whole ones, not " + named("images", e.images) +
                         "; expected sp false, or other images"};
  if (e.learned_positions > 0 && tp % e.images != 0)
    return Objection{{"model.encoder.learned_positions", "model.encoder.images", "parallelism.tp"},
                     named("images", e.images) + " with encoder.learned_positions and sp leave ranks of " + named(Axis::tp, tp) +
                         " with parts of several; expected sp false, or images that divide tp or are divided by it"};
  return {};
}

constexpr Rule tp_shares_out_images{.sizes = Sizes::split,
                                    .holds = [](const Scenario& s) { return !find_images_cut(s); },
                                    .objection = [](const Scenario& s) { return *find_images_cut(s); }};

/// Ranks share out tokens of images, as the projector makes them.
constexpr Rule tp_divides_tokens_of_images{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return !s.parallelism.sp || s.model.encoder.tokens() % s.parallelism.tp == 0; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"model.encoder.patches", "parallelism.tp"},
              named(Axis::tp, s.parallelism.tp) + " with sp does not divide the " + std::to_string(s.model.encoder.tokens()) +
                  " tokens of a sequence's images; nearest that do: " +
                  joined(nearest_divisors(s.model.encoder.tokens(), s.parallelism.tp))};
    }};

constexpr Rule encoders_see_whole_sequences{
    .sizes = Sizes::split,
    .holds = [](const Scenario& s) { return !s.model.encoder.enabled() || s.parallelism.cp == 1; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"parallelism.cp", "model.encoder"},
              named(Axis::cp, s.parallelism.cp) +
                  " with model.encoder, whose images are not shared out over context-parallel ranks; expected " +
                  named(Axis::cp, 1)};
    }};

constexpr Rule rules_of_sharding[] = {indexed_keys_are_gathered,
                                      tp_divides_heads,
                                      tp_spreads_kv_heads,
                                      tp_divides_ffn,
                                      tp_divides_vocabulary,
                                      ulysses_has_whole_sequences,
                                      zigzag_divides_sequence,
                                      cp_divides_sequence,
                                      tp_divides_sequence,
                                      tp_overlaps_collectives_of_sp,
                                      document_chunks_are_of_documents,
                                      dynamic_groups_are_of_documents,
                                      dynamic_groups_pass_keys,
                                      dynamic_groups_halve,
                                      dynamic_groups_have_one_sequence,
                                      dynamic_groups_route_nothing,
                                      dynamic_rings_make_no_keys,
                                      ulysses_and_ring_have_several_ranks,
                                      ulysses_deals_out_heads,
                                      ulysses_deals_out_kv_heads,
                                      tp_divides_mamba_heads,
                                      tp_divides_mamba_groups,
                                      cp_deals_out_mamba_heads,
                                      cp_deals_out_mamba_groups,
                                      tp_divides_key_heads,
                                      cp_deals_out_key_heads,
                                      tp_divides_output_groups,
                                      compressed_keys_are_gathered,
                                      tp_divides_lightning_heads,
                                      cp_deals_out_lightning_heads,
                                      tp_divides_encoder_heads,
                                      tp_divides_encoder_ffn,
                                      tp_divides_projector,
                                      tp_divides_tokens_of_images,
                                      tp_shares_out_images,
                                      encoders_see_whole_sequences};

}  // namespace

std::span<const Rule> sharding_rules() { return rules_of_sharding; }

}  // namespace tandem::scenarios
