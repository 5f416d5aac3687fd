// Folders that include each other in a circle cannot be read, built or replaced one after the other.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/architecture/includes.h"

namespace tandem::architecture::cycles_test {
namespace {

/// Who includes whom, with the first include of each pair.
using Graph = std::map<std::string, std::map<std::string, Include>>;

Graph graph_of_folders() {
  Graph graph;
  for (const Include& include :
       includes_below({"runtime", "topology", "traces", "scenarios", "sim", "studies", "cli", "tests"})) {
    if (!include.is_ours) continue;
    const std::string from = room_of(include.file), to = room_of(include.target);
    if (from != to) graph[from].try_emplace(to, include);
  }
  return graph;
}

/// A way from a folder back to itself, as the includes on it; empty where there is none. Depth first: a folder that was left
/// without a circle is on none.
class CircleSearch {
 public:
  explicit CircleSearch(const Graph& graph) : graph_(graph) {}

  std::vector<Include> first() {
    for (const auto& [folder, next] : graph_)
      if (enter(folder)) return way_;
    return {};
  }

 private:
  const Graph& graph_;
  std::set<std::string> left_, entered_;
  std::vector<Include> way_;

  bool enter(const std::string& folder) {
    if (left_.contains(folder)) return false;
    if (!entered_.insert(folder).second) {
      while (room_of(way_.front().file) != folder) way_.erase(way_.begin());
      return true;
    }
    if (const auto found = graph_.find(folder); found != graph_.end()) {
      for (const auto& [next, include] : found->second) {
        way_.push_back(include);
        if (enter(next)) return true;
        way_.pop_back();
      }
    }
    left_.insert(folder);
    return false;
  }
};

TEST(Folders, DoNotIncludeEachOtherInACircle) {
  const Graph graph = graph_of_folders();
  std::string circle;
  for (const Include& include : CircleSearch(graph).first()) circle += "\n  " + include.place() + ": includes " + include.target;
  EXPECT_EQ(circle, "") << "these folders include each other in a circle";
}

TEST(Folders, InACircleAreFound) {
  const auto edge = [](const std::string& from, const std::string& to) {
    return std::pair(to, Include{from + "/x.cpp", 1, to + "/y.h", true});
  };
  Graph graph = {{"a", {edge("a", "b")}}, {"b", {edge("b", "c"), edge("b", "d")}}, {"d", {edge("d", "c")}}};
  EXPECT_TRUE(CircleSearch(graph).first().empty());
  graph["d"].insert(edge("d", "b"));
  const std::vector<Include> circle = CircleSearch(graph).first();
  ASSERT_EQ(circle.size(), 2U);
  EXPECT_EQ(circle[0].file, "b/x.cpp");
  EXPECT_EQ(circle[1].file, "d/x.cpp");
}

}  // namespace
}  // namespace tandem::architecture::cycles_test
