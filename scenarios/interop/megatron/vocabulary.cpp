#include "scenarios/interop/megatron/vocabulary.h"

#include <optional>

#include "runtime/base/nearest.h"
#include "scenarios/interop/megatron/tokenizers.h"

namespace tandem::scenarios {
namespace {

constexpr std::int64_t stand_in = 2;  // for the reader of arguments, which wants one

}  // namespace

void Vocabulary::take(ForeignTree& tree, const std::string& from, bool padded) {
  if (!tree.has(from)) return;
  entries = tree.positive(from, 0);
  pads = padded;
  path = from;
}

void Vocabulary::by_name(ForeignTree& tree, const std::string& from) {
  if (!tree.has(from)) return;
  const auto known = tokenizer_of_model(tree.text(from, ""));
  if (!known) return;
  entries = known->to_be_padded();
  path = from;
  assumption =
      "a vocabulary of " + grouped(entries) + ", as the tokenizer " + excerpt(tree.text(from, "")) + " has (--set model.vocab)";
}

void Vocabulary::by_type(ForeignTree& tree, const std::string& from) {
  if (!tree.has(from)) return;
  const auto known = tokenizer_of_type(tree.text(from, ""));
  if (!known) return;
  entries = known->to_be_padded();
  path = from;
  assumption = "a vocabulary of " + grouped(entries) + ", as " + excerpt(tree.text(from, "")) + " has (--set model.vocab)";
}

void Vocabulary::put_into(MegatronSettings& settings) const {
  if (entries == 0) return settings.set("padded-vocab-size", {std::to_string(stand_in)}, field);
  settings.set(pads ? "vocab-size" : "padded-vocab-size", {std::to_string(entries)}, path);
  if (pads && !unit_path.empty()) settings.take_value("make-vocab-size-divisible-by", unit_path);
}

void Vocabulary::finish(Imported& imported) const {
  if (!assumption.empty()) imported.assumed.push_back(assumption);
  if (entries > 0) return;
  imported.document.find("model")->erase("vocab");
  imported.missing.push_back({.field = "model.vocab",
                              .place = place,
                              .sentence = field +
                                          " does not tell how large the vocabulary is, expected --set model.vocab=ENTRIES, "
                                          "padding included"});
}

}  // namespace tandem::scenarios
