#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/base/units.h"
#include "studies/runner/flat_json.h"
#include "studies/runner/sqlite.h"

namespace tandem::studies {

/// How a point ended.
enum class PointStatus : std::uint8_t {
  done,
  oom,      ///< simulated, but does not fit in memory
  refused,  ///< the scenario is wrong
  failed    ///< the run failed; the only one that is tried again
};
std::string_view name_of(PointStatus status);

/// One row of the database.
struct PointRow {
  std::string hash;  ///< of the scenario; the key
  std::string study;
  std::size_t point = 0;          ///< index in the study
  std::vector<NamedCell> values;  ///< of all fields that vary in the study
  PointStatus status = PointStatus::failed;
  std::string message;   ///< the sentence of what was refused or failed
  std::string started;   ///< UTC, ISO 8601
  Seconds seconds = 0;   ///< of the point's process
  std::string scenario;  ///< complete, in YAML
  std::string json;      ///< the whole result; empty where there is none
};

/// Returns the cells of a JSON result, one per key, named as the columns are. An empty text has none.
std::vector<NamedCell> result_cells(const std::string& json);

/// The results of studies, in one SQLite file with one table:
///
///     points(hash PRIMARY KEY, study, point, status, message, tandem, started, seconds, scenario_yaml, json,
///            one column per field that varies ("parallelism.dp"), one per key of the JSON result ("time_s.exposed.tp"))
///
/// Columns are added when a row brings new ones. A key of the result that is named like another column, whatever the case, gets
/// the column "result.KEY". Lists are JSON text, truth values 1 and 0.
///
/// Each row is a transaction of its own that is on the disk when `store` returns, so a kill at any moment loses none that was
/// stored. Several processes may write one file where SqliteFile says that they may; elsewhere, give every shard its own file.
///
/// All throw as SqliteFile does.
class ResultsDatabase {
 public:
  explicit ResultsDatabase(const std::string& path);
  const std::string& path() const { return file_.path(); }

  /// Returns the status of every row, by hash.
  std::unordered_map<std::string, PointStatus> statuses() const;
  std::optional<PointRow> row(const std::string& hash) const;  ///< without `values`
  /// Returns all rows, in the studies' order, with those of their `values` that are set.
  std::vector<PointRow> rows() const;

  /// Adds the row, in place of one that failed. A result that is there stays.
  void store(const PointRow& row);
  /// Makes sure that there is a column for each of these fields, so that they stand together.
  void add_columns(const std::vector<std::string>& paths);
  /// Writes where in the study these points stand (`study`, `point`, `values`), which may have been rearranged since, or which
  /// may be another study with the same points. Leaves their results as they are.
  void place(const std::vector<PointRow>& rows);

 private:
  std::vector<std::string> columns() const;
  void add_missing_columns(const std::vector<NamedCell>& cells) const;

  SqliteFile file_;
};

}  // namespace tandem::studies
