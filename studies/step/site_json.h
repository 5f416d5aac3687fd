#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/dag/site.h"
#include "studies/step/json_value.h"

namespace tandem::studies {

nlohmann::ordered_json to_json_object(const Site& site);
/// Throws InputError.
Site site_from_json(const JsonValue& json);

}  // namespace tandem::studies
