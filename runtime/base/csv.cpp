#include "runtime/base/csv.h"

#include <string_view>
#include <utility>

namespace tandem {
namespace {

class CsvParser {
 public:
  CsvParser(const std::string& text, const std::string& file) : text_(text), file_(file) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text.starts_with(byte_order_mark)) at_ = line_start_ = byte_order_mark.size();
  }

  /// Returns the cells of the next line that has any; none at the end.
  std::vector<CsvCell> row() {
    while (at_ < text_.size() && at_line_end()) end_line();
    std::vector<CsvCell> cells;
    if (at_ == text_.size()) return cells;
    cells.push_back(cell());
    while (at_ < text_.size() && text_[at_] == ',') {
      ++at_;
      cells.push_back(cell());
    }
    if (at_ < text_.size()) end_line();
    return cells;
  }

 private:
  bool at_line_end() const { return text_[at_] == '\n' || text_[at_] == '\r'; }
  bool at_cell_end() const { return at_ == text_.size() || text_[at_] == ',' || at_line_end(); }

  Place here() const { return {.file = file_, .line = line_, .column = static_cast<int>(at_ - line_start_) + 1}; }

  void end_line() {
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    ++at_;
    ++line_;
    line_start_ = at_;
  }

  CsvCell cell() {
    CsvCell cell{.text = {}, .place = here()};
    if (at_ < text_.size() && text_[at_] == '"') return quoted(std::move(cell));
    while (!at_cell_end()) cell.text += text_[at_++];
    return cell;
  }

  CsvCell quoted(CsvCell cell) {
    ++at_;
    while (true) {
      if (at_ == text_.size()) throw InputError(cell.place, "this quote never closes, expected another one");
      if (text_[at_] == '"' && (at_ + 1 == text_.size() || text_[at_ + 1] != '"')) break;
      if (text_[at_] == '"') ++at_;  // two stand for one
      if (at_line_end()) {
        cell.text += '\n';
        end_line();
      } else {
        cell.text += text_[at_++];
      }
    }
    ++at_;
    if (!at_cell_end()) throw InputError(here(), "text after the quote that closes its cell, expected a comma or the line's end");
    return cell;
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace

CsvTable parse_csv(const std::string& text, const std::string& file) {
  CsvParser parser(text, file);
  CsvTable table{.header = parser.row(), .rows = {}};
  const std::size_t columns = table.header.size();
  for (std::vector<CsvCell> row = parser.row(); !row.empty(); row = parser.row()) {
    if (row.size() != columns) {
      const Place& place = row.size() > columns ? row[columns].place : row.back().place;
      throw InputError(place, "the row has " + std::to_string(row.size()) + " cells, expected " + std::to_string(columns) +
                                  ", one for each column");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace tandem
