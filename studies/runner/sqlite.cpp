#include "studies/runner/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace tandem::studies {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw std::runtime_error("cannot keep results in '" + path + "': " + reason);
}

/// Returns why the file's file system refuses locks; none where it takes them. To be asked before SQLite has a lock: closing any
/// descriptor of a file gives all of the process's locks on it up. SQLite takes a refusal for another writer and waits.
std::error_code refusal_of_locks(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return {};                      // SQLite says why
  constexpr off_t byte_of_nobody = 0x3fffffff;  // SQLite's own begin at 1 GiB; one to read by is in nobody's way
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte_of_nobody;
  lock.l_len = 1;
  int code = 0;
  do code = ::fcntl(file, F_SETLK, &lock);
  while (code != 0 && errno == EINTR);
  const std::error_code refusal(code == 0 ? 0 : errno, std::generic_category());
  ::close(file);
  return refusal;
}

}  // namespace

void SqliteFile::Close::operator()(sqlite3* file) const { sqlite3_close(file); }

SqliteFile::SqliteFile(std::string path, const std::string& schema) : path_(std::move(path)) {
  constexpr int patience_ms = 300'000;  // other shards hold the file for milliseconds, but may be many
  sqlite3* file = nullptr;
  const int code = sqlite3_open_v2(path_.c_str(), &file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  file_.reset(file);
  if (code != SQLITE_OK) fail();
  if (const std::error_code refusal = refusal_of_locks(path_))
    refuse(path_, "its file system takes no locks (" + refusal.message() + "); expected a file on a disk of this machine");
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

void SqliteFile::fail() const { refuse(path_, sqlite3_errmsg(file_.get())); }

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
