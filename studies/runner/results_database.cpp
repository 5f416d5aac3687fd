#include "studies/runner/results_database.h"

#include <sqlite3.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "studies/runner/text_digest.h"

namespace tandem::studies {
namespace {

constexpr std::string_view own_columns[] = {"hash",    "study",   "point",         "status", "message", "tandem",
                                            "started", "seconds", "scenario_yaml", "json",   "digest"};
constexpr std::string_view sections[] = {"name", "model", "cluster", "parallelism", "training", "faults"};
constexpr std::string_view status_names[] = {"done", "oom", "refused", "failed"};

std::string quoted_name(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// Compares names of columns as SQLite does: in either case.
bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sqlite3_strnicmp(a.data(), b.data(), static_cast<int>(a.size())) == 0;
}

/// Tells a row whose bytes a disk has changed, which SQLite does not notice.
std::string digest_of(const PointRow& row) {
  std::string text;
  for (const std::string_view part : {std::string_view(row.hash), name_of(row.status), std::string_view(row.message),
                                      std::string_view(row.scenario), std::string_view(row.json)})
    text.append(part) += '\0';
  return digest_of_text(text);
}

/// Refuses what SQLite itself finds nothing wrong with.
[[noreturn]] void refuse_file(const SqliteFile& file, const std::string& reason) {
  SqliteStatement list(file, "PRAGMA database_list");
  list.step();
  constexpr int path = 2;  // after number and name, see PRAGMA database_list
  throw std::runtime_error("cannot keep results in '" + list.text(path) + "': " + reason);
}

/// Returns a cell without a value for an empty text.
Cell text_cell(const std::string& text) { return text.empty() ? Cell{} : Cell{text}; }

/// Returns whether a column is a scenario's field, and not a key of the result.
bool is_field(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('.'));
  return std::ranges::any_of(sections, [&](std::string_view section) { return same_name(section, first); });
}

std::vector<NamedCell> cells_of(const PointRow& row) {
  std::vector<NamedCell> cells = {{"hash", row.hash},
                                  {"study", row.study},
                                  {"point", static_cast<std::int64_t>(row.point)},
                                  {"status", std::string(name_of(row.status))},
                                  {"message", text_cell(row.message)},
                                  {"tandem", TANDEM_VERSION},
                                  {"started", row.started},
                                  {"seconds", row.seconds},
                                  {"scenario_yaml", row.scenario},
                                  {"json", text_cell(row.json)},
                                  {"digest", digest_of(row)}};
  for (const std::vector<NamedCell>& more : {row.values, result_cells(row.json)})
    cells.insert(cells.end(), more.begin(), more.end());
  return cells;
}

PointStatus status_named(const std::string& name) {
  const auto found = std::ranges::find(status_names, name);
  return found == std::end(status_names) ? PointStatus::failed : static_cast<PointStatus>(found - std::begin(status_names));
}

}  // namespace

std::string_view name_of(PointStatus status) { return status_names[static_cast<std::size_t>(status)]; }

std::vector<NamedCell> result_cells(const std::string& json) {
  if (json.empty()) return {};
  std::vector<NamedCell> cells = flattened(json);
  for (NamedCell& cell : cells) {
    const std::string_view first = std::string_view(cell.name).substr(0, cell.name.find('.'));
    const auto is_first = [&](std::string_view name) { return same_name(name, first); };
    if (std::ranges::any_of(own_columns, is_first) || std::ranges::any_of(sections, is_first)) cell.name = "result." + cell.name;
  }
  return cells;
}

ResultsDatabase::ResultsDatabase(const std::string& path)
    : file_(path,
            "CREATE TABLE IF NOT EXISTS points (hash TEXT PRIMARY KEY, study TEXT, point INTEGER, status TEXT NOT NULL, "
            "message TEXT, tandem TEXT, started TEXT, seconds REAL, scenario_yaml TEXT, json TEXT, digest TEXT)") {
  const std::vector<std::string> present = columns();
  for (const std::string_view name : own_columns)
    if (name != "digest" && std::ranges::find(present, name) == present.end())
      refuse_file(file_,
                  "its table points has no column " + std::string(name) + ", so another program made it; expected another file");
  if (std::ranges::find(present, "digest") != present.end()) return;
  SqliteTransaction transaction(file_);  // Tandem 0.1 wrote none at first
  add_missing_columns({{"digest", {}}});
  transaction.commit();
}

