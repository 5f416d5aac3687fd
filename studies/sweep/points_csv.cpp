#include "studies/sweep/points_csv.h"

#include <algorithm>

#include "runtime/base/csv.h"

namespace tandem::studies {
namespace {

std::vector<NamedCell> csv_cells(const PointRow& row) {
  std::vector<NamedCell> cells = {{"point", static_cast<std::int64_t>(row.point)}};
  cells.insert(cells.end(), row.values.begin(), row.values.end());
  cells.push_back({"status", std::string(name_of(row.status))});
  cells.push_back({"message", row.message});
  for (const NamedCell& cell : result_cells(row.json))
    if (!cell.is_list) cells.push_back(cell);
  cells.push_back({"started", row.started});
  cells.push_back({"seconds", row.seconds});
  cells.push_back({"hash", row.hash});
  return cells;
}

}  // namespace

std::string to_csv(const std::vector<std::string>& paths, const std::vector<PointRow>& rows) {
  std::vector<std::string> columns = {"point"};
  columns.insert(columns.end(), paths.begin(), paths.end());
  columns.insert(columns.end(), {"status", "message"});
  const std::size_t first_of_results = columns.size();
  for (const PointRow& row : rows)
    for (const NamedCell& cell : result_cells(row.json))
      if (!cell.is_list &&
          std::find(columns.begin() + static_cast<std::ptrdiff_t>(first_of_results), columns.end(), cell.name) == columns.end())
        columns.push_back(cell.name);
  columns.insert(columns.end(), {"started", "seconds", "hash"});

  std::string out;
  for (const std::string& column : columns) out += (out.empty() ? "" : ",") + csv_field(column);
  out += '\n';
  for (const PointRow& row : rows) {
    const std::vector<NamedCell> cells = csv_cells(row);
    std::string line;
    for (const std::string& column : columns) line += csv_field(text_of(cells, column)) + ",";
    line.back() = '\n';
    out += line;
  }
  return out;
}

}  // namespace tandem::studies
