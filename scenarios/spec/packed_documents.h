#pragma once

#include <map>
#include <vector>

#include "runtime/ops/attributes.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// A document, or the part of one that is in a sequence.
struct PackedDocument {
  std::int64_t tokens = 0;   ///< padding included
  std::int64_t padding = 0;  ///< of these
};

/// Draws the documents of a scenario's sequences and packs them, sequence by sequence. The same ones for the same scenario,
/// whatever is asked for first.
///
/// The i-th document of a stream is a function of seed, stream and i: one of `lengths`, by their shares; or exp(ln(mean) -
/// sigma^2 / 2
/// + sigma z) tokens with z normally distributed, so that the mean over all is `mean`, and at most `longest`. Each is padded to a
/// multiple of `Scenario::document_parts`, as Megatron-Core pads what it packs to 2 cp
/// (megatron/training/datasets/sft_dataset.py). Where they are packed whole, the padding at the end of a sequence belongs to its
/// last document, as there.
class PackedDocuments {
 public:
  explicit PackedDocuments(const Scenario& scenario);

  /// Those of a sequence, by its number among all steps; its length is that of their tokens. A sequence of a step is the
  /// (number of its replica's sequences before it)-th of the replica's stream.
  const std::vector<PackedDocument>& of_sequence(std::int64_t number);

  /// Those of `count` sequences from `first` on, as attributes. Empty where each sequence is one document.
  Documents of_sequences(std::int64_t first, std::int64_t count);

 private:
  struct Stream {
    std::int64_t documents = 0;  ///< drawn so far
    PackedDocument rest;         ///< of the last one, not packed yet
    std::vector<std::vector<PackedDocument>> sequences;
  };

  DocumentsSpec spec_;
  std::int64_t sequence_, parts_, batch_, run_;
  std::vector<double> until_;  ///< shares of lengths up to each, added up
  std::map<std::int64_t, Stream> streams_;

  PackedDocument draw(std::int64_t stream, std::int64_t document) const;
  void pack_next(std::int64_t number, Stream& stream) const;
};

/// What the sequences of a step are packed of.
struct DocumentTotals {
  std::map<std::int64_t, std::int64_t> of_length = {};  ///< documents, by tokens, padding included
  std::int64_t padding = 0;                             ///< tokens
  // pairs of positions of one document, over the mean
  double heaviest_micro_batch = 1;
  double heaviest_replica = 1;

  std::int64_t documents() const;
  std::int64_t tokens() const;
  std::int64_t longest() const { return of_length.rbegin()->first; }
  /// Pairs of positions of one document, of those of one sequence.
  double attention_share(std::int64_t sequence) const;
};

/// Returns those of the first step. Each sequence is one document where the scenario names none.
DocumentTotals document_totals(const Scenario& scenario);

}  // namespace tandem::scenarios
