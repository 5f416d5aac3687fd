#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

// Functions that write a mapping of a scenario field by field. `place` is where the value comes from, for errors about it.

void put(YamlNode& mapping, std::string_view key, YamlNode value);
void put(YamlNode& mapping, std::string_view key, std::string_view text, const Place& place = {});
void put(YamlNode& mapping, std::string_view key, const char* text, const Place& place = {});
void put(YamlNode& mapping, std::string_view key, std::int64_t number, const Place& place = {});
void put(YamlNode& mapping, std::string_view key, double number, const Place& place = {});
void put(YamlNode& mapping, std::string_view key, bool value, const Place& place = {});

/// Returns a list of scalars.
YamlNode list_of(const std::vector<std::string>& texts);

/// Returns the mapping at `key`, which is made where there is none.
YamlNode& section_of(YamlNode& mapping, std::string_view key, const Place& place = {});

}  // namespace tandem::scenarios
