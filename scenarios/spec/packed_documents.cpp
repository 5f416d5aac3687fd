#include "scenarios/spec/packed_documents.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>

#include "runtime/base/hash.h"

namespace tandem::scenarios {
namespace {

/// In (0, 1).
double uniform(std::uint64_t random) { return (static_cast<double>(random >> 11) + 0.5) * 0x1p-53; }

std::int64_t padded(std::int64_t tokens, std::int64_t multiple) { return (tokens + multiple - 1) / multiple * multiple; }

/// Of so many items each, over the mean.
double heaviest_run(const std::vector<double>& items, std::size_t length) {
  double most = 0, all = 0;
  for (std::size_t first = 0; first + length <= items.size(); first += length) {
    const double sum = std::accumulate(items.begin() + static_cast<std::ptrdiff_t>(first),
                                       items.begin() + static_cast<std::ptrdiff_t>(first + length), 0.0);
    most = std::max(most, sum);
    all += sum;
  }
  return most / (all / static_cast<double>(items.size() / length));
}

double pairs_of(const std::vector<PackedDocument>& sequence) {
  double pairs = 0;
  for (const PackedDocument& document : sequence)
    pairs += static_cast<double>(document.tokens) * static_cast<double>(document.tokens);
  return pairs;
}

/// Deals items out to so many hands, equally many each: the heaviest first, to the hand whose sum is least so far. Returns their
/// numbers, by hand in that order.
std::vector<std::vector<std::size_t>> dealt_evenly(const std::vector<double>& items, std::size_t hands) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return items[a] > items[b]; });
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>, std::greater<>> open;
  for (std::size_t hand = 0; hand < hands; ++hand) open.emplace(0, hand);
  std::vector<std::vector<std::size_t>> dealt(hands);
  for (const std::size_t item : order) {
    const auto [sum, hand] = open.top();
    open.pop();
    dealt[hand].push_back(item);
    if (dealt[hand].size() < items.size() / hands) open.emplace(sum + items[item], hand);
  }
  return dealt;
}

}  // namespace

PackedDocuments::PackedDocuments(const Scenario& scenario)
    : spec_(scenario.training.documents),
      sequence_(scenario.training.sequence),
      parts_(scenario.document_parts()),
      batch_(spec_.reference.batch > 0 ? spec_.reference.batch : scenario.training.global_batch),
      run_(spec_.reference.run > 0 ? spec_.reference.run : scenario.training.global_batch / scenario.parallelism.data_replicas()),
      micro_batch_(scenario.training.micro_batch) {
  std::vector<double> shares = spec_.shares;
  if (shares.empty()) shares.resize(spec_.lengths.size(), 1);
  until_.resize(shares.size());
  std::partial_sum(shares.begin(), shares.end(), until_.begin());
}

// The normal distribution by Box and Muller (1958).
PackedDocument PackedDocuments::draw(std::int64_t stream, std::int64_t document) const {
  const std::uint64_t key = hash(spec_.seed ^ 0x646F63756D656E74ULL);
  const std::uint64_t first = hash_of_place(key, stream, document);
  std::int64_t tokens = 0;
  if (spec_.mean > 0) {
    const double angle = 2 * std::numbers::pi * uniform(hash(first));
    const double z = std::sqrt(-2 * std::log(uniform(first))) * std::cos(angle);
    constexpr double beyond_all = 1e12;
    const double drawn = std::exp(std::log(spec_.mean) - spec_.sigma * spec_.sigma / 2 + spec_.sigma * z);
    tokens = std::max<std::int64_t>(1, std::llround(std::min(drawn, beyond_all)));
  } else {
    const auto at = std::ranges::upper_bound(until_, uniform(first) * until_.back());
    tokens = spec_.lengths[std::min(static_cast<std::size_t>(at - until_.begin()), until_.size() - 1)];
  }
  if (spec_.longest > 0) tokens = std::min(tokens, spec_.longest);
  if (spec_.packing == Packing::whole) tokens = std::min(tokens, sequence_);
  return {.tokens = padded(tokens, parts_), .padding = padded(tokens, parts_) - tokens};
}

