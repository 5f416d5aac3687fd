#pragma once

#include <map>
#include <utility>
#include <vector>

#include "runtime/ops/attributes.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// A document, or the part of one that is in a sequence.
struct PackedDocument {
  std::int64_t tokens = 0;   ///< padding included
  std::int64_t padding = 0;  ///< of these
  std::int64_t ranks = 0;    ///< context-parallel ones that share it, under dynamic context parallelism
};

/// Context-parallel ranks that share documents of a sequence under dynamic context parallelism: neighbours, a power of two of
/// them, the first of which is a multiple of their number.
struct ContextGroup {
  std::int64_t first = 0, ranks = 1;
};

/// Draws the documents of a scenario's sequences and packs them, sequence by sequence. The same ones for the same scenario,
/// whatever is asked for first.
///
/// The i-th document of a stream is a function of seed, stream and i: one of `lengths`, by their shares; or exp(ln(mean) -
/// sigma^2 / 2
/// + sigma z) tokens with z normally distributed, so that the mean over all is `mean`, and at most `longest`. Each is padded to a
/// multiple of `Scenario::document_parts`, as Megatron-Core pads what it packs to 2 cp
/// (megatron/training/datasets/sft_dataset.py). Where they are not cut, the padding at the end of a sequence belongs to its last
/// document, as there.
///
/// Packing by best fit is that of Ding et al. 2024 (arXiv 2404.10830), on as many documents as a stream's sequences of a step
/// hold tokens: what is left over is among the next step's. Sequences come in the order of their first documents.
///
/// Under dynamic context parallelism (`parallelism.dynamic_cp`), a rank holds sequence / cp tokens of each micro-batch, and a
/// document needs the smallest power of two of ranks that holds it, padded to as many times two. Longest first, a document goes
/// to the fullest group of that size that holds it, else to a new one among ranks that are free, else to the fullest larger one.
/// Groups of a sequence lie where the ranks have had least work so far, the heaviest first.
///
/// Balanced by attention, the sequences of all streams in a step are dealt out twice, heaviest first, each to where the sum is
/// least so far (Graham 1969): into micro-batches, and these to streams, which run them in that order.
class PackedDocuments {
 public:
  explicit PackedDocuments(const Scenario& scenario);

  /// Those of a sequence, by its number among all steps; its length is that of their tokens. A sequence of a step is the
  /// (number of its replica's sequences before it)-th of the replica's stream.
  const std::vector<PackedDocument>& of_sequence(std::int64_t number);

  /// Those of `count` sequences from `first` on, as attributes. Empty where each sequence is one document.
  Documents of_sequences(std::int64_t first, std::int64_t count);

  /// Under dynamic context parallelism: the group that a context-parallel rank belongs to for a sequence, and its documents as
  /// attributes, of the group's positions alone. Empty where it has one.
  ContextGroup group_of(std::int64_t number, std::int64_t cp_rank);
  Documents of_group(std::int64_t number, const ContextGroup& group);

 private:
  using Sequence = std::vector<PackedDocument>;
  struct Stream {
    std::int64_t documents = 0;           ///< drawn so far
    PackedDocument rest;                  ///< of the last one, not packed yet
    std::vector<PackedDocument> waiting;  ///< pieces drawn and not packed yet, by best fit
    std::vector<Sequence> sequences;
  };
  /// A sequence of a step: its stream, and the how-many-th of that.
  using Dealt = std::pair<std::int64_t, std::int64_t>;

  DocumentsSpec spec_;
  std::int64_t sequence_, parts_, batch_, run_, micro_batch_;
  std::int64_t dynamic_ranks_;  ///< 0: context parallelism is not dynamic
  std::vector<double> until_;   ///< shares of lengths up to each, added up
  std::map<std::int64_t, Stream> streams_;
  std::map<std::int64_t, std::vector<Dealt>> dealt_;  ///< by step: the sequences of each stream, one stream after the other

  PackedDocument draw(std::int64_t stream, std::int64_t document) const;
  void pack_next(std::int64_t number, Stream& stream) const;
  std::int64_t tokens_of_rank() const { return sequence_ / dynamic_ranks_; }
  void draw_for_step(std::int64_t number, Stream& stream) const;
  void pack_step_by_best_fit(std::int64_t number, Stream& stream) const;
  void pack_step_into_groups(std::int64_t number, Stream& stream) const;
  const Sequence& of_stream(std::int64_t number, std::int64_t index);
  const std::vector<Dealt>& dealt_in(std::int64_t step);
};

/// What the sequences of a step are packed of.
struct DocumentTotals {
  std::map<std::int64_t, std::int64_t> of_length = {};  ///< documents, by tokens, padding included
  std::int64_t padding = 0;                             ///< tokens
  std::map<std::int64_t, std::int64_t> unpadded = {};   ///< documents, by tokens without padding
  // pairs of positions of one document, over the mean
  double heaviest_micro_batch = 1;
  double heaviest_replica = 1;
  double heaviest_rank = 1;  ///< pairs of a context-parallel rank under dynamic context parallelism, over the mean of all
  double mean_ranks = 1;     ///< context-parallel ranks that share a token's document; 1 where they are not dynamic

  std::int64_t documents() const;
  std::int64_t tokens() const;
  std::int64_t longest() const { return of_length.rbegin()->first; }
  /// Pairs of positions of one document, of those of one sequence.
  double attention_share(std::int64_t sequence) const;
};

/// Returns those of the first step. Each sequence is one document where the scenario names none.
DocumentTotals document_totals(const Scenario& scenario);

}  // namespace tandem::scenarios
