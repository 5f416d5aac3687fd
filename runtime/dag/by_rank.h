#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// Which tasks or buffers are those of a rank, in the order of their ids, and which place each has among them. As lowering adds
/// one rank after the other, a rank's ids most often lie together: then nothing is stored for any of them.
class ByRank {
 public:
  /// Of a DAG's tasks, or of its buffers; these must outlive this.
  static ByRank tasks(const Dag& dag) { return {dag.tasks, dag.ranks.size()}; }
  static ByRank buffers(const Dag& dag) { return {dag.buffers, dag.ranks.size()}; }

  std::size_t count(RankIndex rank) const { return begin_[rank + 1] - begin_[rank]; }
  /// Returns the id at a place among those of a rank.
  std::uint32_t id(RankIndex rank, std::size_t place) const {
    const auto among_all = static_cast<std::uint32_t>(begin_[rank] + place);
    return order_.empty() ? among_all : order_[among_all];
  }
  /// Returns the place of an id among those of its rank, which must be this one.
  std::size_t place(RankIndex rank, std::uint32_t id) const { return (place_.empty() ? id : place_[id]) - begin_[rank]; }

  void for_each(RankIndex rank, const auto& action) const {
    for (std::size_t place = 0; place < count(rank); ++place) action(id(rank, place));
  }

 private:
  ByRank(const auto& items, std::size_t ranks) : begin_(ranks + 1, 0) {
    bool is_in_order = true;
    RankIndex last = 0;
    for (std::uint32_t id = 0; id < items.size(); ++id) {
      const RankIndex rank = items[id].rank;
      ++begin_[rank + 1];
      if (rank < last) is_in_order = false;
      last = rank;
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) begin_[rank + 1] += begin_[rank];
    if (is_in_order) return;
    order_.resize(items.size());
    place_.resize(items.size());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (std::uint32_t id = 0; id < items.size(); ++id) {
      place_[id] = next[items[id].rank]++;
      order_[place_[id]] = id;
    }
  }

  std::vector<std::uint32_t> begin_;  ///< by rank, where its ids begin among those of all
  // Empty where ids are in the order of ranks.
  std::vector<std::uint32_t> order_;  ///< all ids, rank after rank
  std::vector<std::uint32_t> place_;  ///< by id, its place in this order
};

}  // namespace tandem
