#include "studies/runner/results_database.h"

#include <spdlog/fmt/fmt.h>
#include <sqlite3.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tandem::studies {
namespace {

constexpr int patience_ms = 300'000;  // other shards hold the file for milliseconds, but may be many
constexpr std::string_view own_columns[] = {"hash",   "study",   "point",   "status",        "message",
                                            "tandem", "started", "seconds", "scenario_yaml", "json"};
constexpr std::string_view sections[] = {"name", "model", "cluster", "parallelism", "training", "faults"};
constexpr std::string_view status_names[] = {"done", "oom", "refused", "failed"};

std::string quoted_name(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// SQLite's names of columns are the same in either case.
bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sqlite3_strnicmp(a.data(), b.data(), static_cast<int>(a.size())) == 0;
}

/// Nothing rather than an empty text.
Cell text_cell(const std::string& text) { return text.empty() ? Cell{} : Cell{text}; }

/// Whether a column is a scenario's field, and not a key of the result.
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
                                  {"json", text_cell(row.json)}};
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

class ResultsDatabase::Statement {
 public:
  Statement(const ResultsDatabase& owner, const std::string& sql) : owner_(owner) {
    if (sqlite3_prepare_v2(owner.database_.get(), sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) owner.fail();
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(const Cell& cell) {
    const int at = ++bound_;
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) sqlite3_bind_int64(statement_, at, *whole);
    if (const auto* number = std::get_if<double>(&cell)) sqlite3_bind_double(statement_, at, *number);
    if (const auto* text = std::get_if<std::string>(&cell))
      sqlite3_bind_text64(statement_, at, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  /// Whether there is a row to read.
  bool step() {
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) owner_.fail();
    return code == SQLITE_ROW;
  }
  std::string text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return text == nullptr ? "" : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double number(int column) const { return sqlite3_column_double(statement_, column); }
  Cell cell(int column) const {
    switch (sqlite3_column_type(statement_, column)) {
      case SQLITE_INTEGER:
        return integer(column);
      case SQLITE_FLOAT:
        return number(column);
      case SQLITE_NULL:
        return {};
      default:
        return text(column);
    }
  }

 private:
  const ResultsDatabase& owner_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

/// Takes the file for writing at once, so that no two processes that have read wait for each other to write.
class ResultsDatabase::Transaction {
 public:
  explicit Transaction(const ResultsDatabase& owner) : owner_(owner) { owner.execute("BEGIN IMMEDIATE"); }
  ~Transaction() {
    if (!committed_) sqlite3_exec(owner_.database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit() {
    owner_.execute("COMMIT");
    committed_ = true;
  }

 private:
  const ResultsDatabase& owner_;
  bool committed_ = false;
};

void ResultsDatabase::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

ResultsDatabase::ResultsDatabase(const std::string& path) : path_(path) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  database_.reset(database);
  if (code != SQLITE_OK) fail();
  sqlite3_busy_timeout(database, patience_ms);
  // A rollback journal and not a write-ahead log, which needs memory that all writers share: they may be on several machines.
  execute("PRAGMA journal_mode = DELETE");
  execute("PRAGMA synchronous = FULL");
  Transaction transaction(*this);
  execute(
      "CREATE TABLE IF NOT EXISTS points (hash TEXT PRIMARY KEY, study TEXT, point INTEGER, status TEXT NOT NULL, message TEXT, "
      "tandem TEXT, started TEXT, seconds REAL, scenario_yaml TEXT, json TEXT)");
  transaction.commit();
}

void ResultsDatabase::execute(const std::string& sql) const {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

void ResultsDatabase::fail() const {
  throw std::runtime_error("cannot keep results in '" + path_ + "': " + sqlite3_errmsg(database_.get()));
}

std::unordered_map<std::string, PointStatus> ResultsDatabase::statuses() const {
  std::unordered_map<std::string, PointStatus> statuses;
  Statement select(*this, "SELECT hash, status FROM points");
  while (select.step()) statuses[select.text(0)] = status_named(select.text(1));
  return statuses;
}

bool ResultsDatabase::has_result(const std::string& hash) const {
  Statement select(*this, "SELECT 1 FROM points WHERE hash = ? AND status <> 'failed'");
  select.bind(hash);
  return select.step();
}

std::optional<PointRow> ResultsDatabase::row(const std::string& hash) const {
  Statement select(*this,
                   "SELECT study, point, status, message, started, seconds, scenario_yaml, json FROM points WHERE hash = ?");
  select.bind(hash);
  if (!select.step()) return std::nullopt;
  return PointRow{.hash = hash,
                  .study = select.text(0),
                  .point = static_cast<std::size_t>(select.integer(1)),
                  .values = {},
                  .status = status_named(select.text(2)),
                  .message = select.text(3),
                  .started = select.text(4),
                  .seconds = select.number(5),
                  .scenario = select.text(6),
                  .json = select.text(7)};
}

std::vector<std::string> ResultsDatabase::columns() const {
  std::vector<std::string> names;
  Statement info(*this, "SELECT name FROM pragma_table_info('points')");
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
  Statement select(*this, "SELECT hash" + select_values + " FROM points ORDER BY study, point");
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
    execute("ALTER TABLE points ADD COLUMN " + quoted_name(cell.name));
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
  Transaction transaction(*this);
  add_missing_columns(cells);
  {  // statements end before the transaction
    Statement remove(*this, "DELETE FROM points WHERE hash = ? AND status = 'failed'");
    remove.bind(row.hash);
    remove.step();
    Statement insert(*this, "INSERT OR IGNORE INTO points (" + names + ") VALUES (" + marks + ")");
    for (const NamedCell& cell : cells) insert.bind(cell.cell);
    insert.step();
  }
  transaction.commit();
}

void ResultsDatabase::add_columns(const std::vector<std::string>& paths) {
  std::vector<NamedCell> cells;
  for (const std::string& path : paths) cells.push_back({path, {}});
  Transaction transaction(*this);
  add_missing_columns(cells);
  transaction.commit();
}

void ResultsDatabase::place(const std::vector<PointRow>& rows) {
  Transaction transaction(*this);
  for (const PointRow& row : rows) {
    std::string fields = "study = ?, point = ?";
    for (const NamedCell& cell : row.values) fields += ", " + quoted_name(cell.name) + " = ?";
    Statement update(*this, "UPDATE points SET " + fields + " WHERE hash = ?");
    update.bind(row.study);
    update.bind(static_cast<std::int64_t>(row.point));
    for (const NamedCell& cell : row.values) update.bind(cell.cell);
    update.bind(row.hash);
    update.step();
  }
  transaction.commit();
}

}  // namespace tandem::studies
