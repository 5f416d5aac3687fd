#pragma once

#include <optional>
#include <string>

#include "studies/place/placed_job.h"
#include "studies/runner/sqlite.h"

namespace tandem::studies {

/// Keeps what searches found in the SQLite file of the simulations that judge them, so that a search that was killed need not
/// begin anew: `searches(key PRIMARY KEY, nodes)`. A row is on the disk when `store` returns. Throws as SqliteFile does.
class PlacementStore {
 public:
  explicit PlacementStore(const std::string& path);

  std::optional<NodeOfBlock> find(const std::string& key) const;
  void store(const std::string& key, const NodeOfBlock& nodes);

 private:
  SqliteFile file_;
};

}  // namespace tandem::studies
