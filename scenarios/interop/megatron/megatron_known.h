#pragma once

#include <string>
#include <string_view>

namespace tandem::scenarios {

/// What an argument that no scenario expresses does to a step: a row of megatron_known.csv.
struct ArgumentEffect {
  enum class Kind : std::uint8_t {
    none,     ///< nothing, or nothing to speak of
    changes,  ///< something that the scenario then lacks
    forbids,  ///< it makes another model or program of it
    unknown   ///< it is in no row
  };
  Kind kind = Kind::unknown;
  std::string why = {};  ///< one clause
};

/// `name`: without dashes.
ArgumentEffect effect_of_argument(std::string_view name);

/// Returns the name that Megatron-LM has today for an older one, or for one of those who build upon it; else `name`.
std::string usual_name(std::string_view name);

}  // namespace tandem::scenarios
