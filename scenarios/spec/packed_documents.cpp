#include "scenarios/spec/packed_documents.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <queue>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

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
  const std::size_t sequences = items.size() / length;
  return most / (all / static_cast<double>(sequences));
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

std::vector<std::size_t> longest_first_of(const std::vector<PackedDocument>& pieces) {
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return pieces[a].tokens > pieces[b].tokens; });
  return order;
}

/// Leaves the pieces of these numbers, in their order.
void keep(std::vector<PackedDocument>& pieces, std::vector<std::size_t> numbers) {
  std::ranges::sort(numbers);
  std::vector<PackedDocument> kept;
  for (const std::size_t piece : numbers) kept.push_back(pieces[piece]);
  pieces = std::move(kept);
}

/// Chunks of a document that ranks of a group hold, two each.
std::int64_t parts_of_group(std::int64_t ranks) { return ranks > 1 ? 2 * ranks : 1; }

/// Ranks of one sequence, with the pieces that they share.
struct GroupOfPieces {
  std::size_t sequence = 0;
  std::int64_t ranks = 1, left = 0;
  std::vector<std::size_t> pieces;
  double work = 0;  ///< pairs of positions, of each rank
};

/// Returns the number of the fullest group of so many ranks that has space for a piece, or how many groups there are.
std::size_t fullest_group(const std::vector<GroupOfPieces>& groups, std::int64_t tokens, std::int64_t least, std::int64_t most) {
  std::size_t fullest = groups.size();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const GroupOfPieces& group = groups[i];
    if (group.ranks < least || group.ranks > most || group.left < padded(tokens, parts_of_group(group.ranks))) continue;
    if (fullest == groups.size() || group.left < groups[fullest].left) fullest = i;
  }
  return fullest;
}

/// The groups of each sequence; sequences in the order of their first pieces.
std::vector<std::vector<GroupOfPieces>> by_sequence(std::vector<GroupOfPieces> groups, std::size_t sequences) {
  std::vector<std::vector<GroupOfPieces>> found(sequences);
  for (GroupOfPieces& group : groups) found[group.sequence].push_back(std::move(group));
  const auto first_piece = [](const std::vector<GroupOfPieces>& of_sequence) {
    std::size_t first = of_sequence.front().pieces.front();
    for (const GroupOfPieces& group : of_sequence) first = std::min(first, group.pieces.front());
    return first;
  };
  std::ranges::sort(found, {}, first_piece);
  return found;
}

/// Orders the groups of a sequence as their ranks follow each other, and adds their work to the ranks'. Larger ones are placed
/// first, of these the heaviest, each where the fullest of its ranks has least; as sizes are powers of two, none is in the way.
void place_groups(std::vector<GroupOfPieces>& groups, std::vector<double>& load) {
  std::ranges::stable_sort(groups, [](const GroupOfPieces& a, const GroupOfPieces& b) {
    return std::tuple(-a.ranks, -a.work) < std::tuple(-b.ranks, -b.work);
  });
  std::vector<bool> taken(load.size());
  std::vector<std::pair<std::size_t, std::size_t>> placed;  // first rank, group
  for (std::size_t number = 0; number < groups.size(); ++number) {
    const auto ranks = static_cast<std::size_t>(groups[number].ranks);
    const auto heaviest = [&](std::size_t first) {
      return *std::max_element(load.begin() + static_cast<std::ptrdiff_t>(first),
                               load.begin() + static_cast<std::ptrdiff_t>(first + ranks));
    };
    std::size_t best = load.size();
    for (std::size_t first = 0; first < load.size(); first += ranks)
      if (!taken[first] && (best == load.size() || heaviest(first) < heaviest(best))) best = first;
    for (std::size_t rank = best; rank < best + ranks; ++rank) {
      taken[rank] = true;
      load[rank] += groups[number].work;
    }
    placed.emplace_back(best, number);
  }
  std::ranges::sort(placed);
  std::vector<GroupOfPieces> ordered;
  for (const auto& [first, number] : placed) ordered.push_back(std::move(groups[number]));
  groups = std::move(ordered);
}

}  // namespace

