#include "runtime/cuda/predictable_contents.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "runtime/cuda/nccl_number.h"

namespace tandem {
namespace {

// The period is prime: NCCL cuts vectors into powers of two, no multiple of which, within reach, is a multiple of the period.
constexpr std::size_t period = 65521;
constexpr unsigned bits_of_number = 8;
constexpr std::size_t largest_moved = 251;
constexpr std::size_t step_of_member = 97;
constexpr std::size_t step_of_many_members = 7919;

/// Returns v(e) in the lowest bits and s(e) above them.
std::uint32_t drawn(std::size_t element) {
  static const std::vector<std::uint32_t> numbers = [] {
    std::mt19937 random(1);
    std::vector<std::uint32_t> all(period);
    for (std::uint32_t& one : all) one = static_cast<std::uint32_t>(random());
    all.front() |= 0xFFU;
    return all;
  }();
  return numbers[element % period];
}

std::uint8_t moved(std::size_t member, std::size_t element) {
  const std::size_t many = member / largest_moved;
  return static_cast<std::uint8_t>(((drawn(element + step_of_many_members * many) & 0xFFU) + step_of_member * member) %
                                   largest_moved);
}

/// Returns the bits of the member that comes `place` members after the one with bit 0.
std::uint8_t bits_at(std::size_t place, std::size_t members) {
  std::uint32_t bits = 0;
  for (std::size_t bit = place; bit < bits_of_number; bit += members) bits |= 1U << bit;
  return static_cast<std::uint8_t>(bits);
}

std::uint8_t dealt(std::size_t member, std::size_t members, std::size_t element) {
  const std::uint32_t random = drawn(element);
  const std::size_t first = (random >> bits_of_number) % static_cast<std::uint32_t>(members);
  const std::size_t place = member >= first ? member - first : member + members - first;
  return static_cast<std::uint8_t>(random & bits_at(place, members));
}

std::uint8_t largest_part(std::size_t members, std::size_t element) {
  std::uint8_t largest = 0;
  for (std::size_t place = 0; place < std::min<std::size_t>(members, bits_of_number); ++place)
    largest = std::max(largest, static_cast<std::uint8_t>(drawn(element) & bits_at(place, members)));
  return largest;
}

}  // namespace

PredictableContents::PredictableContents(const NcclCall& call, const MemberPlace& place)
    : type_(call.type), reduction_(call.reduction), members_(place.members) {}

PredictableContents PredictableContents::sent(const NcclCall& call, const MemberPlace& place) {
  PredictableContents contents(call, place);
  const bool root = static_cast<int>(place.member) == call.peer;
  const Run part{.count = call.count, .first = 0, .member = place.member};
  const Run whole{.count = call.count * place.members, .first = 0, .member = place.member};
  switch (call.function) {
    case NcclFunction::all_reduce:
    case NcclFunction::reduce:
      contents.source_ = Source::dealt;
      contents.runs_ = {part};
      break;
    case NcclFunction::reduce_scatter:
      contents.source_ = Source::dealt;
      contents.runs_ = {whole};
      break;
    case NcclFunction::all_gather:
    case NcclFunction::gather:
    case NcclFunction::send:
      contents.runs_ = {part};
      break;
    case NcclFunction::all_to_all:
      contents.runs_ = {whole};
      break;
    case NcclFunction::broadcast:
      if (root) contents.runs_ = {part};
      break;
    case NcclFunction::scatter:
      if (root) contents.runs_ = {whole};
      break;
    case NcclFunction::receive:
      break;
  }
  return contents;
}

PredictableContents PredictableContents::expected(const NcclCall& call, const MemberPlace& place) {
  PredictableContents contents(call, place);
  const bool root = static_cast<int>(place.member) == call.peer;
  const auto peer = static_cast<std::size_t>(call.peer);
  const std::size_t own = place.member * call.count;
  const auto from_all = [&](std::size_t first) {
    for (std::size_t member = 0; member < place.members; ++member)
      contents.runs_.push_back({.count = call.count, .first = first, .member = member});
  };
  switch (call.function) {
    case NcclFunction::all_reduce:
      contents.source_ = Source::reduced;
      contents.runs_ = {{.count = call.count}};
      break;
    case NcclFunction::reduce:
      contents.source_ = Source::reduced;
      if (root) contents.runs_ = {{.count = call.count}};
      break;
    case NcclFunction::reduce_scatter:
      contents.source_ = Source::reduced;
      contents.runs_ = {{.count = call.count, .first = own}};
      break;
    case NcclFunction::all_gather:
      from_all(0);
      break;
    case NcclFunction::gather:
      if (root) from_all(0);
      break;
    case NcclFunction::all_to_all:
      from_all(own);
      break;
    case NcclFunction::scatter:
      contents.runs_ = {{.count = call.count, .first = own, .member = peer}};
      break;
    case NcclFunction::broadcast:
    case NcclFunction::receive:
      contents.runs_ = {{.count = call.count, .member = peer}};
      break;
    case NcclFunction::send:
      break;
  }
  return contents;
}

std::size_t PredictableContents::elements() const {
  std::size_t sum = 0;
  for (const Run& run : runs_) sum += run.count;
  return sum;
}

std::uint8_t PredictableContents::number(const Run& run, std::size_t element) const {
  switch (source_) {
    case Source::moved:
      return moved(run.member, element);
    case Source::dealt:
      return dealt(run.member, members_, element);
    case Source::reduced:
      break;
  }
  return reduction_ == Reduction::max ? largest_part(members_, element) : static_cast<std::uint8_t>(drawn(element) & 0xFFU);
}

double PredictableContents::value(std::uint8_t number) const {
  const bool divided = source_ == Source::reduced && reduction_ == Reduction::mean;
  return divided ? number / static_cast<double>(members_) : number;
}

/// Returns the relative error that a result may have.
double PredictableContents::tolerance() const {
  if (source_ != Source::reduced || reduction_ != Reduction::mean || std::has_single_bit(members_)) return 0;
  const double rounding = rounding_of(type_);
  const double roundings = static_cast<double>(std::min<std::size_t>(members_, bits_of_number)) + 1;
  return roundings * rounding * (1 + 10 * rounding);
}

std::array<std::uint32_t, 256> PredictableContents::encoded_numbers() const {
  std::array<std::uint32_t, 256> encoded{};
  for (std::size_t n = 0; n < encoded.size(); ++n)
    encoded[n] = encode(type_, static_cast<float>(value(static_cast<std::uint8_t>(n))));
  return encoded;
}

void PredictableContents::write_run(const Run& run, const std::array<std::uint32_t, 256>& encoded,
                                    std::span<std::byte> out) const {
  const std::size_t size = bytes_of(type_);
  for (std::size_t e = 0; e < std::min(run.count, period); ++e)
    std::memcpy(out.data() + e * size, &encoded[number(run, run.first + e)], size);
  for (std::size_t e = period; e < run.count; e += period)
    std::memcpy(out.data() + e * size, out.data(), std::min(period, run.count - e) * size);
}

void PredictableContents::write(std::size_t first, std::span<std::byte> out) const {
  const std::size_t size = bytes_of(type_);
  const std::array<std::uint32_t, 256> encoded = encoded_numbers();
  for (const Run& run : runs_) {
    if (out.empty()) return;
    if (first >= run.count) {
      first -= run.count;
      continue;
    }
    const std::size_t count = std::min(run.count - first, out.size() / size);
    write_run({.count = count, .first = run.first + first, .member = run.member}, encoded, out.first(count * size));
    out = out.subspan(count * size);
    first = 0;
  }
}

std::optional<PredictableContents::Difference> PredictableContents::first_difference(std::size_t first,
                                                                                     std::span<const std::byte> found) const {
  std::vector<std::byte> expected(found.size());
  write(first, expected);
  if (std::ranges::equal(found, expected)) return std::nullopt;
  const std::size_t size = bytes_of(type_);
  for (std::size_t at = 0; at < found.size(); at += size) {
    const double is = decode(type_, &found[at]), should_be = decode(type_, &expected[at]);
    // Both were rounded; a NaN is never close.
    if (std::abs(is - should_be) <= should_be * (tolerance() > 0 ? tolerance() + rounding_of(type_) : 0)) continue;
    return Difference{.element = first + at / size, .found = is, .expected = should_be};
  }
  return std::nullopt;
}

}  // namespace tandem
