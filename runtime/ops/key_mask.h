#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ops/attention_mask.h"
#include "runtime/ops/documents.h"

namespace tandem {

/// Which keys the queries of a micro-batch's sequences see, on the host.
class KeyMask {
 public:
  KeyMask(const AttentionAttributes& attributes, std::int64_t queries, std::int64_t keys, std::int64_t sequences)
      : mask_(mask_of(attributes)), queries_(queries), keys_(keys) {
    if (!attributes.causal && attributes.documents.starts.empty()) return;
    of_queries_ = places_of(attributes.documents, attributes.queries, sequences);
    of_keys_ = places_of(attributes.documents, attributes.keys, sequences);
  }

  bool sees(std::int64_t sequence, std::int64_t query, std::int64_t key) const {
    if (of_queries_.empty()) return true;
    const DocumentPlace& q = of_queries_[static_cast<std::size_t>(sequence * queries_ + query)];
    const DocumentPlace& k = of_keys_[static_cast<std::size_t>(sequence * keys_ + key)];
    return q.document == k.document && mask_.sees(q.token, k.token);
  }

  /// value(key) for each key that the query sees, `hidden` for the others.
  template <typename Value>
  void fill_row(float* row, std::int64_t sequence, std::int64_t query, float hidden, Value value) const {
    for (std::int64_t key = 0; key < keys_; ++key) row[key] = sees(sequence, query, key) ? value(key) : hidden;
  }

 private:
  AttentionMask mask_;
  std::int64_t queries_, keys_;
  std::vector<DocumentPlace> of_queries_, of_keys_;  ///< empty: all see all
};

}  // namespace tandem
