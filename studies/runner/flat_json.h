#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::studies {

/// A value of a table's cell: nothing, a number, or text. Truth values are 1 and 0.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;

struct NamedCell {
  std::string name;
  Cell cell;
  bool is_list = false;  ///< the text is a JSON list
};

/// Returns the cell of that name, or null.
const NamedCell* find_cell(const std::vector<NamedCell>& cells, std::string_view name);

/// Returns the text of the cell of that name, empty where there is none.
std::string text_of(const std::vector<NamedCell>& cells, std::string_view name);

/// Returns the JSON result as one cell per key, in the order of the keys, named by the path: "time_s.exposed.tp". Lists stay JSON
/// text. Throws std::runtime_error where the text is not a JSON object.
std::vector<NamedCell> flattened(const std::string& json_text);

/// Returns the value of a field: a number where the field is one, the YAML text otherwise.
Cell cell_of(const YamlNode& value);

/// Returns the text of a cell. Numbers have as many digits as it takes to read them back.
std::string to_text(const Cell& cell);

}  // namespace tandem::studies
