#include <spdlog/fmt/fmt.h>

#include "runtime/base/divide_up.h"
#include "scenarios/spec/names.h"
#include "studies/lint/rules.h"

namespace tandem::studies {
/// Megatron-LM pads to a multiple of --make-vocab-size-divisible-by 128 * tp, so that every rank's part of the table makes whole
/// tiles.
void vocabulary_padding(LintContext& context) {
  const std::int64_t vocab = context.scenario.model.vocab, tp = context.scenario.parallelism.tp;
  const std::int64_t unit = 128 * tp;
  if (vocab % unit == 0) return;
  Finding& found = context.find(
      vocab / tp % 8 == 0 ? Severity::advice : Severity::warning, "vocabulary-padding", {"model.vocab", "parallelism.tp"},
      fmt::format("vocab {} is not a multiple of 128 * {}: each rank's {} columns of logits leave part of a tile empty; padded "
                  "it is {}",
                  vocab, named(Axis::tp, tp), vocab / tp, round_up(vocab, unit)));
  found.fix = {fmt::format("model.vocab={}", round_up(vocab, unit))};
}

/// Tensor cores take operands whose rows are multiples of 16 bytes at full speed, and tiles of 64 or 128 rows and columns fill up
/// only with multiples of that (NVIDIA, "Matrix Multiplication Background", sections 3 and 4).
void uneven_products(LintContext& context) {
  const ModelSpec& model = context.scenario.model;
  const ParallelismSpec& p = context.scenario.parallelism;
  struct Width {
    const char* field;
    std::int64_t full, shards;
    bool may_grow;  ///< without another meaning than more parameters
  };
  const Width widths[] = {
      {"model.hidden", model.hidden, 1, false},
      {"model.ffn", model.ffn, p.tp, true},
      {"model.heads", model.mla.enabled() ? model.heads * model.mla.v_dim : model.heads * model.head_dim, p.tp, false},
      {"model.moe.ffn", model.moe.experts > 0 ? model.moe.ffn : 0, p.etp, true}};
  for (const Width& width : widths) {
    const std::int64_t own = width.full / width.shards;
    if (own == 0 || own % 64 == 0) continue;
    const std::string what =
        width.shards == 1 ? fmt::format("{}", own) : fmt::format("{} / {} = {}", width.full, width.shards, own);
    Finding& found = context.find(
        own % 8 == 0 ? Severity::advice : Severity::warning, "uneven-products", {width.field, "parallelism.tp"},
        fmt::format("{} makes products of width {}, no multiple of 64: tiles stay part empty{}", width.field, what,
                    own % 8 == 0 ? "" : ", and rows of less than 16 bytes' alignment keep tensor cores from full speed"));
    if (width.may_grow) found.fix = {fmt::format("{}={}", width.field, round_up(own, 128) * width.shards)};
  }
}

/// Narayanan et al. 2021 (arXiv 2104.04473, section 3.2): finely cut products use the GPU badly, beside the communication.
void thin_shards(LintContext& context) {
  const Scenario& s = context.scenario;
  const ParallelismSpec& p = s.parallelism;
  constexpr std::int64_t wide_enough = 1024;
  if (p.tp == 1 || s.model.ffn / p.tp >= wide_enough) return;
  Finding& found = context.find(Severity::advice, "thin-shards", {"parallelism.tp", "model.ffn"},
                                fmt::format("{} leaves products of width {}, too small to fill a GPU; expected {} or more",
                                            named(Axis::tp, p.tp), s.model.ffn / p.tp, wide_enough));
  if (p.tp % 2 == 0) found.fix = {fmt::format("parallelism.tp={}", p.tp / 2), "parallelism.dp="};
  found.only_if_faster = true;
}

}  // namespace tandem::studies
