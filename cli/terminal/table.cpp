#include "cli/terminal/table.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "cli/terminal/markdown.h"
#include "cli/terminal/page.h"
#include "runtime/base/printable.h"

namespace tandem::cli {
namespace {

constexpr std::size_t indent = 2, gap = 2;
constexpr std::size_t shortest_bar = 10;
constexpr std::size_t narrowest_note = 24, shortest_name = 16;

std::size_t total(const std::vector<std::size_t>& widths) {
  std::size_t sum = indent;
  for (const std::size_t width : widths) sum += width > 0 ? width + gap : 0;
  return sum - gap;
}

/// How wide each column is; 0 where it is left out.
class Widths {
 public:
  Widths(const std::vector<Column>& columns, std::vector<std::size_t> natural, std::size_t screen)
      : columns_(columns), natural_(std::move(natural)), widths_(natural_), screen_(screen) {
    const auto takes_off = [this] {
      narrow(Column::Kind::bar, shortest_bar);
      narrow(Column::Kind::note, narrowest_note);
    };
    takes_off();
    for (std::size_t next = first_to_go(); excess() > 0 && next < columns_.size(); next = first_to_go()) {
      for (std::size_t i = 0; i < widths_.size(); ++i)
        if (widths_[i] > 0) widths_[i] = natural_[i];  // what is left may have its room back
      widths_[next] = 0;
      takes_off();
    }
    narrow(Column::Kind::name, shortest_name);
  }

  std::size_t operator[](std::size_t column) const { return widths_[column]; }

 private:
  const std::vector<Column>& columns_;
  std::vector<std::size_t> natural_, widths_;
  std::size_t screen_;

  std::size_t excess() const {
    const std::size_t width = total(widths_);
    return width > screen_ ? width - screen_ : 0;
  }

  void narrow(Column::Kind kind, std::size_t least) {
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      if (columns_[i].kind == kind && widths_[i] > least)
        widths_[i] = std::max(least, widths_[i] - std::min(excess(), widths_[i]));
    }
  }

  std::size_t first_to_go() const {
    std::size_t found = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const bool may_go = widths_[i] > 0 && columns_[i].left_out > 0;
      if (may_go && (found == columns_.size() || columns_[i].left_out < columns_[found].left_out)) found = i;
    }
    return found;
  }
};

std::vector<std::string> lines_of(const TextCell& cell, Column::Kind kind, std::size_t width) {
  if (kind == Column::Kind::note) return wrapped(cell.text, width);
  if (kind == Column::Kind::number) return {cell.text};
  if (kind == Column::Kind::name || !cell.text.empty()) return {shortened(cell.text, width)};  // a bar's header, too
  const double length = std::clamp(cell.bar, 0.0, 1.0) * static_cast<double>(width);
  return {std::string(static_cast<std::size_t>(std::lround(length)), cell.mark)};
}

/// One line on the screen, of cells whose spaces in between are only written when something follows.
class Line {
 public:
  explicit Line(const Screen& screen) : screen_(screen) {}

  void put(const std::string& text, Style style, std::size_t width, bool to_the_right) {
    const std::size_t columns = columns_of(text), space = width > columns ? width - columns : 0;
    if (to_the_right) spaces_ += space;
    if (!text.empty()) {
      text_ += std::string(std::exchange(spaces_, 0), ' ') + painted(text, style, screen_);
    }
    spaces_ += (to_the_right ? 0 : space) + gap;
  }
  std::string text() const { return text_ + '\n'; }

 private:
  const Screen& screen_;
  std::size_t spaces_ = indent;
  std::string text_;
};

/// As many lines as its highest cell has.
std::string row_text(const std::vector<Column>& columns, const std::vector<TextCell>& row, const Widths& widths,
                     const Screen& screen) {
  std::vector<std::vector<std::string>> cells;
  std::size_t height = 1;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    cells.push_back(widths[i] > 0 ? lines_of(row[i], columns[i].kind, widths[i]) : std::vector<std::string>());
    height = std::max(height, cells.back().size());
  }
  std::string out;
  for (std::size_t k = 0; k < height; ++k) {
    Line line(screen);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string& text = k < cells[i].size() ? cells[i][k] : "";
      if (widths[i] > 0) line.put(text, row[i].style, widths[i], columns[i].kind == Column::Kind::number);
    }
    out += line.text();
  }
  return out;
}

}  // namespace

TextCell bar_of(double share, Style style, char mark) { return {.text = {}, .style = style, .bar = share, .mark = mark}; }

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<TextCell> cells) {
  if (cells.size() != columns_.size()) throw std::logic_error("a row of a table has not one cell for each column");
  for (TextCell& cell : cells) cell.text = printable(std::move(cell.text));
  rows_.push_back({.cells = std::move(cells)});
}

void Table::add_numbered(std::size_t number, const std::vector<TextCell>& rest) {
  std::vector<TextCell> cells = {{std::to_string(number)}};
  cells.insert(cells.end(), rest.begin(), rest.end());
  Row before = rows_.empty() ? Row{} : rows_.back();
  add(std::move(cells));
  Row& row = rows_.back();
  row.numbered = true;
  row.first = row.last = number;
  const auto same = [](const TextCell& a, const TextCell& b) { return a.text == b.text && a.bar == b.bar && a.mark == b.mark; };
  const bool continues = before.numbered && before.last + 1 == number &&
                         std::equal(before.cells.begin() + 1, before.cells.end(), row.cells.begin() + 1, same);
  if (!continues) return;
  rows_.pop_back();
  rows_.back().last = number;
  rows_.back().cells.front().text = std::to_string(before.first) + "-" + std::to_string(number);
}

std::vector<std::size_t> Table::natural_widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = columns_of(columns_[i].header);
    for (const Row& row : rows_) width = std::max(width, columns_of(row.cells[i].text));
    widths.push_back(columns_[i].kind == Column::Kind::bar ? columns_[i].longest : width);
  }
  return widths;
}

std::size_t Table::width() const { return total(natural_widths()); }

std::string Table::markdown() const {
  std::string headers = "|", rule = "|";
  std::vector<std::string> lines(rows_.size(), "|");
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].kind == Column::Kind::bar) continue;
    headers += " " + markdown_of(columns_[i].header) + " |";
    rule += columns_[i].kind == Column::Kind::number ? " ---: |" : " --- |";
    for (std::size_t k = 0; k < rows_.size(); ++k) lines[k] += " " + markdown_of(rows_[k].cells[i].text) + " |";
  }
  std::string out = headers + "\n" + rule + "\n";
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

std::string Table::text(const Screen& screen) const {
  if (screen.markdown) return markdown();
  const std::vector<std::size_t> natural = natural_widths();
  const Widths widths(columns_, natural, screen.width);
  std::string out, gone;
  std::vector<TextCell> headers;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string& header = columns_[i].header;
    headers.push_back({header, Style::faint});
    if (!header.empty() && widths[i] == 0) gone += (gone.empty() ? "" : ", ") + header;
  }
  if (std::ranges::any_of(columns_, [](const Column& column) { return !column.header.empty(); }))
    out += row_text(columns_, headers, widths, screen);
  for (const Row& row : rows_) out += row_text(columns_, row.cells, widths, screen);
  return gone.empty() ? out : out + Page(screen).line("no room for: " + gone, Style::faint, indent).text();
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!lines.back().empty() && columns_of(lines.back()) + 1 + columns_of(word) > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return lines;
}

}  // namespace tandem::cli
