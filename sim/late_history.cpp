#include "sim/late_history.h"

#include <algorithm>

namespace tandem::sim {

void add(LatePart& to, const LatePart& other) {
  to.undisturbed += other.undisturbed;
  to.own += other.own;
  to.mean += other.mean;
  to.variance += other.variance;
  to.is_of_several |= other.is_of_several || (to.rank != no_id && other.rank != no_id && to.rank != other.rank);
  if (to.rank == no_id) to.rank = other.rank;
}

void add(std::vector<LastingDeviation>& to, std::span<const LastingDeviation> other) {
  for (const LastingDeviation& one : other) {
    const auto found = std::ranges::find(to, one.rank, &LastingDeviation::rank);
    found == to.end() ? to.push_back(one) : static_cast<void>(found->deviation += one.deviation);
  }
}

void LateHistory::clear() {
  base = 0;
  parts_.clear();
  lasting_.clear();
}

std::span<const LastingDeviation> LateHistory::lasting(std::size_t at) const {
  const std::size_t begin = at > 0 ? parts_[at - 1].lasting_end : 0;
  return {lasting_.data() + begin, parts_[at].lasting_end - begin};
}

void LateHistory::append(const LatePart& part, std::span<const LastingDeviation> lasting) {
  lasting_.insert(lasting_.end(), lasting.begin(), lasting.end());
  parts_.push_back({part, static_cast<std::uint32_t>(lasting_.size())});
}

void LateHistory::add(const LatePart& part, std::span<const LastingDeviation> lasting, const RankSpans& spans) {
  auto place = std::ranges::find_if(parts_, [&](const Stored& stored) {
    return stored.numbers.span == part.span || spans.size(stored.numbers.span) > spans.size(part.span);
  });
  std::uint32_t begin = place == parts_.begin() ? 0 : std::prev(place)->lasting_end;
  if (place == parts_.end() || place->numbers.span != part.span)
    place = parts_.insert(place, {.numbers = {.span = part.span}, .lasting_end = begin});
  sim::add(place->numbers, part);
  for (const LastingDeviation& one : lasting) {
    const auto end = lasting_.begin() + place->lasting_end;
    const auto found = std::ranges::find(lasting_.begin() + begin, end, one.rank, &LastingDeviation::rank);
    if (found != end) {
      found->deviation += one.deviation;
      continue;
    }
    lasting_.insert(end, one);
    for (auto later = place; later != parts_.end(); ++later) ++later->lasting_end;
  }
}

LateHistories::Holder LateHistories::any() {
  if (free_.empty()) {
    all_.push_back(std::make_unique<Shared>());
    all_.back()->home = this;
    return Holder(all_.back().get());
  }
  Shared* const shared = free_.back();
  free_.pop_back();
  return Holder(shared);
}

LateHistories::Holder LateHistories::copy_of(const LateHistory& history) {
  Holder holder = any();
  holder.shared_->history = history;
  return holder;
}

LateHistory& LateHistories::own(Holder& holder) {
  if (!holder) {
    holder = any();
    holder.shared_->history.clear();
  } else if (holder.shared_->holders > 1) {
    holder = copy_of(*holder);
  }
  return holder.shared_->history;
}

}  // namespace tandem::sim
