#pragma once

#include <string>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

// What a scenario has that names a preset and changes nothing in it, for those who fill in a scenario without a document. Both
// throw InputError where there is no preset of that name.

ModelSpec model_preset(const std::string& name);
ClusterSpec cluster_preset(const std::string& name);  ///< `gpus` is 0

}  // namespace tandem::scenarios
