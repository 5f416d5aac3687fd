#include "runtime/base/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tandem::host_list_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Names = std::vector<std::string>;

Names expanded(std::string_view list) { return expand_host_list(list, {"f", 3, 7}); }

TEST(HostList, StandsForNamesInItsOrder) {
  EXPECT_THAT(expanded("tux[0-2,12]"), ElementsAre("tux0", "tux1", "tux2", "tux12"));
  EXPECT_THAT(expanded("login1"), ElementsAre("login1"));
  EXPECT_THAT(expanded("b[2],a1 a2,\ta[9-10]"), ElementsAre("b2", "a1", "a2", "a9", "a10"));
  EXPECT_THAT(expanded(""), ElementsAre());
}

TEST(HostList, KeepsTheZerosThatARangeBeginsWith) {
  EXPECT_THAT(expanded("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(expanded("n[098-101]x"), ElementsAre("n098x", "n099x", "n100x", "n101x"));
  EXPECT_THAT(expanded("gpu-a3-[0-1]"), ElementsAre("gpu-a3-0", "gpu-a3-1"));
}

TEST(HostList, MultipliesBrackets) {
  EXPECT_THAT(expanded("rack[0-1]node[7,9]"), ElementsAre("rack0node7", "rack0node9", "rack1node7", "rack1node9"));
}

TEST(HostList, RefusesWhatStandsForNoNames) {
  const auto refusal = [](const char* list) {
    try {
      expanded(list);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal("node[3-1]"), HasSubstr("f:3:7: the host list `node[3-1]` has the range `3-1`, which goes down"));
  EXPECT_THAT(refusal("node[1-3"), HasSubstr("not closed"));
  EXPECT_THAT(refusal("node1-3]"), HasSubstr("nothing opens"));
  EXPECT_THAT(refusal("node[[1-3]]"), HasSubstr("a bracket within a bracket"));
  EXPECT_THAT(refusal("node[a-c]"), HasSubstr("expected whole numbers"));
  EXPECT_THAT(refusal("node[]"), HasSubstr("expected whole numbers"));
  EXPECT_THAT(refusal("a[0-9999]b[0-9999]"), HasSubstr("more than 1,048,576"));
  EXPECT_THAT(refusal("a[0-99999999999]"), HasSubstr("more than 1,048,576"));
  EXPECT_THAT(refusal("a[99999999999999999999]"), HasSubstr("expected whole numbers"));
}

TEST(HostList, IsMadeOfNames) {
  EXPECT_EQ(host_list_of(Names{"tux0", "tux1", "tux2", "tux12"}), "tux[0-2,12]");
  EXPECT_EQ(host_list_of(Names{"n08", "n09", "n10", "n7", "login"}), "n[08-10,7],login");
  EXPECT_EQ(host_list_of(Names{"a1", "b2"}), "a1,b2");
  EXPECT_EQ(host_list_of(Names{}), "");
}

// What is made of names stands for these names: a round trip, with names that end alike and not.
TEST(HostList, StandsForWhatItWasMadeOf) {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    Names names;
    for (std::size_t n = 1 + random() % 12; n > 0; --n) {
      std::string number = std::to_string(random() % 12);
      if (random() % 2 == 0) number.insert(0, random() % 3, '0');
      names.push_back((random() % 4 == 0 ? "b" : "a") + number + (random() % 5 == 0 ? "-x" : ""));
    }
    if (i % 2 == 0) std::ranges::sort(names, comes_before);
    EXPECT_EQ(expanded(host_list_of(names)), names) << host_list_of(names);
  }
}

TEST(ComesBefore, CountsNumbersByValue) {
  EXPECT_TRUE(comes_before("n9", "n10"));
  EXPECT_FALSE(comes_before("n10", "n9"));
  EXPECT_TRUE(comes_before("n2-a", "n2-b"));
  EXPECT_TRUE(comes_before("n", "n1"));
  EXPECT_NE(comes_before("n01", "n1"), comes_before("n1", "n01"));
  EXPECT_FALSE(comes_before("n1", "n1"));
}

}  // namespace
}  // namespace tandem::host_list_test
