#include "runtime/dag/nonbinding_links.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace tandem {
namespace {

/// The uses of each path, or of each link, in order.
class UsesBy {
 public:
  template <typename Key>
  UsesBy(const std::vector<PathUse>& uses, std::size_t keys, const Key& key) : end_(keys + 1, 0), uses_(uses.size()) {
    for (const PathUse& use : uses) ++end_[key(use) + 1];
    std::partial_sum(end_.begin(), end_.end(), end_.begin());
    std::vector<std::size_t> at(end_.begin(), end_.end() - 1);
    for (const PathUse& use : uses) uses_[at[key(use)]++] = use;
  }
  std::span<const PathUse> operator[](std::size_t key) const {
    return std::span(uses_).subspan(end_[key], end_[key + 1] - end_[key]);
  }

 private:
  std::vector<std::size_t> end_;
  std::vector<PathUse> uses_;
};

std::vector<PathUse> added_up(std::vector<PathUse> uses) {
  std::erase_if(uses, [](const PathUse& use) { return use.times == 0; });
  std::ranges::sort(uses, {}, [](const PathUse& use) { return std::pair(use.path, use.link); });
  std::size_t kept = 0;
  for (const PathUse& use : uses) {
    if (kept > 0 && uses[kept - 1].path == use.path && uses[kept - 1].link == use.link)
      uses[kept - 1].times += use.times;
    else
      uses[kept++] = use;
  }
  uses.resize(kept);
  return uses;
}

/// Looks for links that together let through no more than another one, see the header.
class Cover {
 public:
  Cover(const std::vector<BytesPerSecond>& capacities, const std::vector<PathUse>& uses)
      : capacities_(capacities),
        of_path_(uses, paths_of(uses), [](const PathUse& use) { return use.path; }),
        of_link_(uses, capacities.size(), [](const PathUse& use) { return use.link; }),
        is_nonbinding_(capacities.size(), false),
        shared_by_(capacities.size(), 0),
        factor_(capacities.size(), 0) {}

  std::vector<bool> nonbinding() && {
    std::vector<LinkId> order(capacities_.size());
    std::iota(order.begin(), order.end(), LinkId{0});
    std::ranges::stable_sort(order, [&](LinkId a, LinkId b) { return capacities_[a] > capacities_[b]; });
    for (const LinkId link : order) is_nonbinding_[link] = !of_link_[link].empty() && is_covered(link);
    return std::move(is_nonbinding_);
  }

 private:
  const std::vector<BytesPerSecond>& capacities_;
  UsesBy of_path_, of_link_;
  std::vector<bool> is_nonbinding_;
  std::vector<std::uint32_t> shared_by_;  ///< by link: how many of the short paths over the link in question cross it, too
  std::vector<double> factor_;            ///< by link
  std::vector<LinkId> cover_;             ///< those that have a factor

  /// Paths over few links are assigned first, each to the link that most of them share; a ring over many nodes then finds one.
  static constexpr std::size_t short_path = 16;

  static std::size_t paths_of(const std::vector<PathUse>& uses) {
    std::size_t paths = 0;
    for (const PathUse& use : uses) paths = std::max(paths, std::size_t{use.path} + 1);
    return paths;
  }

  bool may_vouch(const PathUse& other, const PathUse& use) const {
    return capacities_[other.link] < capacities_[use.link] && !is_nonbinding_[other.link];
  }
  double needed(const PathUse& other, const PathUse& use) const { return static_cast<double>(use.times) / other.times; }
  double price(const PathUse& other, const PathUse& use) const {
    return std::max(0.0, needed(other, use) - factor_[other.link]) * capacities_[other.link];
  }

  bool is_covered(LinkId link) {
    const std::span<const PathUse> uses = of_link_[link];
    const auto is_short = [&](const PathUse& use) { return of_path_[use.path].size() <= short_path; };
    const auto count = [&](int by) {
      for (const PathUse& use : uses)
        if (is_short(use))
          for (const PathUse& other : of_path_[use.path]) shared_by_[other.link] += static_cast<std::uint32_t>(by);
    };
    count(1);
    double left = capacities_[link] * (1 + 1e-12);
    const auto assign = [&](bool shorts) {
      return std::ranges::all_of(uses,
                                 [&](const PathUse& use) { return is_short(use) != shorts || (left -= assigned(use)) >= 0; });
    };
    const bool covered = assign(true) && assign(false);
    count(-1);
    for (const LinkId other : cover_) factor_[other] = 0;
    cover_.clear();
    return covered;
  }

  /// Assigns the path to a link, and returns what that adds to the capacities of the cover.
  double assigned(const PathUse& use) {
    const PathUse* best = nullptr;
    const auto price_of_each = [&](const PathUse& other) { return price(other, use) / std::max(1U, shared_by_[other.link]); };
    for (const PathUse& other : of_path_[use.path])
      if (may_vouch(other, use) && (best == nullptr || price_of_each(other) < price_of_each(*best))) best = &other;
    if (best == nullptr) return std::numeric_limits<double>::infinity();
    const double added = price(*best, use);
    if (factor_[best->link] == 0) cover_.push_back(best->link);
    factor_[best->link] = std::max(factor_[best->link], needed(*best, use));
    return added;
  }
};

}  // namespace

std::vector<bool> nonbinding_links(const std::vector<BytesPerSecond>& capacities, const std::vector<PathUse>& uses) {
  return Cover(capacities, added_up(uses)).nonbinding();
}

}  // namespace tandem
