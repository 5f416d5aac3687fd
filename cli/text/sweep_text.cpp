#include "cli/text/sweep_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "cli/terminal/page.h"

namespace tandem::cli {
namespace {

std::string number_of(const std::vector<NamedCell>& cells, std::string_view name, const char* format, double unit = 1) {
  const NamedCell* cell = find_cell(cells, name);
  const auto* number = cell == nullptr ? nullptr : std::get_if<double>(&cell->cell);
  return number == nullptr ? "" : fmt::format(fmt::runtime(format), *number / unit);
}

Style style_of(PointStatus status) {
  if (status == PointStatus::done) return Style::green;
  return status == PointStatus::failed ? Style::red : Style::yellow;
}

std::vector<TextCell> table_line(const std::vector<std::string>& paths, const PointRow& row) {
  const std::vector<NamedCell> result = result_cells(row.json);
  std::vector<TextCell> line;
  for (const std::string& path : paths) line.push_back({text_of(row.values, path)});
  line.push_back({text_of(result, "gpus")});
  line.push_back({number_of(result, "step_time_s", "{:.6f}"), Style::strong});
  line.push_back({number_of(result, "mfu", "{:.1f} %", 0.01)});
  line.push_back({std::string(name_of(row.status)), style_of(row.status)});
  line.push_back({row.message});
  return line;
}

Table table_of(const std::vector<std::string>& names, const std::vector<std::vector<TextCell>>& lines) {
  std::vector<Column> columns;
  for (const std::string& name : names) columns.push_back({name});
  columns.insert(columns.end(), {{"GPUs", Column::Kind::number, 1}, {"step time, s"}, {"MFU", Column::Kind::number, 2}});
  columns.insert(columns.end(), {{"status"}, {"", Column::Kind::note}});
  Table table(std::move(columns));
  for (const std::vector<TextCell>& line : lines) table.add(line);
  return table;
}

/// "dp" of "parallelism.dp", unless two would be called the same.
std::vector<std::string> last_parts(const std::vector<std::string>& paths) {
  std::vector<std::string> parts;
  for (const std::string& path : paths) parts.push_back(path.substr(path.rfind('.') + 1));  // npos + 1 is 0
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (std::ranges::count(parts, parts[i]) > 1) return paths;
  return parts;
}

}  // namespace

std::string to_table(const std::vector<std::string>& paths, const std::vector<PointRow>& rows, const Screen& screen) {
  constexpr std::size_t most_lines = 100;
  std::vector<std::vector<TextCell>> lines;
  for (std::size_t i = 0; i < std::min(rows.size(), most_lines); ++i) lines.push_back(table_line(paths, rows[i]));
  Table table = table_of(paths, lines);
  if (table.width() > screen.width) table = table_of(last_parts(paths), lines);
  Page page(screen);
  page.table(table);
  if (rows.size() > most_lines) page.line(fmt::format("... and {} more", rows.size() - most_lines), Style::faint, 2);
  return page.text();
}

std::string refusals_text(const std::vector<std::string>& sentences) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(sentences.size(), most); ++i) text += "tandem: " + sentences[i] + "\n";
  if (sentences.size() > most) text += fmt::format("tandem: {} more like these\n", sentences.size() - most);
  return text;
}

std::string summary_text(const std::vector<PointRow>& rows, std::size_t kept, const std::string& file) {
  std::string text = fmt::format("{} points", rows.size());
  for (const PointStatus status : {PointStatus::done, PointStatus::oom, PointStatus::refused, PointStatus::failed}) {
    const auto count = std::ranges::count(rows, status, &PointRow::status);
    if (count > 0) text += fmt::format(", {} {}", count, name_of(status));
  }
  return fmt::format("{}; {} of them from before; in {}\n", text, kept, file);
}

}  // namespace tandem::cli
