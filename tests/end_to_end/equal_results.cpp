#include "tests/end_to_end/equal_results.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

/// Kinds that take the same time may stand in either order.
Json by_name(const Json& kinds) {
  std::map<std::string, Json> sorted;
  for (const Json& kind : kinds) sorted[kind["phase"].get<std::string>() + " " + kind["name"].get<std::string>()] = kind;
  return sorted;
}

Json in_numbers(const StepResult& result) {
  Json json = to_json_object(result);
  json["kinds"] = by_name(json["kinds"]);
  for (const char* key : {"wall_s", "peak_rss_bytes", "tasks_simulated", "rank_classes", "link_classes"}) json["run"].erase(key);
  return json;
}

double tolerance(const std::string& key, const OrderAtOnce& order) {
  if (key == "/memory/allocated_bytes" || key == "/memory/reserved_bytes" || key == "/memory/device_bytes")
    return order.allocator;
  return key == "/bounds_s/upper" ? order.upper_bound : 1e-9;
}

}  // namespace

void expect_equal_results(const StepResult& a, const StepResult& b, const std::string& what, const OrderAtOnce& order) {
  constexpr double nothing = 1e-12;
  const Json flat_a = in_numbers(a).flatten(), flat_b = in_numbers(b).flatten();
  EXPECT_EQ(flat_a.size(), flat_b.size()) << what;
  for (auto item = flat_a.begin(); item != flat_a.end(); ++item) {
    ASSERT_TRUE(flat_b.contains(item.key())) << what << ": " << item.key();
    const Json &x = item.value(), &y = flat_b[item.key()];
    if (x.is_number()) {
      const double one = x.get<double>(), other = y.get<double>(), relative = tolerance(item.key(), order);
      EXPECT_LE(std::abs(one - other), std::max(nothing, relative * std::max(std::abs(one), std::abs(other))))
          << what << ": " << item.key() << " " << one << " and " << other;
    } else {
      EXPECT_EQ(x, y) << what << ": " << item.key();
    }
  }
}

}  // namespace tandem::studies
