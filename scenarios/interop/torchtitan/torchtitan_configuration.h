#pragma once

#include "scenarios/interop/foreign_tree.h"
#include "scenarios/interop/interop.h"

namespace tandem::scenarios {

/// Beside `converters`, after normalizing: true where one takes some of the layers alone.
inline constexpr const char* some_layers = "some_layers";

/// What a configuration of TorchTitan is written in.
enum class TitanForm : std::uint8_t {
  toml,   ///< a job of 0.1 and 0.2, or what a later one was dumped to
  json,   ///< what `debug.save_config_file` writes
  python  ///< a function of config_registry.py, 0.3 and later
};

/// Parses the text into sections and fields, whatever its form. Python is not run: see python_recipe.h. Throws InputError.
YamlNode parse_torchtitan(const ForeignText& from, TitanForm& form);

/// Turns what today's classes and dumps say in other words into those of 0.2: the kind of activation checkpointing, converters of
/// the model, the registry's model.
void normalize_torchtitan(YamlNode& root, TitanForm form, const std::string& file);

}  // namespace tandem::scenarios
