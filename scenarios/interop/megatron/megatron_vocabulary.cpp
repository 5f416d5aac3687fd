#include "runtime/base/divide_up.h"
#include "runtime/base/nearest.h"
#include "scenarios/interop/megatron/megatron_reader.h"
#include "scenarios/interop/megatron/tokenizers.h"

namespace tandem::scenarios {

/// Rows of the embedding: the tokens, up to a multiple of --make-vocab-size-divisible-by times tensor parallelism
/// (megatron/core/tokenizers/utils/build_tokenizer.py, vocab_size_with_padding).
std::int64_t MegatronReader::padded(std::int64_t tokens, const std::string& what) {
  if (tokens < 1)
    throw InputError(arguments_.place("vocab-size"),
                     "the vocabulary has " + std::to_string(tokens) + " tokens, expected 1 or more");
  const std::int64_t unit = positive("make-vocab-size-divisible-by", 128) * tp_;
  const std::int64_t rows = round_up(tokens, unit);
  if (!what.empty())
    out_.assumed.push_back("a vocabulary of " + grouped(rows) + ": " + what + " " + grouped(tokens) + " tokens, in whole " +
                           grouped(unit) + "s (--set model.vocab=N)");
  return rows;
}

/// Pai-Megatron-Patch (megatron_patch/tokenizer/__init__.py) adds to the tokenizer's own tokens, and pads nothing.
bool MegatronReader::patched_vocabulary(YamlNode& node) {
  const std::string type = arguments_.text("patch-tokenizer-type", "");
  const auto base = tokenizer_of_patch(type);
  if (!base || !arguments_.has("extra-vocab-size")) return false;
  const std::int64_t rows = base->tokens + arguments_.integer("extra-vocab-size", 0);
  out_.assumed.push_back("a vocabulary of " + grouped(rows) + ": " + type + " has " + grouped(base->tokens) +
                         " tokens, and --extra-vocab-size adds to them (--set model.vocab=N)");
  put(node, "vocab", rows, arguments_.place("extra-vocab-size"));
  return true;
}

void MegatronReader::vocabulary(YamlNode& node) {
  if (arguments_.has("padded-vocab-size"))
    return put(node, "vocab", arguments_.integer("padded-vocab-size", 0), arguments_.place("padded-vocab-size"));
  const std::string type = arguments_.text("tokenizer-type", "");
  if (arguments_.has("vocab-size")) {
    // NullTokenizer adds a token that ends documents (megatron/core/tokenizers/text/libraries/null_tokenizer.py).
    const bool adds_one = type == "NullTokenizer" || type == "NullMultimodalTokenizer";
    const std::int64_t tokens = arguments_.integer("vocab-size", 0) + (adds_one ? 1 : 0);
    return put(node, "vocab", padded(tokens, adds_one ? type + " adds one to --vocab-size, which makes" : ""),
               arguments_.place("vocab-size"));
  }
  if (patched_vocabulary(node)) return;
  if (const auto known = tokenizer_of_type(type))
    return put(node, "vocab", padded(known->to_be_padded(), "--tokenizer-type " + type + " has"),
               arguments_.place("tokenizer-type"));
  for (const char* from : {"tokenizer-model", "tokenizer-name-or-path", "hf-checkpoint"}) {
    if (!arguments_.has(from)) continue;
    const std::string path = arguments_.known_text(from);
    if (const auto known = tokenizer_of_model(path))
      return put(node, "vocab", padded(known->to_be_padded(), "the tokenizer of " + known->name + " has"),
                 arguments_.place(from));
  }
  if (type.empty() && arguments_.launch().program == "pretrain_gpt.py")  // whose default it is
    return put(node, "vocab",
               padded(tokenizer_of_type("GPT2BPETokenizer")->tokens, "GPT2BPETokenizer, pretrain_gpt.py's default, has"),
               {.file = file_});
  miss("model.vocab",
       "neither --vocab-size nor --padded-vocab-size is there, and " +
           (type.empty() ? std::string("no tokenizer is named") : "the vocabulary of its tokenizer, " + type + ", is not known") +
           ", expected --set model.vocab=N, the rows of the embedding");
}

}  // namespace tandem::scenarios
