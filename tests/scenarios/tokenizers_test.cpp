// The table of known tokenizers.
#include "scenarios/interop/megatron/tokenizers.h"

#include <gtest/gtest.h>

namespace tandem::scenarios::tokenizers_test {
namespace {

TEST(Tokenizers, AreKnownByTheirType) {
  EXPECT_EQ(tokenizer_of_type("GPT2BPETokenizer")->tokens, 50'257);
  EXPECT_FALSE(tokenizer_of_type("HuggingFaceTokenizer"));
  EXPECT_FALSE(tokenizer_of_type("gpt2"));
}

TEST(Tokenizers, AreKnownByAModelInAPath) {
  EXPECT_EQ(tokenizer_of_model("unsloth/DeepSeek-V3")->embedding, 129'280);
  EXPECT_EQ(tokenizer_of_model("/data/meta_llama_3.1-8b/tokenizer.json")->tokens, 128'256);
  EXPECT_EQ(tokenizer_of_model("Qwen/Qwen2.5-7B")->name, "Qwen2.5");
  EXPECT_EQ(tokenizer_of_model("Qwen/Qwen2-57B-A14B")->name, "Qwen2-57B");
  EXPECT_EQ(tokenizer_of_model("openai/gpt-oss-20b")->to_be_padded(), 201'088);  // whose number of tokens is not in the table
  EXPECT_FALSE(tokenizer_of_model("/checkpoints/tokenizer.model"));
  EXPECT_FALSE(tokenizer_of_model(""));
}

}  // namespace
}  // namespace tandem::scenarios::tokenizers_test