std::unordered_map<std::string, PointStatus> ResultsDatabase::statuses() const {
  std::unordered_map<std::string, PointStatus> statuses;
  SqliteStatement select(file_, "SELECT hash, status FROM points");
  while (select.step()) statuses[select.text(0)] = status_named(select.text(1));
  return statuses;
}

std::optional<PointRow> ResultsDatabase::row(const std::string& hash) const {
  SqliteStatement select(
      file_, "SELECT study, point, status, message, started, seconds, scenario_yaml, json, digest FROM points WHERE hash = ?");
  select.bind(hash);
  if (!select.step()) return std::nullopt;
  PointRow row{.hash = hash,
               .study = select.text(0),
               .point = static_cast<std::size_t>(select.integer(1)),
               .values = {},
               .status = status_named(select.text(2)),
               .message = select.text(3),
               .started = select.text(4),
               .seconds = select.number(5),
               .scenario = select.text(6),
               .json = select.text(7)};
  if (const std::string digest = select.text(8); !digest.empty() && digest != digest_of(row))
    refuse_file(file_, "the row with the hash " + hash + " is damaged; delete that row, or the file, and it is simulated anew");
  return row;
}

std::vector<std::string> ResultsDatabase::columns() const {
  std::vector<std::string> names;
  SqliteStatement info(file_, "SELECT name FROM pragma_table_info('points')");
  while (info.step()) names.push_back(info.text(0));
  return names;
}

std::vector<PointRow> ResultsDatabase::rows() const {
  std::vector<std::string> paths;
  std::string select_values;
  for (const std::string& name : columns()) {
    if (!is_field(name)) continue;
    paths.push_back(name);
    select_values += ", " + quoted_name(name);
  }
  std::vector<PointRow> rows;
  SqliteStatement select(file_, "SELECT hash" + select_values + " FROM points ORDER BY study, point");
  while (select.step()) {
    PointRow& row = rows.emplace_back(*this->row(select.text(0)));
    for (std::size_t i = 0; i < paths.size(); ++i) {
      Cell cell = select.cell(static_cast<int>(i) + 1);
      if (!std::holds_alternative<std::monostate>(cell)) row.values.push_back({paths[i], std::move(cell)});
    }
  }
  return rows;
}

void ResultsDatabase::add_missing_columns(const std::vector<NamedCell>& cells) const {
  std::vector<std::string> present = columns();
  for (const NamedCell& cell : cells) {
    if (std::ranges::any_of(present, [&](const std::string& name) { return same_name(name, cell.name); })) continue;
    file_.execute("ALTER TABLE points ADD COLUMN " + quoted_name(cell.name));
    present.push_back(cell.name);
  }
}

void ResultsDatabase::store(const PointRow& row) {
  const std::vector<NamedCell> cells = cells_of(row);
  std::string names, marks;
  for (const NamedCell& cell : cells) {
    names += (names.empty() ? "" : ", ") + quoted_name(cell.name);
    marks += marks.empty() ? "?" : ", ?";
  }
  SqliteTransaction transaction(file_);
  add_missing_columns(cells);
  {  // statements end before the transaction
    SqliteStatement remove(file_, "DELETE FROM points WHERE hash = ? AND status = 'failed'");
    remove.bind(row.hash);
    remove.step();
    SqliteStatement insert(file_, "INSERT OR IGNORE INTO points (" + names + ") VALUES (" + marks + ")");
    for (const NamedCell& cell : cells) insert.bind(cell.cell);
    insert.step();
  }
  transaction.commit();
}

void ResultsDatabase::add_columns(const std::vector<std::string>& paths) {
  std::vector<NamedCell> cells;
  for (const std::string& path : paths) cells.push_back({path, {}});
  SqliteTransaction transaction(file_);
  add_missing_columns(cells);
  transaction.commit();
}

void ResultsDatabase::place(const std::vector<PointRow>& rows) {
  SqliteTransaction transaction(file_);
  for (const PointRow& row : rows) {
    std::string fields = "study = ?, point = ?";
    for (const NamedCell& cell : row.values) fields += ", " + quoted_name(cell.name) + " = ?";
    SqliteStatement update(file_, "UPDATE points SET " + fields + " WHERE hash = ?");
    update.bind(row.study);
    update.bind(static_cast<std::int64_t>(row.point));
    for (const NamedCell& cell : row.values) update.bind(cell.cell);
    update.bind(row.hash);
    update.step();
  }
  transaction.commit();
}

}  // namespace tandem::studies
