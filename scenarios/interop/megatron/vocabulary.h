#pragma once

#include <cstdint>
#include <string>

#include "scenarios/interop/foreign_tree.h"
#include "scenarios/interop/interop.h"
#include "scenarios/interop/megatron/megatron_settings.h"

namespace tandem::scenarios {

/// What a file in Megatron-Core's words says of the vocabulary: its size, or the tokenizer that has it. Where neither is known,
/// the import needs model.vocab from the command line.
struct Vocabulary {
  Place place;                  ///< where the file would say it
  std::string field;            ///< that would say it, for the sentence: "model.vocab_size"
  std::string unit_path = {};   ///< of make_vocab_size_divisible_by
  std::int64_t entries = 0;     ///< 0: not known
  bool pads = true;             ///< to a multiple of the unit times tp
  std::string path = {};        ///< where the size comes from
  std::string assumption = {};  ///< the sentence about it, where it comes from a tokenizer's name

  void take(ForeignTree& tree, const std::string& from, bool padded);
  void by_name(ForeignTree& tree, const std::string& from);
  void by_type(ForeignTree& tree, const std::string& from);

  void put_into(MegatronSettings& settings) const;
  void finish(Imported& imported) const;
};

}  // namespace tandem::scenarios
