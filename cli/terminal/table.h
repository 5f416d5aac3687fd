#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/terminal/screen.h"

namespace tandem::cli {

/// One column. A table is as wide as what it holds. Where the screen is narrower, first the bars get shorter and the notes run
/// over several lines, then columns are left out, which a line below the table says, then names are shortened.
struct Column {
  enum class Kind : std::uint8_t {
    name,    ///< flush left
    number,  ///< flush right; never shortened
    bar,
    note  ///< prose, the last column
  };
  std::string header;
  Kind kind = Kind::number;
  int left_out = 0;          ///< the column of 1 goes first where there is no room, then that of 2, ...; 0 stays
  std::size_t longest = 40;  ///< of a bar
};

struct TextCell {
  std::string text;
  Style style = Style::plain;
  double bar = 0;  ///< of a bar: its length, 1 fills the column
  char mark = '#';
};

TextCell bar_of(double share, Style style, char mark = '#');

/// Rows of cells below headers, two columns apart. Control characters are shown as '?'.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  /// Adds a row, which has a cell for each column.
  void add(std::vector<TextCell> cells);
  /// Adds a row whose first cell is `number`. Rows with consecutive numbers whose other cells are equal are shown as one, "1-7".
  void add_numbered(std::size_t number, const std::vector<TextCell>& rest);
  bool empty() const { return rows_.empty(); }

  /// Returns the width in columns where there is room for everything.
  std::size_t width() const;

  std::string text(const Screen& screen) const;

 private:
  std::string markdown() const;

  struct Row {
    std::vector<TextCell> cells;
    std::size_t first = 0, last = 0;  ///< of a run
    bool numbered = false;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;

  std::vector<std::size_t> natural_widths() const;
};

/// Breaks `text` into lines of at most `width` columns, at spaces where it has any.
std::vector<std::string> wrapped(const std::string& text, std::size_t width);

}  // namespace tandem::cli
