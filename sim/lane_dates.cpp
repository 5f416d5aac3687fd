#include "sim/lane_dates.h"

#include <bit>
#include <cstdint>

namespace tandem::sim {
namespace {

__extension__ using Order = unsigned __int128;

/// Dates are not negative, so the bits of later ones are larger numbers.
Order order_of(const LaneDates::Date& date) { return Order{std::bit_cast<std::uint64_t>(date.at)} << 64 | date.task; }

/// One comparison, and no branch that a processor had to guess.
bool is_before(const LaneDates::Date& a, const LaneDates::Date& b) { return order_of(a) < order_of(b); }

}  // namespace

void LaneDates::set(const Date& date) {
  std::uint32_t place = place_[date.lane];
  if (place == no_id) {
    place = static_cast<std::uint32_t>(heap_.size());
    heap_.push_back(date);
    rise(date, place);
  } else if (is_before(date, heap_[place])) {
    rise(date, place);
  } else {
    sink(date, place);
  }
}

void LaneDates::remove(std::uint32_t lane) {
  const std::uint32_t place = place_[lane];
  if (place == no_id) return;
  place_[lane] = no_id;
  const Date last = heap_.back();
  heap_.pop_back();
  if (place == heap_.size()) return;
  place > 0 && is_before(last, heap_[(place - 1) / 2]) ? rise(last, place) : sink(last, place);
}

void LaneDates::put(const Date& date, std::size_t place) {
  heap_[place] = date;
  place_[date.lane] = static_cast<std::uint32_t>(place);
}

void LaneDates::rise(const Date& date, std::size_t place) {
  while (place > 0 && is_before(date, heap_[(place - 1) / 2])) {
    put(heap_[(place - 1) / 2], place);
    place = (place - 1) / 2;
  }
  put(date, place);
}

void LaneDates::sink(const Date& date, std::size_t place) {
  for (std::size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
    if (child + 1 < heap_.size()) child += is_before(heap_[child + 1], heap_[child]) ? 1 : 0;
    if (!is_before(heap_[child], date)) break;
    put(heap_[child], place);
    place = child;
  }
  put(date, place);
}

}  // namespace tandem::sim
