#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "runtime/ops/attention.h"
#include "runtime/ops/attention_mask.h"
#include "runtime/ops/documents.h"
#include "tests/runtime/ops_support.h"

namespace tandem::ops_documents_test {
namespace {

Positions run_of(std::int32_t first, std::int32_t count) { return {.start = {first, 0}, .length = {count, 0}}; }

/// Documents of random lengths, multiples of `parts`, in so many sequences.
Documents random_documents(std::mt19937& random, std::int32_t sequence, std::int32_t parts, std::int64_t sequences) {
  Documents documents{.sequence = sequence, .parts = parts};
  for (std::int64_t i = 0; i < sequences; ++i) {
    for (std::int64_t at = 0; at < sequence;) {
      documents.starts.push_back(i * sequence + at);
      at += parts * (1 + static_cast<std::int64_t>(random() % 6));
    }
  }
  return documents;
}

/// What a position holds, by the definition.
DocumentPlace place_of(const Documents& documents, std::int64_t sequences, std::int64_t sequence, std::int64_t position) {
  const std::int64_t run = documents.sequence / documents.parts, part = position / run;
  for (std::size_t i = 0; i < documents.starts.size(); ++i) {
    const std::int64_t start = documents.starts[i] - sequence * documents.sequence;
    const std::int64_t end = (i + 1 < documents.starts.size() ? documents.starts[i + 1] : sequences * documents.sequence) -
                             sequence * documents.sequence;
    const std::int64_t width = (end - start) / documents.parts, in_run = position % run - start / documents.parts;
    if (start < 0 || start >= documents.sequence || in_run < 0 || in_run >= width) continue;
    return {static_cast<std::int32_t>(i), static_cast<std::int32_t>(part * width + in_run)};
  }
  ADD_FAILURE() << "position " << position << " holds nothing";
  return {};
}

/// One run, or two, of a sequence.
Positions random_positions(std::mt19937& random, std::int32_t sequence) {
  const auto below = [&](std::int32_t n) { return static_cast<std::int32_t>(random() % static_cast<unsigned>(n)); };
  const std::int32_t middle = below(sequence), first = below(middle + 1), second = middle + below(sequence - middle);
  Positions positions{.start = {first, second}, .length = {below(middle - first + 1), 1 + below(sequence - second)}};
  return positions;
}

TEST(DocumentsOfSequences, HoldTheTokensOfTheDefinition) {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const std::int32_t parts = 1 + static_cast<std::int32_t>(random() % 6), sequence = 24 * parts;
    const Documents documents = random_documents(random, sequence, parts, 3);
    const Positions positions = random_positions(random, sequence);
    const std::vector<DocumentPlace> places = places_of(documents, positions, 3);
    ASSERT_EQ(places.size(), static_cast<std::size_t>(3 * positions.count()));
    for (std::int32_t b = 0; b < 3; ++b) {
      for (std::int32_t p = 0; p < positions.count(); ++p) {
        const DocumentPlace expected = place_of(documents, 3, b, positions.at(p));
        const DocumentPlace found = places[b * positions.count() + p];
        ASSERT_EQ(found.document, expected.document);
        ASSERT_EQ(found.token, expected.token);
      }
    }
  }
}

TEST(DocumentsOfSequences, BlocksAreThePairsOfTheDefinition) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const std::int32_t parts = 1 + static_cast<std::int32_t>(random() % 6), sequence = 24 * parts;
    const AttentionAttributes attributes{.causal = random() % 4 != 0,
                                         .queries = random_positions(random, sequence),
                                         .keys = random_positions(random, sequence),
                                         .window = random() % 3 == 0 ? 5 : 0,
                                         .chunk = random() % 3 == 0 ? 7 : 0,
                                         .documents = random_documents(random, sequence, parts, 2)};
    const std::vector<DocumentPlace> queries = places_of(attributes.documents, attributes.queries, 2);
    const std::vector<DocumentPlace> keys = places_of(attributes.documents, attributes.keys, 2);
    std::vector<DocumentBlock> expected(attributes.documents.starts.size());
    const AttentionMask mask = mask_of(attributes);
    for (const DocumentPlace& q : queries) ++expected[static_cast<std::size_t>(q.document)].queries;
    for (const DocumentPlace& k : keys) ++expected[static_cast<std::size_t>(k.document)].keys;
    for (const DocumentPlace& q : queries)
      for (const DocumentPlace& k : keys)
        if (q.document == k.document && mask.sees(q.token, k.token)) ++expected[static_cast<std::size_t>(q.document)].pairs;
    std::erase_if(expected, [](const DocumentBlock& block) { return block.pairs == 0; });
    ASSERT_TRUE(document_blocks(attributes, 2) == expected) << i;
    std::int64_t pairs = 0;
    for (const DocumentBlock& block : expected) pairs += block.pairs;
    ASSERT_EQ(seen_pairs_of_batch(attributes, attributes.queries.count(), attributes.keys.count(), 2), pairs);
  }
}

