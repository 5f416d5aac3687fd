#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tandem::scenarios {

// What the fields of a config.json mean that no field of a model takes (hf_model.cpp has those that one does).

/// Whether a field changes no training step: names of tokens, files and classes, how weights begin, what generation does, dropout
/// (training.hidden_dropout and attention_dropout say it), how rotary angles are scaled.
bool changes_no_step(std::string_view field);

/// What the model would be without the field's meaning.
enum class HfWithout : std::uint8_t {
  the_same,  ///< in all that takes time worth a number; import says it
  another    ///< refused
};

/// A field that a model of Tandem has nothing for, where it is set: not null, false, 0 or empty.
struct HfNotModelled {
  std::string_view field;
  HfWithout without = HfWithout::the_same;
  std::string_view sentence;  ///< what is not modelled, as "the encoder of images is left out"
};
std::span<const HfNotModelled> hf_not_modelled();

}  // namespace tandem::scenarios