void PackedDocuments::pack_next(std::int64_t number, Stream& stream) const {
  std::vector<PackedDocument> packed;
  std::int64_t left = sequence_;
  while (left > 0) {
    if (stream.rest.tokens == 0) stream.rest = draw(number, stream.documents++);
    PackedDocument& next = stream.rest;
    if (next.tokens <= left) {
      left -= next.tokens;
      packed.push_back(next);
      next = {};
    } else if (spec_.packing == Packing::whole) {
      packed.back().tokens += left;
      packed.back().padding += left;
      left = 0;
    } else {
      const std::int64_t kept = std::min(next.padding, next.tokens - left);  // the padding is at the end
      packed.push_back({.tokens = left, .padding = next.padding - kept});
      next = {.tokens = next.tokens - left, .padding = kept};
      left = 0;
    }
  }
  stream.sequences.push_back(std::move(packed));
}

void PackedDocuments::pack_step_by_best_fit(std::int64_t number, Stream& stream) const {
  std::vector<PackedDocument>& pieces = stream.waiting;
  std::int64_t tokens = 0;
  for (const PackedDocument& piece : pieces) tokens += piece.tokens;
  while (tokens < run_ * sequence_) {
    PackedDocument rest = draw(number, stream.documents++);
    tokens += rest.tokens;
    for (; rest.tokens > sequence_; rest.tokens -= sequence_) pieces.push_back({.tokens = sequence_});
    pieces.push_back(rest);
  }
  std::vector<std::size_t> longest_first(pieces.size());
  std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
  std::ranges::stable_sort(longest_first, [&](std::size_t a, std::size_t b) { return pieces[a].tokens > pieces[b].tokens; });
  std::set<std::pair<std::int64_t, std::size_t>> space;  // left in each sequence
  for (std::size_t i = 0; i < static_cast<std::size_t>(run_); ++i) space.emplace(sequence_, i);
  std::vector<std::vector<std::size_t>> packed(static_cast<std::size_t>(run_));
  std::vector<std::size_t> left_over;
  for (const std::size_t piece : longest_first) {
    const auto fullest = space.lower_bound({pieces[piece].tokens, 0});
    if (fullest == space.end()) {
      left_over.push_back(piece);
      continue;
    }
    const auto [left, sequence] = *fullest;
    space.erase(fullest);
    space.emplace(left - pieces[piece].tokens, sequence);
    packed[sequence].push_back(piece);
  }
  for (std::vector<std::size_t>& sequence : packed) std::ranges::sort(sequence);
  std::ranges::sort(packed);  // by their first pieces
  for (const std::vector<std::size_t>& sequence : packed) {
    Sequence& documents = stream.sequences.emplace_back();
    std::int64_t left = sequence_;
    for (const std::size_t piece : sequence) {
      documents.push_back(pieces[piece]);
      left -= pieces[piece].tokens;
    }
    documents.back().tokens += left;
    documents.back().padding += left;
  }
  std::ranges::sort(left_over);
  std::vector<PackedDocument> waiting;
  for (const std::size_t piece : left_over) waiting.push_back(pieces[piece]);
  pieces = std::move(waiting);
}

const PackedDocuments::Sequence& PackedDocuments::of_stream(std::int64_t number, std::int64_t index) {
  Stream& stream = streams_[number];
  while (static_cast<std::int64_t>(stream.sequences.size()) <= index)
    spec_.packing == Packing::best_fit ? pack_step_by_best_fit(number, stream) : pack_next(number, stream);
  return stream.sequences[static_cast<std::size_t>(index)];
}