// Zigzag chunks of documents: every rank has the same pairs of each document, and so has every pair of ranks.
TEST(DocumentsOfSequences, ZigzagChunksOfDocumentsAreEqualWork) {
  std::mt19937 random(11);
  for (const std::int32_t cp : {2, 3, 4, 8}) {
    const std::int32_t chunk = 12, sequence = 2 * cp * chunk;
    const Documents documents = random_documents(random, sequence, 2 * cp, 2);
    const auto held = [&](std::int32_t rank) {
      return Positions{.start = {rank * chunk, (2 * cp - 1 - rank) * chunk}, .length = {chunk, chunk}};
    };
    const auto blocks = [&](std::int32_t queries, std::int32_t keys) {
      return document_blocks({.queries = held(queries), .keys = held(keys), .documents = documents}, 2);
    };
    for (std::int32_t rank = 0; rank < cp; ++rank) {
      EXPECT_TRUE(blocks(rank, rank) == blocks(0, 0));
      for (std::int32_t other = 0; other < cp; ++other) {
        if (other == rank) continue;
        EXPECT_TRUE(blocks(rank, other) == blocks(0, 1)) << rank << " " << other;
      }
    }
  }
}

TEST(DocumentsOfSequences, RefuseWhatOverlapsOrDoesNotDivide) {
  const auto refused = [](const Documents& documents) {
    return [documents] { document_blocks({.queries = run_of(0, 8), .keys = run_of(0, 8), .documents = documents}, 1); };
  };
  EXPECT_THROW(refused({.sequence = 8, .starts = {0, 5, 5}})(), std::logic_error);
  EXPECT_THROW(refused({.sequence = 8, .starts = {2}})(), std::logic_error);
  EXPECT_THROW(refused({.sequence = 8, .parts = 2, .starts = {0, 3}})(), std::logic_error);
  EXPECT_THROW(refused({.sequence = 8, .parts = 3, .starts = {0}})(), std::logic_error);
  EXPECT_NO_THROW(refused({.sequence = 8, .parts = 2, .starts = {0, 6}})());
}

constexpr std::int64_t heads = 2, width = 4;

struct Attended {
  Tensor out, dq, dk, dv;
};

Attended attend(const AttentionAttributes& attributes, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dout) {
  Tensor tq = q, tk = k, tv = v, td = dout;
  const Shape s = q.shape;
  Attended attended{Tensor(s), Tensor(s), Tensor(s), Tensor(s)};
  Tensor lse(Shape(s[1], heads, s[0], 1));
  run(OpKind::attention, attributes, {tq.host(), tk.host(), tv.host(), attended.out.host(), lse.host()});
  run(OpKind::attention_backward, attributes,
      {tq.host(), tk.host(), tv.host(), attended.out.host(), lse.host(), td.host(), attended.dq.host(), attended.dk.host(),
       attended.dv.host()});
  return attended;
}

/// Rows [positions, 1, heads, width] at these places of [positions, b, heads, width].
Tensor rows_at(const Tensor& tensor, const std::vector<std::pair<std::int64_t, std::int64_t>>& places) {
  Tensor rows(Shape(static_cast<std::int64_t>(places.size()), 1, heads, width));
  const std::int64_t row = heads * width;
  for (std::size_t i = 0; i < places.size(); ++i)
    for (std::int64_t e = 0; e < row; ++e)
      rows.values[i * static_cast<std::size_t>(row) + static_cast<std::size_t>(e)] =
          tensor[(places[i].first * tensor.shape[1] + places[i].second) * row + e];
  return rows;
}

