#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/cuda/nccl_call.h"

namespace tandem {

/// A member of a communicator.
struct MemberPlace {
  std::size_t member = 0, members = 1;
};

/// What the members of a collective send and must then receive, so crafted that every type holds the result exactly, in whatever
/// order sums are taken; in the spirit of nccl-tests (its verifiable/).
///
/// All is made of v(e) = 0 ... 255, drawn at random for element e of the whole vector. Bf16 and fp16 hold all whole numbers up to
/// 256.
///
/// - What is moved: member m sends (v(e) + 97 m) mod 251, so that no two members within 251 of each other send the same.
/// - What is reduced: the bits of v(e) are dealt out, bit j to member (s(e) + j) mod n with a random s(e), and each member sends
///   its own. A sum of any of them is at most 255; all of them make v(e). A member that is missing or counts twice shows where it
///   has a bit, and only one member in eight need take part in an element for that, whatever n. In the first element all bits are
///   set, so that a vector of a single number shows as much as it can.
///
///     sum = v(e),   max = the largest part,   mean = v(e) / n
///
///   The mean is exact where n is a power of two. Else NCCL multiplies by 1 / n, as rounded to the type, before it adds: every
///   term is positive and carries the rounding of 1 / n and of the product, and those of at most min(n, 8) - 1 additions, since
///   to add zero is exact. With roundings of u each the relative error is below (min(n, 8) + 1) u (1 + 10 u).
///
/// What else a buffer may hold tells from all of this: NaN, and 0xFF where bytes or whole numbers are moved.
class PredictableContents {
 public:
  /// Returns what the member at `place` hands to `call`, and what it must get; nothing where it sends or receives nothing.
  static PredictableContents sent(const NcclCall& call, const MemberPlace& place);
  static PredictableContents expected(const NcclCall& call, const MemberPlace& place);

  std::size_t elements() const;

  /// Writes the elements from `first` on, as many as `out` holds, as bytes of the call's type.
  void write(std::size_t first, std::span<std::byte> out) const;

  struct Difference {
    std::size_t element = 0;
    double found = 0, expected = 0;
  };
  /// Returns the first wrong element in `found`, which holds the elements from `first` on.
  std::optional<Difference> first_difference(std::size_t first, std::span<const std::byte> found) const;

 private:
  enum class Source : std::uint8_t {
    moved,   ///< of what a member sends to be moved
    dealt,   ///< of what a member sends to be reduced
    reduced  ///< of the result
  };
  /// `count` consecutive elements, from element `first` of the source on.
  struct Run {
    std::size_t count = 0, first = 0, member = 0;
  };

  NcclType type_;
  Reduction reduction_;
  std::size_t members_;
  Source source_ = Source::moved;
  std::vector<Run> runs_;  ///< one after the other

  PredictableContents(const NcclCall& call, const MemberPlace& place);
  std::uint8_t number(const Run& run, std::size_t element) const;
  double value(std::uint8_t number) const;
  double tolerance() const;
  std::array<std::uint32_t, 256> encoded_numbers() const;
  void write_run(const Run& run, const std::array<std::uint32_t, 256>& encoded, std::span<std::byte> out) const;
};

}  // namespace tandem
