#include "runtime/cuda/predictable_contents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "runtime/cuda/emulation/nccl_functions.h"
#include "runtime/cuda/nccl_number.h"

namespace tandem::predictable_contents_test {
namespace {

using Bytes = std::vector<std::byte>;
using Vector = std::vector<float>;

constexpr std::array all_types{NcclType::f32, NcclType::bf16, NcclType::f16, NcclType::u8, NcclType::i32};
constexpr std::array all_functions{NcclFunction::all_reduce, NcclFunction::all_gather, NcclFunction::reduce_scatter,
                                   NcclFunction::all_to_all, NcclFunction::broadcast,  NcclFunction::reduce,
                                   NcclFunction::gather,     NcclFunction::scatter};

Bytes encoded(NcclType type, const Vector& numbers) {
  Bytes bytes;
  for (const float number : numbers) {
    const std::uint32_t bits = encode(type, number);
    const auto* const begin = reinterpret_cast<const std::byte*>(&bits);
    bytes.insert(bytes.end(), begin, begin + bytes_of(type));
  }
  return bytes;
}

Vector decoded(NcclType type, const Bytes& bytes) {
  Vector numbers;
  for (std::size_t at = 0; at < bytes.size(); at += bytes_of(type))
    numbers.push_back(static_cast<float>(decode(type, &bytes[at])));
  return numbers;
}

Bytes written(const PredictableContents& contents, NcclType type) {
  Bytes bytes(contents.elements() * bytes_of(type));
  contents.write(0, bytes);
  return bytes;
}

/// A collective's members, what they send, and what they receive.
class Members {
 public:
  Members(NcclCall call, std::size_t members) : call_(call), members_(members) {
    for (std::size_t member = 0; member < members; ++member)
      sent.push_back(decoded(call.type, written(PredictableContents::sent(call, {member, members}), call.type)));
  }
  /// The two sides of a transfer.
  static Members transfer(std::size_t count, NcclType type) {
    Members members({.function = NcclFunction::send, .count = count, .type = type, .peer = 1}, 1);
    members.call_ = {.function = NcclFunction::receive, .count = count, .type = type, .peer = 0};
    members.members_ = 2;
    members.sent.emplace_back();
    return members;
  }

  std::vector<Vector> sent;

  std::size_t size() const { return members_; }
  Vector result(std::size_t member) const { return received(call_, sent, member); }
  std::optional<PredictableContents::Difference> difference(std::size_t member, const Vector& result) const {
    const PredictableContents expected = PredictableContents::expected(call_, {member, members_});
    EXPECT_EQ(expected.elements(), result.size());
    return expected.first_difference(0, encoded(call_.type, result));
  }
  /// Whether all members have what they must.
  bool are_right() const {
    bool right = true;
    for (std::size_t member = 0; member < members_; ++member) right = right && !difference(member, result(member));
    return right;
  }

