#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/host_device.h"
#include "runtime/ops/attributes.h"

namespace tandem {

/// What a position of a sequence holds: which of the micro-batch's documents, and which of its tokens.
struct DocumentPlace {
  std::int32_t document = 0, token = 0;
};

/// Returns what the positions hold, of one sequence after the other: [sequences][positions.count()]. Without documents, each
/// sequence is one.
std::vector<DocumentPlace> places_of(const Documents& documents, const Positions& positions, std::int64_t sequences);

/// A token in the order of its sequence's documents: the position that holds it, and how many of its document are before it.
struct OrderedToken {
  std::int32_t position = 0, before = 0;
};

/// Returns the tokens of one sequence after the other, each document's one after the other: [sequences][length]. Empty where
/// each sequence is one document.
std::vector<OrderedToken> ordered_tokens(const Documents& documents, std::int64_t length, std::int64_t sequences);

/// The same for kernels that pass a state from token to token; for host and device kernels alike.
struct TokenOrder {
  const OrderedToken* tokens = nullptr;  ///< null: each sequence is one document
  std::int64_t length = 0;               ///< of a sequence

  TANDEM_HOST_DEVICE std::int64_t position(std::int64_t sequence, std::int64_t token) const {
    return tokens == nullptr ? token : tokens[sequence * length + token].position;
  }
  TANDEM_HOST_DEVICE std::int64_t before(std::int64_t sequence, std::int64_t token) const {
    return tokens == nullptr ? token : tokens[sequence * length + token].before;
  }
  /// Whether the document of `token` has the token `back` tokens before it.
  TANDEM_HOST_DEVICE bool reaches_back(std::int64_t sequence, std::int64_t token, std::int64_t back) const {
    return back <= before(sequence, token);
  }
};

/// The order of a host kernel.
class HostTokenOrder {
 public:
  HostTokenOrder(const Documents& documents, std::int64_t length, std::int64_t sequences)
      : tokens_(ordered_tokens(documents, length, sequences)), length_(length) {}
  TokenOrder get() const { return {tokens_.empty() ? nullptr : tokens_.data(), length_}; }

 private:
  std::vector<OrderedToken> tokens_;
  std::int64_t length_;
};

/// The queries and keys that a block of attention has of one document, and how many pairs of them see each other.
struct DocumentBlock {
  std::int64_t queries = 0, keys = 0, pairs = 0;
  auto operator<=>(const DocumentBlock&) const = default;
};

/// Returns the block's share of each document that has queries which see keys, in the order of the documents of `sequences`
/// sequences. `attributes` has documents, and a position for each query and key. Closed form over the runs of positions.
std::vector<DocumentBlock> document_blocks(const AttentionAttributes& attributes, std::int64_t sequences);

}  // namespace tandem