PackedDocuments::PackedDocuments(const Scenario& scenario)
    : spec_(scenario.training.documents),
      sequence_(scenario.training.sequence),
      parts_(scenario.document_parts()),
      batch_(spec_.reference.batch > 0 ? spec_.reference.batch : scenario.training.global_batch),
      run_(spec_.reference.run > 0 ? spec_.reference.run : scenario.training.global_batch / scenario.parallelism.data_replicas()),
      micro_batch_(scenario.training.micro_batch),
      dynamic_ranks_(scenario.parallelism.dynamic_cp ? scenario.parallelism.cp : spec_.reference.dynamic_ranks) {
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

/// As many tokens as a stream's sequences of a step have, in pieces that fit into one.
void PackedDocuments::draw_for_step(std::int64_t number, Stream& stream) const {
  std::vector<PackedDocument>& pieces = stream.waiting;
  std::int64_t tokens = 0;
  for (const PackedDocument& piece : pieces) tokens += piece.tokens;
  while (tokens < run_ * sequence_) {
    PackedDocument rest = draw(number, stream.documents++);
    tokens += rest.tokens;
    for (; rest.tokens > sequence_; rest.tokens -= sequence_) pieces.push_back({.tokens = sequence_});
    pieces.push_back(rest);
  }
}

void PackedDocuments::pack_step_by_best_fit(std::int64_t number, Stream& stream) const {
  draw_for_step(number, stream);
  std::vector<PackedDocument>& pieces = stream.waiting;
  const std::vector<std::size_t> longest_first = longest_first_of(pieces);
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
  keep(pieces, std::move(left_over));
}

void PackedDocuments::pack_step_into_groups(std::int64_t number, Stream& stream) const {
  draw_for_step(number, stream);
  std::vector<PackedDocument>& pieces = stream.waiting;
  const auto sequences = static_cast<std::size_t>(run_);
  std::vector<GroupOfPieces> groups;
  std::vector<std::int64_t> free(sequences, dynamic_ranks_);  // ranks of each sequence
  std::vector<std::size_t> left_over;
  for (const std::size_t piece : longest_first_of(pieces)) {
    std::int64_t needed = 1;
    while (needed * tokens_of_rank() < padded(pieces[piece].tokens, parts_of_group(needed))) needed *= 2;
    const std::size_t fullest = fullest_group(groups, pieces[piece].tokens, needed, needed);
    const auto place = std::ranges::find_if(free, [&](std::int64_t ranks) { return ranks >= needed; });
    std::size_t chosen = fullest;
    if (fullest == groups.size() && place != free.end()) {
      *place -= needed;
      groups.push_back({static_cast<std::size_t>(place - free.begin()), needed, needed * tokens_of_rank(), {}, 0});
    } else if (fullest == groups.size()) {
      chosen = fullest_group(groups, pieces[piece].tokens, 2 * needed, dynamic_ranks_);
    }
    if (chosen == groups.size()) {
      left_over.push_back(piece);
      continue;
    }
    const std::int64_t tokens = padded(pieces[piece].tokens, parts_of_group(groups[chosen].ranks));
    groups[chosen].left -= tokens;
    groups[chosen].work += static_cast<double>(tokens) * static_cast<double>(tokens) / static_cast<double>(groups[chosen].ranks);
    groups[chosen].pieces.push_back(piece);
  }
  for (GroupOfPieces& group : groups) std::ranges::sort(group.pieces);
  std::vector<double> load(static_cast<std::size_t>(dynamic_ranks_));
  for (std::vector<GroupOfPieces>& of_sequence : by_sequence(std::move(groups), sequences)) {
    place_groups(of_sequence, load);
    Sequence& documents = stream.sequences.emplace_back();
    for (const GroupOfPieces& group : of_sequence) {
      for (const std::size_t piece : group.pieces) {
        const PackedDocument& drawn = pieces[piece];
        const std::int64_t tokens = padded(drawn.tokens, parts_of_group(group.ranks));
        documents.push_back({.tokens = tokens, .padding = drawn.padding + tokens - drawn.tokens, .ranks = group.ranks});
      }
      documents.back().tokens += group.left;
      documents.back().padding += group.left;
    }
  }
  keep(pieces, std::move(left_over));
}

const PackedDocuments::Sequence& PackedDocuments::of_stream(std::int64_t number, std::int64_t index) {
  Stream& stream = streams_[number];
  while (static_cast<std::int64_t>(stream.sequences.size()) <= index)
    dynamic_ranks_ > 0                   ? pack_step_into_groups(number, stream)
    : spec_.packing == Packing::best_fit ? pack_step_by_best_fit(number, stream)
                                         : pack_next(number, stream);
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

ContextGroup PackedDocuments::group_of(std::int64_t number, std::int64_t cp_rank) {
  std::int64_t at = 0;
  ContextGroup group;
  for (const PackedDocument& document : of_sequence(number)) {
    if (at == (group.first + group.ranks) * tokens_of_rank() || at == 0)
      group = {.first = at / tokens_of_rank(), .ranks = document.ranks};
    if (cp_rank < group.first + group.ranks) return group;
    at += document.tokens;
  }
  throw std::logic_error("a context-parallel rank is in no group");
}

Documents PackedDocuments::of_group(std::int64_t number, const ContextGroup& group) {
  const std::int64_t length = group.ranks * tokens_of_rank(), begin = group.first * tokens_of_rank();
  Documents documents{.sequence = static_cast<std::int32_t>(length),
                      .parts = static_cast<std::int32_t>(parts_of_group(group.ranks))};
  std::int64_t at = 0;
  for (const PackedDocument& document : of_sequence(number)) {
    if (at >= begin && at < begin + length) documents.starts.push_back(at - begin);
    at += document.tokens;
  }
  return documents.starts.size() == 1 ? Documents{} : documents;
}

Documents PackedDocuments::of_sequences(std::int64_t first, std::int64_t count) {
  if (!spec_.any()) return {};
  Documents documents{.sequence = static_cast<std::int32_t>(sequence_), .parts = static_cast<std::int32_t>(parts_)};
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at = i * sequence_, end_of_run = at;
    for (const PackedDocument& document : of_sequence(first + i)) {
      if (dynamic_ranks_ > 0 && at == end_of_run) {
        documents.runs.push_back(at);
        documents.run_parts.push_back(static_cast<std::int32_t>(parts_of_group(document.ranks)));
        end_of_run += document.ranks * tokens_of_rank();
      }
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
  std::vector<double> by_sequence, by_rank;
  const std::int64_t cp = scenario.parallelism.dynamic_cp ? scenario.parallelism.cp : 0;
  by_rank.resize(replicas * static_cast<std::size_t>(cp));
  double shared = 0;  // tokens, times the ranks that share them
  for (std::int64_t number = 0; number < sequences; ++number) {
    const std::vector<PackedDocument>& sequence = packed.of_sequence(number);
    for (const PackedDocument& document : sequence) {
      ++totals.of_length[document.tokens];
      totals.padding += document.padding;
      if (document.padding < document.tokens) ++totals.unpadded[document.tokens - document.padding];
    }
    by_sequence.push_back(pairs_of(sequence));
    std::int64_t at = 0, first = 0, end = 0;
    for (const PackedDocument& document : sequence) {
      if (cp == 0) break;
      if (at == end) first = std::exchange(end, at + document.ranks * scenario.training.sequence / cp);
      const auto tokens = static_cast<double>(document.tokens), ranks = static_cast<double>(document.ranks);
      for (std::int64_t rank = 0; rank < document.ranks; ++rank)
        by_rank[static_cast<std::size_t>(number / (sequences / static_cast<std::int64_t>(replicas)) * cp +
                                         first * cp / scenario.training.sequence + rank)] += tokens * tokens / ranks;
      shared += tokens * ranks;
      at += document.tokens;
    }
  }
  totals.heaviest_micro_batch = heaviest_run(by_sequence, of_micro_batch);
  totals.heaviest_replica = heaviest_run(by_sequence, by_sequence.size() / replicas);
  if (cp > 0) {
    totals.heaviest_rank = heaviest_run(by_rank, 1);
    totals.mean_ranks = shared / static_cast<double>(totals.tokens());
  }
  return totals;
}

}  // namespace tandem::scenarios
