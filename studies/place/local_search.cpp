#include "studies/place/local_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "studies/place/first_placements.h"

namespace tandem::studies {
namespace {

constexpr std::uint32_t nobody = 0xFFFFFFFF;

/// Draws numbers. The distributions of the standard library may differ between libraries; these do not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(engine_() % end); }
  double share() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

class Search {
 public:
  Search(LinkLoad load, const NodeSites& sites, const std::vector<std::uint32_t>& free, const PlacementBudget& budget)
      : load_(std::move(load)),
        sites_(sites),
        free_(free),
        moves_(budget.moves),
        random_(budget.seed),
        block_on_(sites.leaf.size(), nobody),
        now_(load_.load()) {
    for (std::uint32_t block = 0; block < blocks(); ++block) block_on_[load_.nodes()[block]] = block;
  }

  FoundPlacement run() {
    best_ = {load_.nodes(), now_};
    if (blocks() > 0 && now_.slowest > 0) {
      anneal();
      descend();
    }
    return finish();
  }

 private:
  using Moves = std::vector<LinkLoad::Move>;

  LinkLoad load_;
  const NodeSites& sites_;
  const std::vector<std::uint32_t>& free_;
  std::int64_t moves_;
  Random random_;
  std::vector<std::uint32_t> block_on_;  ///< by node
  LinkTimes now_;
  FoundPlacement best_;
  Moves tried_;

  std::size_t blocks() const { return load_.nodes().size(); }
  static double energy(const LinkTimes& load) { return load.slowest + load.spread; }

  void anneal() {
    constexpr double hot = 0.05, cooling = 1e-4;  // of the first energy; from the first temperature to the last
    const double first = hot * energy(now_);
    for (std::int64_t i = 0; i < moves_; ++i) {
      propose();
      if (tried_.empty()) continue;
      load_.move(tried_);
      const LinkTimes found = load_.load();
      const double temperature = first * std::pow(cooling, static_cast<double>(i) / static_cast<double>(moves_));
      const double worse = energy(found) - energy(now_);
      const bool accepted = worse <= 0 || random_.share() < std::exp(-worse / temperature);
      accepted ? keep(found) : load_.take_back();
    }
  }

  void keep(const LinkTimes& found) {
    const NodeOfBlock& nodes = load_.nodes();
    for (const std::uint32_t node : free_) {
      if (block_on_[node] != nobody && nodes[block_on_[node]] != node) block_on_[node] = nobody;
    }
    for (const auto& [block, node] : tried_) block_on_[node] = block;
    now_ = found;
    if (is_less(now_, best_.load)) best_ = {nodes, now_};
  }

  void descend() {
    load_.place(best_.nodes);
    now_ = load_.load();
    std::ranges::fill(block_on_, nobody);
    for (std::uint32_t block = 0; block < blocks(); ++block) block_on_[load_.nodes()[block]] = block;
    best_ = {load_.nodes(), now_};
    std::int64_t left = moves_;
    for (bool helped = true; helped && left > 0;) {
      helped = false;
      for (std::uint32_t block = 0; block < blocks() && left > 0; ++block) {
        for (const std::uint32_t node : free_) {
          if (left == 0) break;
          to_node(block, node);
          if (tried_.empty()) continue;
          --left;
          load_.move(tried_);
          const LinkTimes found = load_.load();
          if (!is_less(found, now_)) {
            load_.take_back();
            continue;
          }
          keep(found);
          helped = true;
        }
      }
    }
  }

  void propose() {
    tried_.clear();
    switch (random_.below(4)) {
      case 0:
      case 1:
        return to_node(static_cast<std::uint32_t>(random_.below(blocks())), free_[random_.below(free_.size())]);
      case 2:
        return exchange_runs();
      default:
        return reverse_run();
    }
  }

  void to_node(std::uint32_t block, std::uint32_t node) {
    tried_.clear();
    const std::uint32_t from = load_.nodes()[block];
    if (sites_.same(from, node)) return;
    tried_.emplace_back(block, node);
    if (block_on_[node] != nobody) tried_.emplace_back(block_on_[node], from);
  }

  /// Returns `length` blocks from `first` on, `stride` apart; fewer where the blocks end.
  std::vector<std::uint32_t> run(std::size_t first, std::size_t stride, std::size_t length) const {
    std::vector<std::uint32_t> found;
    for (std::size_t i = 0; i < length && first + i * stride < blocks(); ++i)
      found.push_back(static_cast<std::uint32_t>(first + i * stride));
    return found;
  }
  std::size_t random_stride() { return std::size_t{1} << random_.below(static_cast<std::size_t>(std::bit_width(blocks()))); }
  std::size_t random_length() { return 2 + random_.below(7); }

  void exchange_runs() {
    const std::size_t stride = random_stride(), length = random_length();
    const std::vector<std::uint32_t> one = run(random_.below(blocks()), stride, length);
    const std::vector<std::uint32_t> other = run(random_.below(blocks()), stride, length);
    if (one.size() != other.size()) return;
    for (const std::uint32_t block : one) {
      if (std::ranges::find(other, block) != other.end()) return;
    }
    for (std::size_t i = 0; i < one.size(); ++i) exchange(one[i], other[i]);
  }

  void reverse_run() {
    const std::size_t stride = random_stride(), length = random_length();
    const std::vector<std::uint32_t> blocks_of = run(random_.below(blocks()), stride, length);
    for (std::size_t i = 0; i < blocks_of.size() / 2; ++i) exchange(blocks_of[i], blocks_of[blocks_of.size() - 1 - i]);
  }

  void exchange(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t node_a = load_.nodes()[a], node_b = load_.nodes()[b];
    if (sites_.same(node_a, node_b)) return;
    tried_.emplace_back(a, node_b);
    tried_.emplace_back(b, node_a);
  }

  FoundPlacement finish() {
    best_.nodes = in_order(best_.nodes, free_, sites_);
    load_.place(best_.nodes);
    best_.load = load_.load();
    return best_;
  }
};

}  // namespace

bool is_less(const LinkTimes& a, const LinkTimes& b) {
  constexpr double rounding = 1e-9;
  if (a.slowest < b.slowest * (1 - rounding)) return true;
  return a.slowest <= b.slowest * (1 + rounding) && a.spread < b.spread * (1 - rounding);
}

FoundPlacement search_from(LinkLoad load, const NodeSites& sites, const std::vector<std::uint32_t>& free,
                           const PlacementBudget& budget) {
  return Search(std::move(load), sites, free, budget).run();
}

}  // namespace tandem::studies