 private:
  NcclCall call_;
  std::size_t members_;
};

NcclCall call_of(NcclFunction function, std::size_t count, NcclType type, Reduction reduction = Reduction::sum, int root = 0) {
  return {.function = function, .count = count, .type = type, .reduction = reduction, .peer = root};
}

constexpr std::size_t most_members_of_mistakes = 16;

class PredictableContentsOf : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Members, PredictableContentsOf, testing::Values(1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 100));

TEST_P(PredictableContentsOf, AreWhatNcclMakesOfWhatIsSent) {
  const std::size_t members = GetParam();
  const int last = static_cast<int>(members) - 1;
  for (const NcclFunction function : all_functions)
    for (const NcclType type : all_types)
      for (const int root : {0, last})
        for (const std::size_t count : {1, 37})
          EXPECT_TRUE(Members(call_of(function, count, type, {}, root), members).are_right());
  for (const Reduction reduction : {Reduction::max, Reduction::mean})
    for (const NcclType type : {NcclType::f32, NcclType::bf16, NcclType::f16})
      for (const NcclFunction function : {NcclFunction::all_reduce, NcclFunction::reduce_scatter, NcclFunction::reduce})
        EXPECT_TRUE(Members(call_of(function, 37, type, reduction), members).are_right());
}

TEST(PredictableContents, OfATransferAreTheSources) {
  for (const NcclType type : all_types) EXPECT_TRUE(Members::transfer(100, type).are_right());
}

/// Every partial sum is a whole number up to 255, whoever adds first: exact in all types.
TEST_P(PredictableContentsOf, AddUpToNoMoreThanEightBits) {
  const Members members(call_of(NcclFunction::all_reduce, 1000, NcclType::f32), GetParam());
  for (std::size_t e = 0; e < 1000; ++e) {
    unsigned bits = 0, sum = 0;
    for (const Vector& sent : members.sent) {
      bits |= static_cast<unsigned>(sent[e]);
      sum += static_cast<unsigned>(sent[e]);
    }
    ASSERT_EQ(bits, sum);
    ASSERT_LE(sum, 255U);
  }
}

/// By multiplying with 1 / n before the members are added in any order, all of it rounded to the type.
TEST_P(PredictableContentsOf, MeansAreWithinTheRoundingsOfNccls) {
  const std::size_t members = GetParam(), count = 2000;
  std::mt19937 random(1);
  for (const NcclType type : {NcclType::f32, NcclType::bf16, NcclType::f16}) {
    const auto rounded = [&](float number) { return decoded(type, encoded(type, {number})).front(); };
    const Members mean(call_of(NcclFunction::all_reduce, count, type, Reduction::mean), members);
    const float factor = rounded(1 / static_cast<float>(members));
    Vector result(count);
    std::vector<Vector> sent = mean.sent;
    for (std::size_t e = 0; e < count; ++e) {
      std::ranges::shuffle(sent, random);
      for (const Vector& part : sent) result[e] = rounded(result[e] + rounded(factor * part[e]));
    }
    EXPECT_FALSE(mean.difference(0, result).has_value());
  }
}

TEST_P(PredictableContentsOf, ShowEveryMistake) {
  const std::size_t members = GetParam(), count = 200;
  if (members == 1 || members > most_members_of_mistakes) return;
  for (const NcclType type : {NcclType::f32, NcclType::bf16, NcclType::f16, NcclType::u8}) {
    for (const NcclFunction function : all_functions) {
      SCOPED_TRACE(std::to_string(static_cast<int>(function)) + " of type " + std::to_string(static_cast<int>(type)));
      const NcclCall call = call_of(function, count, type);
      const Members members_of(call, members);
      Vector shifted = members_of.result(0);
      std::ranges::rotate(shifted, shifted.begin() + 1);
      EXPECT_TRUE(members_of.difference(0, shifted)) << "by an element";
      Vector incomplete = members_of.result(0);
      incomplete.back() += 1;
      EXPECT_EQ(members_of.difference(0, incomplete)->element, incomplete.size() - 1) << "in the last element";

      if (function == NcclFunction::broadcast || function == NcclFunction::scatter) continue;
      Members missing = members_of;
      std::ranges::fill(missing.sent.back(), 0.0F);
      EXPECT_FALSE(missing.are_right()) << "without a member";
      Members twice = members_of;
      twice.sent.front() = twice.sent.back();
      EXPECT_FALSE(twice.are_right()) << "a member in another's place";
    }
    for (const NcclFunction function : {NcclFunction::all_gather, NcclFunction::gather, NcclFunction::all_to_all}) {
      Members swapped(call_of(function, 1, type), members);
      std::swap(swapped.sent.front(), swapped.sent.back());
      EXPECT_FALSE(swapped.are_right()) << "two members' shards swapped, of one element each";
    }
  }
}

/// 251 members apart the numbers are those of other elements.
TEST(PredictableContents, TellFarMembersApart) {
  Members swapped(call_of(NcclFunction::all_gather, 10, NcclType::u8), 300);
  std::swap(swapped.sent[7], swapped.sent[7 + 251]);
  EXPECT_FALSE(swapped.are_right());
}

TEST_P(PredictableContentsOf, TellReductionsApart) {
  const std::size_t members = GetParam();
  if (members == 1) return;
  constexpr std::array reductions{Reduction::sum, Reduction::max, Reduction::mean};
  for (const Reduction asked : reductions) {
    for (const Reduction done : reductions) {
      const Members as_asked(call_of(NcclFunction::all_reduce, 50, NcclType::bf16, asked), members);
      const Members as_done(call_of(NcclFunction::all_reduce, 50, NcclType::bf16, done), members);
      EXPECT_EQ(as_asked.difference(0, as_done.result(0)).has_value(), asked != done);
    }
  }
}

TEST(PredictableContents, ThatNobodyWroteAreFound) {
  for (const NcclType type : all_types) {
    const PredictableContents expected =
        PredictableContents::expected(call_of(NcclFunction::all_gather, 300, type), {.member = 0, .members = 2});
    Bytes found = written(expected, type);
    EXPECT_FALSE(expected.first_difference(0, found));
    const std::size_t at = 123 * bytes_of(type);
    std::fill_n(found.begin() + static_cast<std::ptrdiff_t>(at), bytes_of(type), std::byte{0xFF});
    const auto difference = expected.first_difference(0, found);
    ASSERT_TRUE(difference);
    EXPECT_EQ(difference->element, 123U);
    EXPECT_EQ(difference->expected, decode(type, written(expected, type).data() + at));
  }
}

/// As large buffers are: more elements than there are different ones, and cut anywhere.
TEST(PredictableContents, AreTheSameInPieces) {
  constexpr std::size_t count = 150'000;
  for (const NcclFunction function : {NcclFunction::all_reduce, NcclFunction::all_to_all, NcclFunction::all_gather}) {
    const NcclCall call = call_of(function, count, NcclType::bf16);
    const MemberPlace place{.member = 1, .members = 3};
    for (const PredictableContents& contents :
         {PredictableContents::sent(call, place), PredictableContents::expected(call, place)}) {
      const Bytes whole = written(contents, NcclType::bf16);
      std::mt19937 random(1);
      for (std::size_t first = 0; first < contents.elements();) {
        const std::size_t elements = std::min<std::size_t>(1 + random() % 100'000, contents.elements() - first);
        Bytes piece(2 * elements);
        contents.write(first, piece);
        ASSERT_TRUE(std::ranges::equal(piece, std::span(whole).subspan(2 * first, piece.size())));
        EXPECT_FALSE(contents.first_difference(first, piece));
        piece.back() ^= std::byte{1};
        EXPECT_EQ(contents.first_difference(first, piece)->element, first + elements - 1);
        first += elements;
      }
    }
  }
}

}  // namespace
}  // namespace tandem::predictable_contents_test
