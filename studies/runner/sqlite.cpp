#include "studies/runner/sqlite.h"

#include <sqlite3.h>

#include <stdexcept>
#include <utility>

namespace tandem::studies {

void SqliteFile::Close::operator()(sqlite3* file) const { sqlite3_close(file); }

SqliteFile::SqliteFile(std::string path, const std::string& schema) : path_(std::move(path)) {
  constexpr int patience_ms = 300'000;  // other shards hold the file for milliseconds, but may be many
  sqlite3* file = nullptr;
  const int code = sqlite3_open_v2(path_.c_str(), &file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  file_.reset(file);
  if (code != SQLITE_OK) fail();
  sqlite3_busy_timeout(file, patience_ms);
  // The journal is no write-ahead log, which needs memory that all writers share: they may be on several machines.
  execute("PRAGMA journal_mode = DELETE");
  execute("PRAGMA synchronous = FULL");
  SqliteTransaction transaction(*this);
  execute(schema);
  transaction.commit();
}

void SqliteFile::execute(const std::string& sql) const {
  if (sqlite3_exec(file_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

void SqliteFile::fail() const {
  throw std::runtime_error("cannot keep results in '" + path_ + "': " + sqlite3_errmsg(file_.get()));
}

SqliteStatement::SqliteStatement(const SqliteFile& file, const std::string& sql) : file_(file) {
  if (sqlite3_prepare_v2(file_.file_.get(), sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) file_.fail();
}

SqliteStatement::~SqliteStatement() { sqlite3_finalize(statement_); }

void SqliteStatement::bind(const Cell& cell) {
  const int at = ++bound_;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) sqlite3_bind_int64(statement_, at, *whole);
  if (const auto* number = std::get_if<double>(&cell)) sqlite3_bind_double(statement_, at, *number);
  if (const auto* text = std::get_if<std::string>(&cell))
    sqlite3_bind_text64(statement_, at, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

bool SqliteStatement::step() {
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) file_.fail();
  return code == SQLITE_ROW;
}

std::string SqliteStatement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text == nullptr ? "" : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

std::int64_t SqliteStatement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

double SqliteStatement::number(int column) const { return sqlite3_column_double(statement_, column); }

Cell SqliteStatement::cell(int column) const {
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

SqliteTransaction::SqliteTransaction(const SqliteFile& file) : file_(file) { file_.execute("BEGIN IMMEDIATE"); }

SqliteTransaction::~SqliteTransaction() {
  if (!committed_) sqlite3_exec(file_.file_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void SqliteTransaction::commit() {
  file_.execute("COMMIT");
  committed_ = true;
}

}  // namespace tandem::studies
