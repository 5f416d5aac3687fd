#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "studies/runner/flat_json.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tandem::studies {

/// An SQLite file that keeps results. What is written is on the disk when the call, or the transaction around it, returns.
/// Several processes may write one file: they wait for each other. That takes a file system with working POSIX locks,
/// which some that machines share do not have.
///
/// The file, its statements and transactions throw std::runtime_error with the path and SQLite's reason.
class SqliteFile {
 public:
  /// Opens or makes the file. `schema`, a statement that does no harm where it has been executed before, makes a table.
  SqliteFile(std::string path, const std::string& schema);
  const std::string& path() const { return path_; }

  void execute(const std::string& sql) const;

 private:
  friend class SqliteStatement;
  friend class SqliteTransaction;
  struct Close {
    void operator()(sqlite3* file) const;
  };

  [[noreturn]] void fail() const;

  std::string path_;
  std::unique_ptr<sqlite3, Close> file_;
};

/// One statement. The file must outlive it.
class SqliteStatement {
 public:
  SqliteStatement(const SqliteFile& file, const std::string& sql);
  ~SqliteStatement();
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  /// Gives the next of the statement's parameters, from the left, its value.
  void bind(const Cell& cell);
  /// Goes to the next row. Returns whether there is one to read.
  bool step();

  // Of that row; columns count from 0.
  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double number(int column) const;
  Cell cell(int column) const;

 private:
  const SqliteFile& file_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

/// Takes the file for writing at once, so that no two processes that have read wait for each other to write. Its statements end
/// before it is committed. Whatever was not committed is undone.
class SqliteTransaction {
 public:
  explicit SqliteTransaction(const SqliteFile& file);
  ~SqliteTransaction();
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;

  void commit();

 private:
  const SqliteFile& file_;
  bool committed_ = false;
};

}  // namespace tandem::studies
