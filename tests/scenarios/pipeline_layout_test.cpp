#include "scenarios/spec/pipeline_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

namespace tandem::scenarios::pipeline_layout_test {
namespace {

using Stages = std::vector<std::string>;

// The examples of Megatron-Core's parse_str_to_list, its letters for others.
TEST(PipelineLayout, UnrollsAsMegatronDoes) {
  EXPECT_EQ(parse_pipeline_layout("EL(tt|mm|LL)*2,tE"), (Stages{"ELtt", "mm", "LLtt", "mm", "LLtE"}));
  EXPECT_EQ(parse_pipeline_layout("(tm)*3"), (Stages{"tmtmtm"}));
  EXPECT_EQ(parse_pipeline_layout("tt,(mL|)*2"), (Stages{"ttmL", "mL", ""}));
  EXPECT_EQ(parse_pipeline_layout("(|tt)*2,mL"), (Stages{"", "tt", "ttmL"}));
  EXPECT_EQ(parse_pipeline_layout("E|t|*3L"), (Stages{"E", "t", "", "", "L"}));
  EXPECT_EQ(parse_pipeline_layout("t*0L"), (Stages{"L"}));
}

// Of DeepSeek-V3 in Megatron-Core's own documentation: 61 layers, an MTP layer and a loss by themselves, on 32 virtual stages.
TEST(PipelineLayout, ReadsThatOfDeepSeekV3) {
  const PipelineLayout layout = parse_pipeline_layout("Et*3|(tt|)*29,m|L");
  ASSERT_EQ(layout.size(), 32U);
  EXPECT_EQ(layout.front(), "Ettt");
  EXPECT_EQ(layout[1], "tt");
  EXPECT_EQ(layout[30], "m");
  EXPECT_EQ(layout[31], "L");
  EXPECT_EQ(count_in(layout, layout_part::layer), 61);
  EXPECT_EQ(count_in(layout, layout_part::mtp), 1);
  EXPECT_EQ(layout_text(layout), "Et*3|(tt|)*29m|L");
}

std::string refusal_of(const std::string& text) {
  try {
    parse_pipeline_layout(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(PipelineLayout, SaysWhatItCannotRead) {
  using testing::HasSubstr;
  EXPECT_THAT(refusal_of("Et|xL"), HasSubstr("has 'x', expected E (embedding), t (layer)"));
  EXPECT_THAT(refusal_of("Et |L"), HasSubstr("has ' ', expected"));
  EXPECT_THAT(refusal_of("E(tt|L"), HasSubstr("a ( that no ) closes"));
  EXPECT_THAT(refusal_of("E(tt|)L"), HasSubstr("parentheses without a number, expected (...)*n"));
  EXPECT_THAT(refusal_of("E((t)*2|)*2L"), HasSubstr("no others in them"));
  EXPECT_THAT(refusal_of("E()*2L"), HasSubstr("expected letters in parentheses"));
  EXPECT_THAT(refusal_of("Et*|L"), HasSubstr("a * without a number"));
  EXPECT_THAT(refusal_of("Et*2*3L"), HasSubstr("has '*'"));
  EXPECT_THAT(refusal_of("Et*99999999999999999999L"), HasSubstr("more than 40000 letters and bars"));
  EXPECT_THAT(refusal_of("E(t*9999|)*9999L"), HasSubstr("more than 40000 letters and bars"));
}

TEST(PipelineLayout, IsReadAsItIsWritten) {
  constexpr std::uint32_t seeds = 200;
  for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
    std::mt19937 random(seed);
    PipelineLayout layout;
    for (std::size_t stages = 1 + random() % 12; layout.size() < stages;) {
      const std::string stage(random() % 5, "EtmL"[random() % 4]);
      layout.insert(layout.end(), std::min<std::size_t>(1 + random() % 4, stages - layout.size()), stage);
    }
    EXPECT_EQ(parse_pipeline_layout(layout_text(layout)), layout) << "seed " << seed << ": " << layout_text(layout);
  }
}

}  // namespace
}  // namespace tandem::scenarios::pipeline_layout_test