const std::vector<PackedDocuments::Dealt>& PackedDocuments::dealt_in(std::int64_t step) {
  const auto [found, is_new] = dealt_.try_emplace(step);
  std::vector<Dealt>& dealt = found->second;
  if (!is_new) return dealt;
  std::vector<Dealt> all;
  std::vector<double> pairs;
  for (std::int64_t stream = 0; stream < spec_.streams; ++stream)
    for (std::int64_t i = 0; i < run_; ++i) {
      all.emplace_back(stream, step * run_ + i);
      pairs.push_back(pairs_of(of_stream(stream, step * run_ + i)));
    }
  const auto micro_batches = dealt_evenly(pairs, all.size() / static_cast<std::size_t>(micro_batch_));
  std::vector<double> of_micro_batch;
  for (const std::vector<std::size_t>& sequences : micro_batches) {
    double sum = 0;
    for (const std::size_t sequence : sequences) sum += pairs[sequence];
    of_micro_batch.push_back(sum);
  }
  for (const std::vector<std::size_t>& of_stream : dealt_evenly(of_micro_batch, static_cast<std::size_t>(spec_.streams)))
    for (const std::size_t micro_batch : of_stream)
      for (const std::size_t sequence : micro_batches[micro_batch]) dealt.push_back(all[sequence]);
  return dealt;
}

const std::vector<PackedDocument>& PackedDocuments::of_sequence(std::int64_t number) {
  const std::int64_t step = number / batch_, in_step = number % batch_;
  const std::int64_t stream = in_step / run_ % spec_.streams;
  if (spec_.balance == DocumentBalance::none) return of_stream(stream, step * run_ + in_step % run_);
  const Dealt& dealt = dealt_in(step)[static_cast<std::size_t>(stream * run_ + in_step % run_)];
  return of_stream(dealt.first, dealt.second);
}

Documents PackedDocuments::of_sequences(std::int64_t first, std::int64_t count) {
  if (!spec_.any()) return {};
  Documents documents{.sequence = static_cast<std::int32_t>(sequence_), .parts = static_cast<std::int32_t>(parts_)};
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at = i * sequence_;
    for (const PackedDocument& document : of_sequence(first + i)) {
      documents.starts.push_back(at);
      at += document.tokens;
    }
  }
  return static_cast<std::int64_t>(documents.starts.size()) == count ? Documents{} : documents;
}

std::int64_t DocumentTotals::documents() const {
  std::int64_t count = 0;
  for (const auto& [tokens, documents] : of_length) count += documents;
  return count;
}

std::int64_t DocumentTotals::tokens() const {
  std::int64_t sum = 0;
  for (const auto& [tokens, documents] : of_length) sum += tokens * documents;
  return sum;
}

double DocumentTotals::attention_share(std::int64_t sequence) const {
  double squares = 0;
  for (const auto& [tokens, documents] : of_length)
    squares += static_cast<double>(documents) * static_cast<double>(tokens) * static_cast<double>(tokens);
  return squares / (static_cast<double>(this->tokens()) * static_cast<double>(sequence));
}

DocumentTotals document_totals(const Scenario& scenario) {
  const std::int64_t sequences = scenario.training.global_batch;
  if (!scenario.training.documents.any()) {
    const std::map<std::int64_t, std::int64_t> whole{{scenario.training.sequence, sequences}};
    return {.of_length = whole, .unpadded = whole};
  }
  PackedDocuments packed(scenario);
  DocumentTotals totals;
  const auto replicas = static_cast<std::size_t>(scenario.parallelism.data_replicas());
  const auto of_micro_batch = static_cast<std::size_t>(scenario.training.micro_batch);
  std::vector<double> by_sequence;
  for (std::int64_t number = 0; number < sequences; ++number) {
    const std::vector<PackedDocument>& sequence = packed.of_sequence(number);
    for (const PackedDocument& document : sequence) {
      ++totals.of_length[document.tokens];
      totals.padding += document.padding;
      if (document.padding < document.tokens) ++totals.unpadded[document.tokens - document.padding];
    }
    by_sequence.push_back(pairs_of(sequence));
  }
  totals.heaviest_micro_batch = heaviest_run(by_sequence, of_micro_batch);
  totals.heaviest_replica = heaviest_run(by_sequence, by_sequence.size() / replicas);
  return totals;
}

}  // namespace tandem::scenarios
