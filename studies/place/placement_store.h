#pragma once

#include <memory>
#include <optional>
#include <string>

#include "studies/place/placed_job.h"

struct sqlite3;

namespace tandem::studies {

/// What searches found, in the SQLite file of the simulations that judge them, so that a search that was killed need not begin
/// anew: `searches(key PRIMARY KEY, nodes)`. A row is on the disk when `store` returns. Throws std::runtime_error with the path
/// and SQLite's reason.
class PlacementStore {
 public:
  explicit PlacementStore(const std::string& path);

  std::optional<NodeOfBlock> find(const std::string& key) const;
  void store(const std::string& key, const NodeOfBlock& nodes);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;

  [[noreturn]] void fail() const;
};

}  // namespace tandem::studies
