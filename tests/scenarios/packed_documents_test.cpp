#include "scenarios/spec/packed_documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "runtime/base/input_error.h"
#include "scenarios/interop/scenario_sections.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/load.h"

namespace tandem::scenarios::packed_documents_test {
namespace {

using Overrides = std::vector<std::string>;

Scenario with(const Overrides& overrides) {
  return parse_scenario(R"(
name: packed
model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096}
cluster: {preset: dgx-h100, gpus: 8}
parallelism: {dp: 8}
training: {sequence: 1024, micro_batch: 1, global_batch: 64}
)",
                        "packed.yaml", overrides);
}

std::string refusal(const Overrides& overrides) {
  try {
    with(overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

const Overrides draws[] = {
    {"training.documents.length=300"},
    {"training.documents.lengths=[10, 700, 3000]", "training.documents.shares=[5, 2, 1]", "training.documents.streams=3"},
    {"training.documents.mean=200", "training.documents.sigma=1.5", "training.documents.longest=900"},
    {"training.documents.mean=200", "training.documents.sigma=1.5", "training.documents.packing=whole"},
    {"training.documents.mean=200", "training.documents.sigma=1.5", "parallelism.cp=4", "parallelism.dp=2"},
    {"training.documents.mean=200", "training.documents.sigma=1.5", "training.documents.packing=best-fit",
     "training.documents.streams=4"},
    {"training.documents.mean=400", "training.documents.sigma=1.5", "training.documents.packing=best-fit", "parallelism.cp=4",
     "parallelism.dp=2", "training.documents.balance=attention", "training.micro_batch=2", "training.documents.streams=2"},
    {"training.documents.mean=200", "training.documents.sigma=1.5", "training.documents.balance=attention",
     "training.documents.streams=8"},
    {"training.documents.mean=400", "training.documents.sigma=1.5", "training.documents.packing=best-fit", "parallelism.cp=4",
     "parallelism.dp=2", "parallelism.dynamic_cp=true"}};

TEST(PackedDocuments, FillEachSequence) {
  for (const Overrides& draw : draws) {
    const Scenario scenario = with(draw);
    PackedDocuments packed(scenario);
    for (std::int64_t number = 0; number < 200; ++number) {
      std::int64_t tokens = 0;
      for (const PackedDocument& document : packed.of_sequence(number)) {
        EXPECT_GT(document.tokens, document.padding);
        EXPECT_GE(document.padding, 0);
        EXPECT_EQ(document.tokens % scenario.document_parts(), 0);
        tokens += document.tokens;
      }
      EXPECT_EQ(tokens, 1024);
    }
  }
}

TEST(PackedDocuments, AreTheSameInWhateverOrderTheyAreAskedFor) {
  for (const Overrides& draw : draws) {
    const Scenario scenario = with(draw);
    PackedDocuments forth(scenario), back(scenario);
    for (std::int64_t number = 0; number < 64; ++number) forth.of_sequence(number);
    for (std::int64_t number = 63; number >= 0; --number) back.of_sequence(number);
    EXPECT_TRUE(forth.of_sequences(0, 64) == back.of_sequences(0, 64));
  }
}

// Cut: a document of 300 tokens goes on in the next sequence.
TEST(PackedDocuments, CutOnesGoOnInTheNextSequence) {
  PackedDocuments packed(with({"training.documents.length=300"}));
  const auto lengths = [&](std::int64_t number) {
    std::vector<std::int64_t> tokens;
    for (const PackedDocument& document : packed.of_sequence(number)) tokens.push_back(document.tokens);
    return tokens;
  };
  EXPECT_EQ(lengths(0), (std::vector<std::int64_t>{300, 300, 300, 124}));
  EXPECT_EQ(lengths(1), (std::vector<std::int64_t>{176, 300, 300, 248}));
}

TEST(PackedDocuments, WholeOnesLeavePadding) {
  PackedDocuments packed(with({"training.documents.length=300", "training.documents.packing=whole"}));
  const std::vector<PackedDocument>& sequence = packed.of_sequence(5);
  ASSERT_EQ(sequence.size(), 3U);
  EXPECT_EQ(sequence.front().padding, 0);
  EXPECT_EQ(sequence.back().tokens, 424);
  EXPECT_EQ(sequence.back().padding, 124);
}

/// Lengths without padding, how often each.
std::map<std::int64_t, std::int64_t> lengths_in(PackedDocuments& packed, std::int64_t sequences) {
  std::map<std::int64_t, std::int64_t> lengths;
  for (std::int64_t number = 0; number < sequences; ++number)
    for (const PackedDocument& document : packed.of_sequence(number)) ++lengths[document.tokens - document.padding];
  return lengths;
}

// 700 and 300 leave 24 tokens, 700 alone 324: as they come, 700 after 700 begins a sequence.
TEST(PackedDocuments, BestFitsFillTheGaps) {
  const Overrides pairs{"training.documents.lengths=[700, 300]", "training.documents.shares=[1, 1]", "parallelism.tp=8",
                        "parallelism.dp=1"};
  const auto totals = [&](const std::string& packing) {
    Overrides overrides = pairs;
    overrides.push_back("training.documents.packing=" + packing);
    return document_totals(with(overrides));
  };
  EXPECT_LT(totals("best-fit").padding, totals("whole").padding / 2);
  EXPECT_EQ(totals("cut").padding, 0);
  for (const auto& [tokens, documents] : totals("best-fit").unpadded) EXPECT_TRUE(tokens == 700 || tokens == 300) << tokens;
}

// Nobody is cut that fits into a sequence, and those that do not are split into sequences and a rest.
TEST(PackedDocuments, BestFitsSplitWhatIsLongerThanASequenceAlone) {
  PackedDocuments packed(with(
      {"training.documents.lengths=[2500, 400]", "training.documents.packing=best-fit", "parallelism.tp=8", "parallelism.dp=1"}));
  const auto lengths = lengths_in(packed, 640);
  for (const auto& [tokens, documents] : lengths) EXPECT_TRUE(tokens == 1024 || tokens == 452 || tokens == 400) << tokens;
  // Of each document of 2500 there are two sequences and a rest, but for what waits for the next step.
  EXPECT_NEAR(static_cast<double>(lengths.at(1024)), 2 * static_cast<double>(lengths.at(452)), 4);
}

// What fits into none of a step's sequences is in the next step's: each document was drawn, and none is packed twice.
TEST(PackedDocuments, BestFitsPackWhatIsDrawnOnce) {
  const Overrides draw{"training.documents.mean=300", "training.documents.sigma=1", "training.documents.longest=1024",
                       "parallelism.tp=8", "parallelism.dp=1"};
  Overrides fitted = draw, in_one = draw;
  fitted.emplace_back("training.documents.packing=best-fit");
  in_one.emplace_back("training.sequence=1048576");  // in which all of the others lie one after the other
  PackedDocuments packed(with(fitted)), drawn(with(in_one));
  constexpr std::int64_t sequences = 640;
  const auto of_packed = lengths_in(packed, sequences), of_drawn = lengths_in(drawn, 1);
  std::int64_t tokens = 0;
  for (const auto& [length, documents] : of_packed) {
    tokens += length * documents;
    ASSERT_TRUE(of_drawn.contains(length)) << length;
    EXPECT_LE(documents, of_drawn.at(length)) << length;
  }
  EXPECT_GT(static_cast<double>(tokens), 0.95 * sequences * 1024);  // so short ones leave next to no gap
}

// Each document has the smallest power of two of ranks that holds it, or lies in a gap of a larger group; groups fill a sequence.
TEST(PackedDocuments, DynamicGroupsHoldWhatNeedsThem) {
  const Scenario scenario =
      with({"training.documents.mean=120", "training.documents.sigma=1", "training.documents.packing=best-fit",
            "parallelism.cp=8", "parallelism.dp=1", "parallelism.dynamic_cp=true"});
  PackedDocuments packed(scenario);
  constexpr std::int64_t of_rank = 1024 / 8;
  std::set<std::int64_t> sizes;
  std::int64_t tight = 0, all = 0;
  for (std::int64_t number = 0; number < 192; ++number) {
    std::int64_t at = 0;
    for (const PackedDocument& document : packed.of_sequence(number)) {
      const ContextGroup group = packed.group_of(number, at / of_rank);
      EXPECT_EQ(document.ranks, group.ranks);
      EXPECT_EQ(group.first % group.ranks, 0);
      EXPECT_GE(at, group.first * of_rank);
      at += document.tokens;
      EXPECT_LE(at, (group.first + group.ranks) * of_rank);
      EXPECT_EQ(document.tokens % (group.ranks > 1 ? 2 * group.ranks : 1), 0);
      sizes.insert(group.ranks);
      tight += document.tokens - document.padding > group.ranks / 2 * of_rank ? 1 : 0;
      ++all;
    }
    EXPECT_EQ(at, 1024);
    // All ranks of a group have the same one.
    for (std::int64_t rank = 0; rank < 8; ++rank) {
      const ContextGroup group = packed.group_of(number, rank);
      EXPECT_EQ(packed.group_of(number, group.first).ranks, group.ranks);
      EXPECT_LT(rank, group.first + group.ranks);
      EXPECT_GE(rank, group.first);
    }
  }
  EXPECT_EQ(sizes, (std::set<std::int64_t>{1, 2, 4, 8}));
  EXPECT_GT(5 * tight, all);
  const DocumentTotals totals = document_totals(scenario);
  EXPECT_GE(totals.heaviest_rank, 1);
  EXPECT_LT(totals.heaviest_rank, 1.5);
  EXPECT_GT(totals.mean_ranks, 1);
  EXPECT_LT(totals.mean_ranks, 8);
}

TEST(PackedDocuments, BalanceDealsTheSameSequencesOut) {
  for (const std::string packing : {"cut", "best-fit"}) {
    const Overrides draw{"training.documents.mean=300", "training.documents.sigma=1.2", "training.documents.streams=8",
                         "training.documents.packing=" + packing, "training.micro_batch=2"};
    Overrides balanced = draw;
    balanced.emplace_back("training.documents.balance=attention");
    const Scenario before = with(draw), after = with(balanced);
    PackedDocuments own(before), dealt(after);
    for (const std::int64_t step : {0, 1}) {
      std::multiset<std::vector<std::int64_t>> of_own, of_dealt;
      for (std::int64_t number = step * 64; number < (step + 1) * 64; ++number) {
        of_own.insert(own.of_sequences(number, 1).starts);
        of_dealt.insert(dealt.of_sequences(number, 1).starts);
      }
      EXPECT_TRUE(of_own == of_dealt);
    }
    const DocumentTotals apart = document_totals(before), even = document_totals(after);
    EXPECT_TRUE(apart.of_length == even.of_length);
    EXPECT_EQ(apart.padding, even.padding);
    EXPECT_LT(even.heaviest_replica, 1 + (apart.heaviest_replica - 1) / 3);
    EXPECT_LT(even.heaviest_micro_batch, apart.heaviest_micro_batch);
  }
}

// As Megatron-Core does for context parallelism.
TEST(PackedDocuments, ArePaddedToChunksOfContextParallelRanks) {
  const Scenario scenario = with({"training.documents.length=301", "parallelism.cp=4", "parallelism.dp=2"});
  EXPECT_EQ(scenario.parallelism.cp_layout, CpLayout::document_zigzag);
  PackedDocuments packed(scenario);
  EXPECT_EQ(packed.of_sequence(0).front().tokens, 304);
  EXPECT_EQ(packed.of_sequence(0).front().padding, 3);
  EXPECT_EQ(packed.of_sequences(0, 1).parts, 8);
  // What is cut off keeps its padding, which is at its end.
  std::int64_t padding = 0, documents = 0;
  for (std::int64_t number = 0; number < 19; ++number)  // 19 * 1024 = 64 * 304
    for (const PackedDocument& document : packed.of_sequence(number)) padding += document.padding, ++documents;
  EXPECT_EQ(padding, 64 * 3);
  EXPECT_GT(documents, 64);
}

TEST(PackedDocuments, ReplicasReadTheirStreams) {
  const Scenario scenario = with({"training.documents.mean=200", "training.documents.sigma=1", "training.documents.streams=3"});
  PackedDocuments packed(scenario);
  constexpr std::int64_t run = 64 / 8;
  for (std::int64_t replica = 0; replica < 8; ++replica) {
    for (std::int64_t other = 0; other < replica; ++other)
      EXPECT_EQ(packed.of_sequences(replica * run, run) == packed.of_sequences(other * run, run), (replica - other) % 3 == 0);
  }
  EXPECT_FALSE(packed.of_sequences(0, run) == packed.of_sequences(64, run)) << "the next step reads on";
}

// The mean of n draws is off by sigma / sqrt(n) times a few at most.
TEST(PackedDocuments, HaveTheMomentsOfTheirDistribution) {
  const std::int64_t sequence = 1 << 24;
  const auto totals = [&](const Overrides& more) {
    Overrides all{"training.sequence=" + std::to_string(sequence), "training.global_batch=8"};
    all.insert(all.end(), more.begin(), more.end());
    return document_totals(with(all));
  };
  const DocumentTotals lognormal = totals({"training.documents.mean=1000", "training.documents.sigma=0.8"});
  double logs = 0, squares = 0;
  const auto count = static_cast<double>(lognormal.documents());
  for (const auto& [tokens, documents] : lognormal.of_length) {
    logs += static_cast<double>(documents) * std::log(static_cast<double>(tokens)) / count;
    squares += static_cast<double>(documents) * std::pow(std::log(static_cast<double>(tokens)), 2) / count;
  }
  EXPECT_NEAR(static_cast<double>(lognormal.tokens()) / count, 1000, 20);
  EXPECT_NEAR(logs, std::log(1000) - 0.32, 0.02);
  EXPECT_NEAR(std::sqrt(squares - logs * logs), 0.8, 0.02);
  const DocumentTotals two = totals({"training.documents.lengths=[100, 400]", "training.documents.shares=[3, 1]"});
  EXPECT_NEAR(static_cast<double>(two.of_length.at(100)) / static_cast<double>(two.documents()), 0.75, 0.01);
  EXPECT_NEAR(static_cast<double>(two.of_length.at(400)) / static_cast<double>(two.documents()), 0.25, 0.01);
}

TEST(PackedDocuments, TotalsAreSumsOverTheStep) {
  const Scenario whole = with({});
  EXPECT_EQ(document_totals(whole).documents(), 64);
  EXPECT_EQ(document_totals(whole).attention_share(1024), 1);
  const DocumentTotals quarters = document_totals(with({"training.documents.length=256"}));
  EXPECT_EQ(quarters.documents(), 256);
  EXPECT_EQ(quarters.tokens(), 64 * 1024);
  EXPECT_EQ(quarters.longest(), 256);
  EXPECT_DOUBLE_EQ(quarters.attention_share(1024), 0.25);
  EXPECT_DOUBLE_EQ(quarters.heaviest_micro_batch, 1);
  // Cut out of documents of 1536, sequences hold 1024, then 512 and 512 with half the pairs, then 1024: of a replica's eight,
  // five are whole.
  const DocumentTotals turns = document_totals(with({"training.documents.length=1536"}));
  EXPECT_DOUBLE_EQ(turns.heaviest_micro_batch, 1 / ((5 + 3 * 0.5) / 8));
  EXPECT_DOUBLE_EQ(turns.heaviest_replica, 1);
  const DocumentTotals apart =
      document_totals(with({"training.documents.mean=300", "training.documents.sigma=1", "training.documents.streams=8"}));
  EXPECT_GT(apart.heaviest_replica, 1.01);
  EXPECT_GT(apart.heaviest_micro_batch, apart.heaviest_replica);
}

TEST(PackedDocuments, AreReadAsTheyAreWritten) {
  for (const Overrides& draw : draws) {
    const Scenario scenario = with(draw);
    const YamlNode sections = scenario_sections(scenario);
    const Scenario again =
        with({"training=" + to_yaml(*sections.find("training")), "parallelism=" + to_yaml(*sections.find("parallelism"))});
    PackedDocuments packed(scenario), of_again(again);
    EXPECT_TRUE(packed.of_sequences(0, 64) == of_again.of_sequences(0, 64));
    EXPECT_EQ(again.parallelism.cp_layout, scenario.parallelism.cp_layout);
  }
}

TEST(PackedDocuments, RefuseWhatContradictsItself) {
  using testing::HasSubstr;
  const auto refused = [](const Overrides& fields) {
    Overrides overrides;
    for (const std::string& field : fields) overrides.push_back("training.documents." + field);
    return refusal(overrides);
  };
  EXPECT_THAT(refused({"length=10", "mean=10", "sigma=1"}), HasSubstr("expected one of them"));
  EXPECT_THAT(refused({"lengths=[]"}), HasSubstr("expected a length at least"));
  EXPECT_THAT(refused({"lengths=[1, 2]", "shares=[1]"}), HasSubstr("shares are 1 for 2 lengths"));
  EXPECT_THAT(refused({"lengths=[1, 2]", "shares=[0, 0]"}), HasSubstr("all 0"));
  EXPECT_THAT(refused({"mean=10"}), HasSubstr("training.documents.sigma is missing"));
  EXPECT_THAT(refused({"length=10", "sigma=1"}), HasSubstr("sigma without mean"));
  EXPECT_THAT(refused({"packing=whole"}), HasSubstr("packing without length, lengths or mean"));
  const auto dynamic = [](const Overrides& more) {
    Overrides overrides{"training.documents.length=10", "training.documents.packing=best-fit", "parallelism.dynamic_cp=true",
                        "parallelism.cp=2", "parallelism.dp=4"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return refusal(overrides);
  };
  EXPECT_EQ(dynamic({}), "accepted");
  EXPECT_THAT(dynamic({"training.documents.packing=cut"}), HasSubstr("expected training.documents with packing best-fit"));
  EXPECT_THAT(dynamic({"parallelism.cp_method=ulysses"}), HasSubstr("expected cp_method ring or all-gather"));
  EXPECT_THAT(dynamic({"parallelism.cp_layout=zigzag"}), HasSubstr("cp_layout document-zigzag"));
  EXPECT_THAT(dynamic({"training.micro_batch=2"}), HasSubstr("micro_batch 2 with dynamic_cp"));
  EXPECT_THAT(dynamic({"parallelism.cp=1", "parallelism.dp=8"}), HasSubstr("expected one from 2 to 64"));
  EXPECT_THAT(dynamic({"model.moe.experts=8", "model.moe.top_k=2"}), HasSubstr("dynamic_cp with experts"));
  EXPECT_THAT(refused({"balance=attention"}), HasSubstr("balance without length, lengths or mean"));
  EXPECT_THAT(refused({"length=10", "packing=worst-fit"}), HasSubstr("best-fit"));
  EXPECT_THAT(refused({"length=10", "streams=9"}), HasSubstr("9 streams of documents for 8 data-parallel replicas"));
  EXPECT_THAT(refusal({"parallelism.cp_layout=document-zigzag"}), HasSubstr("without training.documents"));
  EXPECT_THAT(refusal({"training.documents.length=10", "model.rotary=false", "model.max_positions=1024", "parallelism.cp=2",
                       "parallelism.dp=4"}),
              HasSubstr("expected cp_layout zigzag"));
}

}  // namespace
}  // namespace tandem::scenarios::packed_documents_test
