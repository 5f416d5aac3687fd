#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ops/attributes.h"

namespace tandem {

/// What a position of a sequence holds: which of the micro-batch's documents, and which of its tokens.
struct DocumentPlace {
  std::int32_t document = 0, token = 0;
};

/// Returns what the positions hold, of one sequence after the other: [sequences][positions.count()]. Without documents, each
/// sequence is one.
std::vector<DocumentPlace> places_of(const Documents& documents, const Positions& positions, std::int64_t sequences);

/// The queries and keys that a block of attention has of one document, and how many pairs of them see each other.
struct DocumentBlock {
  std::int64_t queries = 0, keys = 0, pairs = 0;
  auto operator<=>(const DocumentBlock&) const = default;
};

/// Returns the block's share of each document that has queries which see keys, in the order of the documents of `sequences`
/// sequences. `attributes` has documents, and a position for each query and key. Closed form over the runs of positions.
std::vector<DocumentBlock> document_blocks(const AttentionAttributes& attributes, std::int64_t sequences);

}  // namespace tandem
