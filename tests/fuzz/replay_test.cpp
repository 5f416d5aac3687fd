// Without libFuzzer: every input that once was a finding, the committed corpora, and inputs that the mutators make.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/fuzz/message_mutator.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/tree_mutator.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::fuzz::replay_test {
namespace {

namespace fs = std::filesystem;

const fs::path here = TANDEM_SOURCE_DIR "/tests/fuzz";

/// Reads the input; what it throws besides InputError fails the test.
Answer tried(const Target& target, const std::string& bytes, const std::string& name) {
  try {
    return answer_of(target, bytes);
  } catch (const std::exception& error) {
    ADD_FAILURE() << target.name << ": " << name << " is no refusal: " << error.what();
    return {};
  }
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// What belongs to no target would never be replayed.
TEST(Fuzzers, EveryFolderIsATargets) {
  std::set<std::string> names;
  for (const Target& target : targets()) EXPECT_TRUE(names.insert(target.name).second) << target.name;
  for (const char* kind : {"corpus", "regressions"})
    for (const fs::path& folder : files_of(here / kind))
      EXPECT_TRUE(names.contains(folder.filename())) << folder << " is no target's";
}

TEST(Fuzzers, WhatOnceWasAFindingIsReadOrRefused) {
  for (const Target& target : targets())
    for (const fs::path& file : files_of(here / "regressions" / target.name)) {
      const Answer answer = tried(target, read_all(file), file.filename());
      EXPECT_TRUE(answer.taken || answer.refusal.size() > 10U) << file;
    }
}

TEST(Fuzzers, CorporaAreReadOrRefused) {
  for (const Target& target : targets())
    for (const fs::path& file : files_of(here / "corpus" / target.name)) tried(target, read_all(file), file.filename());
}

/// So that a fuzzer begins with what is read, not with a refusal.
TEST(Fuzzers, EveryTargetHasAnInputThatIsTaken) {
  for (const Target& target : targets()) {
    std::vector<std::string> inputs;
    if (target.seeds) inputs = target.seeds();
    for (const fs::path& file : files_of(here / "corpus" / target.name)) inputs.push_back(read_all(file));
    EXPECT_TRUE(std::ranges::any_of(inputs, [&](const std::string& bytes) { return tried(target, bytes, "a seed").taken; }))
        << target.name << " takes none of its " << inputs.size() << " seeds"
        << (inputs.empty() ? "" : ": " + tried(target, inputs.front(), "a seed").refusal);
  }
}

TEST(Fuzzers, WhatMutatorsMakeIsReadOrRefused) {
  for (const Target& target : targets()) {
    if (!target.mutate) continue;
    const std::vector<std::string> words = words_of(target);
    Random random(7);
    int made = 0, taken = 0;
    for (std::string bytes : target.seeds())
      for (int round = 0; round < 4; ++round) {
        const std::string changed = target.mutate(bytes, random, words);
        if (changed.empty()) continue;
        ++made;
        taken += tried(target, changed, "a mutation").taken ? 1 : 0;
        if (round % 2 == 0) bytes = changed;
      }
    EXPECT_GT(made, 0) << target.name << ": nothing was changed";
    const bool keeps_the_syntax = target.name == "yaml" || target.name == "json";
    EXPECT_TRUE(keeps_the_syntax || made > taken) << target.name << ": no change was refused";
  }
}

/// A mutator that breaks the syntax would be no better than flipped bits.
TEST(Mutators, LeaveTheSyntaxWhole) {
  for (const Target& target : targets()) {
    if (target.name != "yaml" && target.name != "json") continue;
    Random random(3);
    for (std::string bytes : target.seeds())
      for (int round = 0; round < 50; ++round) {
        const std::string changed = target.mutate(bytes, random, {"model", "a b", ":"});
        ASSERT_FALSE(changed.empty());
        const Answer answer = answer_of(target, changed);
        // Deeper and larger than a document may be is all that a change of the tree can make of it.
        const bool is_too_large =
            answer.refusal.find("nested deeper") != std::string::npos || answer.refusal.find("more than") != std::string::npos;
        EXPECT_TRUE(answer.taken || is_too_large) << answer.refusal;
        if (answer.taken) bytes = changed;
      }
  }
}

TEST(Mutators, OfOwnFilesSealWhatTheyChange) {
  int sealed = 0;
  for (const Target& target : targets()) {
    if (target.name != "dag" && target.name != "timeline" && target.name != "profile") continue;
    Random random(5);
    for (const std::string& bytes : target.seeds())
      for (int round = 0; round < 30; ++round) {
        const Answer answer = tried(target, target.mutate(bytes, random, {}), "a mutation");
        EXPECT_EQ(answer.refusal.find("checksum"), std::string::npos) << answer.refusal;
        ++sealed;
      }
  }
  EXPECT_GE(sealed, 90);
}

TEST(Dictionaries, HoldTheNamesOfFields) {
  for (const Target& target : targets()) {
    if (target.name != "scenario") continue;
    const std::vector<std::string> words = words_of(target);
    for (const char* word : {"parallelism", "kv_heads", "nvlink_GBps", "recompute", "interleaved-1f1b"})
      EXPECT_TRUE(std::ranges::find(words, word) != words.end()) << word;
  }
}

}  // namespace
}  // namespace tandem::fuzz::replay_test
