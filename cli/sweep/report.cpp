#include "cli/sweep/report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tandem {
namespace {

const NamedCell* find(const std::vector<NamedCell>& cells, std::string_view name) {
  const auto found = std::ranges::find(cells, name, &NamedCell::name);
  return found == cells.end() ? nullptr : &*found;
}

std::string text_of(const std::vector<NamedCell>& cells, std::string_view name) {
  const NamedCell* cell = find(cells, name);
  return cell == nullptr ? "" : to_text(cell->cell);
}

std::string number_of(const std::vector<NamedCell>& cells, std::string_view name, const char* format, double unit = 1) {
  const NamedCell* cell = find(cells, name);
  const auto* number = cell == nullptr ? nullptr : std::get_if<double>(&cell->cell);
  return number == nullptr ? "" : fmt::format(fmt::runtime(format), *number / unit);
}

std::vector<std::string> table_line(const std::vector<std::string>& paths, const PointRow& row) {
  const std::vector<NamedCell> result = result_cells(row.json);
  std::vector<std::string> line;
  for (const std::string& path : paths) line.push_back(text_of(row.values, path));
  line.push_back(text_of(result, "gpus"));
  line.push_back(number_of(result, "step_time_s", "{:.6f}"));
  line.push_back(number_of(result, "mfu", "{:.1f} %", 0.01));
  line.emplace_back(name_of(row.status));
  line.push_back(row.message);
  return line;
}

std::string aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string out;
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t i = 0; i + 1 < line.size(); ++i) text += fmt::format("  {:>{}}", line[i], widths[i]);
    out += text + (line.back().empty() ? "" : "  " + line.back()) + "\n";
  }
  return out;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

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

std::string to_table(const std::vector<std::string>& paths, const std::vector<PointRow>& rows) {
  constexpr std::size_t most_lines = 100;
  std::vector<std::vector<std::string>> lines = {paths};
  for (const char* name : {"GPUs", "step time, s", "MFU", "status", ""}) lines.front().emplace_back(name);
  for (std::size_t i = 0; i < std::min(rows.size(), most_lines); ++i) lines.push_back(table_line(paths, rows[i]));
  const std::string more = rows.size() > most_lines ? fmt::format("  ... and {} more\n", rows.size() - most_lines) : "";
  return aligned(lines) + more;
}

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

}  // namespace tandem
