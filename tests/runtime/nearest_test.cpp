#include "runtime/base/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::nearest_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(EditDistance, CountsEachKindOfEditOnce) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("sequence", "sequence"), 0U);
  EXPECT_EQ(edit_distance("sequnce", "sequence"), 1U);    // insertion
  EXPECT_EQ(edit_distance("sequencee", "sequence"), 1U);  // deletion
  EXPECT_EQ(edit_distance("sequance", "sequence"), 1U);   // substitution
  EXPECT_EQ(edit_distance("sequecne", "sequence"), 1U);   // swap of neighbours
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);      // the textbook's example
}

TEST(Nearest, OffersOnlyWhatIsNear) {
  const std::vector<std::string> names{"tp", "pp", "sequence", "micro_batch"};
  EXPECT_EQ(nearest("micro_bach", names), "micro_batch");
  EXPECT_EQ(nearest("zzzzzzzz", names), "");
  EXPECT_EQ(nearest("xy", names), "") << "two edits would make any two letters near";
  EXPECT_EQ(nearest(std::string(100'000, 'a'), names), "");
}

TEST(NearestDivisors, LieOnBothSides) {
  EXPECT_THAT(nearest_divisors(128, 7), ElementsAre(4, 8));
  EXPECT_THAT(nearest_divisors(10, 128), ElementsAre(10));
  EXPECT_THAT(nearest_divisors(13, 5), ElementsAre(1, 13));
}

TEST(NearestMultiples, LieOnBothSides) {
  EXPECT_THAT(nearest_multiples(8, 20), ElementsAre(16, 24));
  EXPECT_THAT(nearest_multiples(8, 3), ElementsAre(8));
}

TEST(Grouped, SetsCommas) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'048'576), "1,048,576");
  EXPECT_EQ(grouped(-1'000), "-1,000");
  EXPECT_EQ(grouped(-100), "-100");
}

TEST(Excerpt, CutsBetweenCharacters) {
  const std::string euros = "\xe2\x82\xac";
  std::string text;
  for (int i = 0; i < 30; ++i) text += euros;
  text += "x" + text;
  const std::string shown = excerpt(text);
  EXPECT_THAT(shown, testing::EndsWith(euros + "...`"));
}

}  // namespace
}  // namespace tandem::nearest_test
