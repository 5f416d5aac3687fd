#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/csv.h"

namespace tandem::studies {

/// One measured run: its cells by column. A cell that is blank or says "not given" is unknown. Numbers are finite and in the
/// range of their column (see runs_file.cpp), and flags are 0 or 1; whether the values make a scenario is not known yet.
class RunRow {
 public:
  RunRow(std::map<std::string, CsvCell, std::less<>> cells, Place place) : cells_(std::move(cells)), place_(std::move(place)) {}

  bool has(std::string_view column) const { return !text(column).empty(); }
  /// Returns the cell without spaces around it; empty where it is unknown.
  const std::string& text(std::string_view column) const;
  /// Returns the cell in small letters, as the names of presets, schedules and the like are written.
  std::string name(std::string_view column) const;
  std::optional<double> number(std::string_view column) const;
  std::optional<std::int64_t> integer(std::string_view column) const;
  std::optional<bool> flag(std::string_view column) const;

  /// Returns the place of the cell, or of the row where there is no such column.
  const Place& place(std::string_view column) const;
  const Place& place() const { return place_; }

  /// Returns the same run with a cell filled in.
  RunRow with(const std::string& column, const std::string& text) const;

 private:
  std::map<std::string, CsvCell, std::less<>> cells_;
  Place place_;
};

/// A table of measured runs.
struct RunsFile {
  CsvTable table;                    ///< the file as it stands
  std::vector<RunRow> rows;          ///< as many as the table has
  std::vector<std::string> ignored;  ///< names of columns that Tandem does not know

  /// Removes the rows whose `core` is not 1.
  void keep_core();
  /// Removes the rows that state no memory: neither `memory_gb` nor `reserved_gib`.
  void keep_memory();
};

/// Reads and checks the table. Throws InputError with file:line:column for what makes the whole file doubtful: it cannot be read,
/// a column is missing, named twice, or close to the name of a known one, too many columns, a ragged line, an id that is blank or
/// there twice, a cell of the wrong kind or in the wrong unit. A column that resembles none is left alone (`ignored`).
RunsFile load_runs(const std::string& path);

/// Returns the columns that describe a run, without its labels: two rows that have all of these in common are the same run.
std::vector<std::string_view> scenario_columns();

}  // namespace tandem::studies
