#include "studies/place/placement_store.h"

#include <sqlite3.h>

#include <sstream>
#include <stdexcept>

namespace tandem::studies {
namespace {

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Statement prepare(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, sql, -1, &statement, nullptr);
  return Statement(statement);
}

void bind_text(const Statement& statement, int at, const std::string& text) {
  sqlite3_bind_text64(statement.get(), at, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

}  // namespace

void PlacementStore::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

PlacementStore::PlacementStore(const std::string& path) : path_(path) {
  constexpr int patience_ms = 60'000;
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  database_.reset(database);
  if (code != SQLITE_OK) fail();
  sqlite3_busy_timeout(database, patience_ms);
  const char* table =
      "PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS searches (key TEXT PRIMARY KEY, nodes TEXT NOT NULL)";
  if (sqlite3_exec(database, table, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

std::optional<NodeOfBlock> PlacementStore::find(const std::string& key) const {
  const Statement select = prepare(database_.get(), "SELECT nodes FROM searches WHERE key = ?");
  if (!select) fail();
  bind_text(select, 1, key);
  const int code = sqlite3_step(select.get());
  if (code == SQLITE_DONE) return std::nullopt;
  if (code != SQLITE_ROW) fail();
  std::istringstream text(reinterpret_cast<const char*>(sqlite3_column_text(select.get(), 0)));
  NodeOfBlock nodes;
  for (std::uint32_t node = 0; text >> node;) nodes.push_back(node);
  return nodes;
}

void PlacementStore::store(const std::string& key, const NodeOfBlock& nodes) {
  std::string text;
  for (const std::uint32_t node : nodes) text += (text.empty() ? "" : " ") + std::to_string(node);
  const Statement insert = prepare(database_.get(), "INSERT OR REPLACE INTO searches VALUES (?, ?)");
  if (!insert) fail();
  bind_text(insert, 1, key);
  bind_text(insert, 2, text);
  if (sqlite3_step(insert.get()) != SQLITE_DONE) fail();
}

void PlacementStore::fail() const {
  throw std::runtime_error("cannot keep searches in '" + path_ + "': " + sqlite3_errmsg(database_.get()));
}

}  // namespace tandem::studies
