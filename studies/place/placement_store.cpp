#include "studies/place/placement_store.h"

#include <sstream>

namespace tandem::studies {

PlacementStore::PlacementStore(const std::string& path)
    : file_(path, "CREATE TABLE IF NOT EXISTS searches (key TEXT PRIMARY KEY, nodes TEXT NOT NULL)") {}

std::optional<NodeOfBlock> PlacementStore::find(const std::string& key) const {
  SqliteStatement select(file_, "SELECT nodes FROM searches WHERE key = ?");
  select.bind(key);
  if (!select.step()) return std::nullopt;
  std::istringstream text(select.text(0));
  NodeOfBlock nodes;
  for (std::uint32_t node = 0; text >> node;) nodes.push_back(node);
  return nodes;
}

void PlacementStore::store(const std::string& key, const NodeOfBlock& nodes) {
  std::string text;
  for (const std::uint32_t node : nodes) text += (text.empty() ? "" : " ") + std::to_string(node);
  SqliteStatement insert(file_, "INSERT OR REPLACE INTO searches VALUES (?, ?)");
  insert.bind(key);
  insert.bind(text);
  insert.step();
}

}  // namespace tandem::studies
