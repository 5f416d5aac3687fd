// Nested configurations of other programs, by path.
#include "scenarios/interop/foreign_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::scenarios::foreign_tree_test {
namespace {

using testing::ElementsAre;

TEST(ForeignTree, KnowsWhatNobodyAskedFor) {
  ForeignTree tree(parse_yaml("a: {x: 1, off: false, zero: 0, none: null, _target_: c, s: {y: 2, z: [3]}}\nb: 4\nidle: {p: 1}\n"
                              "unused: {enabled: false, q: 1}\n",
                              "f.yaml"),
                   "f.yaml");
  EXPECT_EQ(tree.integer("a.x", 0), 1);
  EXPECT_TRUE(tree.has("a.s"));  // of which nothing was asked for yet
  tree.pass_over("idle");
  EXPECT_THAT(tree.unknown(), ElementsAre("a.s.y", "a.s.z", "b"));
  EXPECT_THAT(tree.unknown(true), ElementsAre("a.off", "a.zero", "a.none", "a.s.y", "a.s.z", "b"));
}

TEST(ForeignTree, ReadsNumbersAsTheyAreWritten) {
  ForeignTree tree(parse_yaml("a: 5e8\nb: 1_000\nc: '7'\nd: 2.5\ne: True\n", "f.yaml"), "f.yaml");
  EXPECT_EQ(tree.integer("a", 0), 500'000'000);
  EXPECT_EQ(tree.integer("b", 0), 1000);
  EXPECT_THROW(tree.integer("c", 0), InputError);  // a text
  EXPECT_THROW(tree.integer("d", 0), InputError);
  EXPECT_EQ(tree.number("d", 0), 2.5);
  EXPECT_TRUE(tree.boolean("e", false));
  EXPECT_THROW(tree.boolean("d", false), InputError);
  EXPECT_THROW(tree.positive("none", 0), InputError);
}

TEST(ForeignTree, FindsFieldsUnderOtherNames) {
  ForeignTree tree(parse_yaml("old: {size: 0}\n", "f.yaml"), "f.yaml");
  tree.also_called("new.size", "older.size");
  tree.also_called("new.size", "old.size");
  EXPECT_EQ(tree.spelled("new.size"), "old.size");
  try {
    tree.positive("new.size", 1);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "f.yaml:1:13: old.size is 0, expected 1 or more");
  }
  EXPECT_THAT(tree.unknown(true), testing::IsEmpty());
}

TEST(ForeignTree, HoldsTomlInTheOrderOfTheFile) {
  ForeignTree tree(parse_toml("[z]\nk = 1\nb = true\nl = [[\"m\"], []]\n[a]\nf = 1.5\nt = '2'\nd = 2020-01-02\n", "f.toml"),
                   "f.toml");
  EXPECT_THAT(tree.unknown(true), ElementsAre("z.k", "z.b", "z.l", "a.f", "a.t", "a.d"));
  EXPECT_EQ(tree.place("z.b").text(), "f.toml:3:5");
  EXPECT_EQ(tree.find("z.l")->items[0].items[0].text, "m");
  EXPECT_EQ(tree.number("a.f", 0), 1.5);
  EXPECT_TRUE(tree.find("a.t")->quoted);
  EXPECT_EQ(tree.text("a.d", ""), "2020-01-02");
}

}  // namespace
}  // namespace tandem::scenarios::foreign_tree_test