// Packed together, documents give what each gives alone, in whatever order their tokens lie.
TEST(DocumentsOfSequences, AttendAsIfEachWereAlone) {
  std::mt19937 random(3);
  for (const std::int32_t parts : {1, 2, 4}) {
    const std::int32_t sequence = 12 * parts;
    const Documents documents = random_documents(random, sequence, parts, 2);
    const Positions whole = run_of(0, sequence);
    const Shape shape(sequence, 2, heads, width);
    const Tensor q = random_tensor(shape, 1), k = random_tensor(shape, 2), v = random_tensor(shape, 3),
                 d = random_tensor(shape, 4);
    AttentionAttributes attributes{.scale = 0.5F, .queries = whole, .keys = whole, .window = 5, .documents = documents};
    const Attended packed = attend(attributes, q, k, v, d);
    const std::vector<DocumentPlace> places = places_of(documents, whole, 2);
    for (std::size_t document = 0; document < documents.starts.size(); ++document) {
      std::vector<std::pair<std::int64_t, std::int64_t>> rows(static_cast<std::size_t>(sequence), {-1, -1});
      std::size_t tokens = 0;
      for (std::size_t i = 0; i < places.size(); ++i) {
        if (places[i].document != static_cast<std::int32_t>(document)) continue;
        rows[static_cast<std::size_t>(places[i].token)] = {i % static_cast<std::size_t>(sequence),
                                                           i / static_cast<std::size_t>(sequence)};
        ++tokens;
      }
      rows.resize(tokens);
      const Positions own = run_of(0, static_cast<std::int32_t>(tokens));
      const Attended alone = attend({.scale = 0.5F, .queries = own, .keys = own, .window = 5}, rows_at(q, rows), rows_at(k, rows),
                                    rows_at(v, rows), rows_at(d, rows));
      const auto same = [&](const Tensor& of_all, const Tensor& of_one) {
        const Tensor found = rows_at(of_all, rows);
        for (std::size_t i = 0; i < found.values.size(); ++i) ASSERT_NEAR(found.values[i], of_one.values[i], 2e-6);
      };
      same(packed.out, alone.out);
      same(packed.dq, alone.dq);
      same(packed.dk, alone.dk);
      same(packed.dv, alone.dv);
    }
  }
}

// Each document counts its positions from 0: those of a sequence of two turn as two short sequences do.
TEST(DocumentsOfSequences, RotateFromTheirStarts) {
  const std::int32_t length = 6;
  const Documents two{.sequence = 2 * length, .starts = {0, length}};
  const SplitHeadsAttributes packed{.heads = 2, .kv_heads = 1, .positions = run_of(0, 2 * length), .documents = two};
  const SplitHeadsAttributes alone{.heads = 2, .kv_heads = 1, .positions = run_of(0, length)};
  Tensor qkv = random_tensor(Shape(2 * length, 1, 16), 1), half(Shape(length, 1, 16));
  Tensor q(Shape(2 * length, 1, 2, 4)), k(Shape(2 * length, 1, 1, 4)), v(Shape(2 * length, 1, 1, 4));
  run(OpKind::split_heads, packed, {qkv.host(), q.host(), k.host(), v.host()});
  for (std::size_t document = 0; document < 2; ++document) {
    const std::size_t first = document * length * 16;
    std::copy_n(qkv.values.begin() + static_cast<std::ptrdiff_t>(first), half.values.size(), half.values.begin());
    Tensor own_q(Shape(length, 1, 2, 4)), own_k(Shape(length, 1, 1, 4)), own_v(Shape(length, 1, 1, 4));
    run(OpKind::split_heads, alone, {half.host(), own_q.host(), own_k.host(), own_v.host()});
    for (std::size_t i = 0; i < own_q.values.size(); ++i)
      EXPECT_EQ(q.values[document * own_q.values.size() + i], own_q.values[i]);
    for (std::size_t i = 0; i < own_k.values.size(); ++i)
      EXPECT_EQ(k.values[document * own_k.values.size() + i], own_k.values[i]);
  }
}

}  // namespace
}  // namespace tandem::ops_documents_test
