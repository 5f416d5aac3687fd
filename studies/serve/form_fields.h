#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// A row of the table of fields that a page lets somebody change.
struct FieldRow {
  std::string_view path;
  /// What the scenario has there.
  std::string (*value)(const Scenario&);
  /// The values worth asking about, in the order in which a slider shows them; the scenario's own need not be among them.
  std::vector<std::string> (*candidates)(const Scenario&);
  /// Changes that are tried together with a value that is refused without them, each list by itself.
  std::vector<std::vector<std::string>> (*companions)(const Scenario&, const std::string& value) = nullptr;
};

std::span<const FieldRow> form_fields();

}  // namespace tandem::studies
