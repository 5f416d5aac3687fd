#include "runtime/ops/documents.h"

#include <algorithm>

#include "runtime/ops/attention_mask.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

/// Tokens of a document, one after the other.
struct TokenRun {
  std::int64_t first = 0, count = 0;
};

/// A sequence, or a run of one, that holds documents in parts.
struct DocumentRun {
  std::int64_t first = 0, length = 0, parts = 1;  ///< its first position, through all sequences
};

/// A document of one sequence: where its tokens are.
class DocumentParts {
 public:
  /// `start` is counted from that of the run, `begin` is where the run begins in its sequence.
  DocumentParts(const DocumentRun& run, std::int64_t begin, std::int64_t start, std::int64_t length)
      : run_(run.length / run.parts), parts_(run.parts), length_(length / parts_), offset_(start / parts_), begin_(begin) {
    expect_shapes(start % parts_ == 0 && length % parts_ == 0 && length > 0, "documents have equal parts");
  }

  /// Appends those of its tokens that lie at `count` positions, from `first` on.
  void add_tokens(std::int64_t first, std::int64_t count, std::vector<TokenRun>& tokens) const {
    const std::int64_t end = first + count - begin_;
    first = std::max<std::int64_t>(first - begin_, 0);
    for (std::int64_t part = first / run_; part < parts_ && part * run_ < end; ++part) {
      const std::int64_t at = part * run_ + offset_;
      const std::int64_t from = std::max(first, at), to = std::min(end, at + length_);
      if (from >= to) continue;
      const TokenRun run{part * length_ + from - at, to - from};
      if (!tokens.empty() && tokens.back().first + tokens.back().count == run.first)
        tokens.back().count += run.count;
      else
        tokens.push_back(run);
    }
  }

  std::vector<TokenRun> tokens_at(const Positions& positions) const {
    std::vector<TokenRun> tokens;
    for (std::size_t i = 0; i < positions.start.size(); ++i) add_tokens(positions.start[i], positions.length[i], tokens);
    return tokens;
  }

  /// Calls visit(position, token) for each.
  template <typename Visit>
  void for_each_token(const Visit& visit) const {
    for (std::int64_t token = 0; token < length_ * parts_; ++token)
      visit(begin_ + token / length_ * run_ + offset_ + token % length_, token);
  }

 private:
  std::int64_t run_, parts_, length_, offset_, begin_;
};

/// The runs of all sequences, in order.
std::vector<DocumentRun> runs_of(const Documents& documents, std::int64_t sequences) {
  std::vector<DocumentRun> runs;
  const std::int64_t length = documents.sequence, all = sequences * length;
  if (documents.runs.empty())
    for (std::int64_t i = 0; i < sequences; ++i) runs.push_back({i * length, length, documents.parts});
  for (std::size_t i = 0; i < documents.runs.size(); ++i) {
    const std::int64_t end = i + 1 < documents.runs.size() ? documents.runs[i + 1] : all;
    runs.push_back({documents.runs[i], end - documents.runs[i], documents.run_parts[i]});
  }
  for (const DocumentRun& run : runs) expect_shapes(run.parts > 0 && run.length % run.parts == 0, "sequences have equal parts");
  return runs;
}

/// Calls visit(sequence, number of the document, its parts) for all documents, in order.
template <typename Visit>
void for_each_document(const Documents& documents, std::int64_t sequences, const Visit& visit) {
  const std::vector<std::int64_t>& starts = documents.starts;
  const std::vector<DocumentRun> runs = runs_of(documents, sequences);
  auto run = runs.begin();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t start = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : sequences * documents.sequence;
    while (run + 1 != runs.end() && (run + 1)->first <= start) ++run;
    expect_shapes(start < end && end <= run->first + run->length && (i > 0 || start == 0),
                  "documents begin one after the other, one of them with each sequence");
    const std::int64_t sequence = start / documents.sequence;
    visit(sequence, static_cast<std::int32_t>(i),
          DocumentParts(*run, run->first - sequence * documents.sequence, start - run->first, end - start));
  }
}

std::int64_t count_of(const std::vector<TokenRun>& runs) {
  std::int64_t count = 0;
  for (const TokenRun& run : runs) count += run.count;
  return count;
}

}  // namespace

std::vector<DocumentPlace> places_of(const Documents& documents, const Positions& positions, std::int64_t sequences) {
  const std::int32_t count = positions.count();
  std::vector<DocumentPlace> places;
  places.reserve(static_cast<std::size_t>(sequences * count));
  if (documents.starts.empty()) {
    for (std::int64_t sequence = 0; sequence < sequences; ++sequence)
      for (std::int32_t i = 0; i < count; ++i) places.push_back({static_cast<std::int32_t>(sequence), positions.at(i)});
    return places;
  }
  std::vector<DocumentPlace> whole(static_cast<std::size_t>(sequences * documents.sequence));
  for_each_document(documents, sequences, [&](std::int64_t sequence, std::int32_t document, const DocumentParts& parts) {
    parts.for_each_token([&](std::int64_t position, std::int64_t token) {
      whole[static_cast<std::size_t>(sequence * documents.sequence + position)] = {document, static_cast<std::int32_t>(token)};
    });
  });
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence)
    for (std::int32_t i = 0; i < count; ++i)
      places.push_back(whole[static_cast<std::size_t>(sequence * documents.sequence + positions.at(i))]);
  return places;
}

std::vector<OrderedToken> ordered_tokens(const Documents& documents, std::int64_t length, std::int64_t sequences) {
  std::vector<OrderedToken> tokens;
  if (documents.starts.empty()) return tokens;
  expect_shapes(length == documents.sequence, "documents lie in whole sequences");
  tokens.reserve(static_cast<std::size_t>(sequences * length));
  for_each_document(documents, sequences, [&](std::int64_t, std::int32_t, const DocumentParts& parts) {
    parts.for_each_token([&](std::int64_t position, std::int64_t token) {
      tokens.push_back({static_cast<std::int32_t>(position), static_cast<std::int32_t>(token)});
    });
  });
  return tokens;
}

std::vector<DocumentBlock> document_blocks(const AttentionAttributes& attributes, std::int64_t sequences) {
  std::vector<DocumentBlock> blocks;
  for_each_document(attributes.documents, sequences, [&](std::int64_t, std::int32_t, const DocumentParts& parts) {
    const std::vector<TokenRun> queries = parts.tokens_at(attributes.queries), keys = parts.tokens_at(attributes.keys);
    DocumentBlock block{.queries = count_of(queries), .keys = count_of(keys)};
    for (const TokenRun& q : queries)
      for (const TokenRun& k : keys) block.pairs += seen_pairs_of_runs(attributes, q.first, q.count, k.first, k.count);
    if (block.pairs > 0) blocks.push_back(block);
  });
  return blocks;
}

}  // namespace tandem
