#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::scenarios {

/// A row of tokenizers.csv.
struct KnownTokenizer {
  std::string name;            ///< "Qwen3"
  std::int64_t tokens = 0;     ///< its own and the added ones: what a framework pads that asks the tokenizer; 0: not known
  std::int64_t embedding = 0;  ///< rows of the released models' embedding, `vocab_size` of their config.json

  /// What a framework pads, or where that is not known the embedding's rows.
  std::int64_t to_be_padded() const { return tokens > 0 ? tokens : embedding; }
};

/// Returns the tokenizer that a framework's type names by itself ("GPT2BPETokenizer"), or nothing.
std::optional<KnownTokenizer> tokenizer_of_type(std::string_view type);

/// Returns the tokenizer that Pai-Megatron-Patch names so, with the tokens that are its own, without added ones.
std::optional<KnownTokenizer> tokenizer_of_patch(std::string_view type);

/// Returns the tokenizer of a model's name or of a path that holds one ("unsloth/DeepSeek-V3", "/data/Meta-Llama-3-8B"), the
/// longest name that is in it; spelling of case, dashes and underscores does not count. Nothing where none is.
std::optional<KnownTokenizer> tokenizer_of_model(std::string_view path);

}  // namespace tandem::scenarios
