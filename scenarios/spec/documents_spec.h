#pragma once

#include <cstdint>
#include <vector>

namespace tandem::scenarios {

/// How documents fill sequences.
enum class Packing : std::uint8_t {
  cut,      ///< one after the other; what does not fit goes on in the next sequence, as a document of its own
  whole,    ///< what does not fit begins the next sequence, and the last one is padded; longer ones than a sequence are cut off
  best_fit  ///< those of a step, longest first, each into the fullest sequence that holds it; longer ones than a sequence are
            ///< split
};

/// Which sequences a data-parallel replica reads of those that its stream has in a step.
enum class DocumentBalance : std::uint8_t {
  none,      ///< its own
  attention  ///< such that micro-batches and replicas have about equally many pairs of positions of one document
};

/// The documents that sequences are packed of. Attention goes no further than a document.
struct DocumentsSpec {
  std::vector<std::int64_t> lengths = {};  ///< tokens, one of which each document has
  std::vector<double> shares = {};         ///< of documents that have it, by length, in any unit; empty: equal
  double mean = 0;                         ///< tokens, of a lognormal distribution; 0: lengths are those of `lengths`
  double sigma = 0;                        ///< standard deviation of the logarithm of a length
  std::int64_t longest = 0;                ///< longer ones are cut off; 0: none is
  Packing packing = Packing::cut;
  DocumentBalance balance = DocumentBalance::none;  ///< among the sequences of all streams
  std::int64_t streams = 1;  ///< data-parallel replica r reads documents of stream r % streams; those of a stream are the same
  std::uint64_t seed = 1;

  /// Else each sequence is one document.
  bool any() const { return mean > 0 || !lengths.empty(); }

  /// In the unsharded reference, whose sequences are those of the sharded step; derived from the mesh elsewhere.
  struct Reference {
    std::int64_t batch = 0;  ///< sequences of a step
    std::int64_t run = 0;    ///< of these, those of one replica
    std::int64_t parts = 0;
    std::int64_t dynamic_ranks = 0;  ///< context-parallel ranks that dynamic groups are of
  } reference;
};

}  // namespace tandem::scenarios
