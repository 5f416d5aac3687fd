#include "studies/crosscheck/comparison_json.h"

#include <nlohmann/json.hpp>

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

/// Adds the three keys of a quantity.
Json with_time(Json object, const SimulatedAndMeasured& time) {
  object["simulated_s"] = time.simulated;
  object["measured_s"] = time.measured;
  object["error"] = time.error() ? Json(*time.error()) : Json();
  return object;
}

Json overlap(const StreamOverlap& o) { return {{"busy_s", o.busy}, {"covered_s", o.covered}}; }

}  // namespace

Json to_json_object(const Comparison& comparison) {
  Json kinds = Json::array(), streams = Json::array(), worst = Json::array(), orders = Json::array();
  for (const KindComparison& kind : comparison.kinds) {
    kinds.push_back(with_time({{"kind", kind.name}, {"count", kind.count}}, kind.time));
    kinds.back()["share"] = kind.share;
  }
  for (const StreamComparison& s : comparison.streams) {
    streams.push_back({{"stream", name_of(s.stream)},
                       {"ranks", s.ranks},
                       {"simulated", overlap(s.simulated)},
                       {"measured", overlap(s.measured)}});
  }
  for (const TaskComparison& task : comparison.worst)
    worst.push_back(with_time({{"task", task.name}, {"id", task.task}, {"rank", task.rank}}, task.time));
  for (const RankOrder& order : comparison.orders)
    orders.push_back({{"rank", order.rank}, {"tasks", order.tasks}, {"same_order", order.same}});
  const MemoryComparison& memory = comparison.memory;
  return {{"step", with_time(Json::object(), comparison.step)},
          {"kinds", kinds},
          {"overlap", streams},
          {"worst", worst},
          {"memory",
           {{"simulated_bytes", memory.simulated},
            {"executed_bytes", memory.executed},
            {"measured_bytes", memory.measured ? Json(*memory.measured) : Json()}}},
          {"ranks", orders}};
}

Json to_json_object(const StepResult& executed, const Comparison& comparison) {
  Json json = to_json_object(executed);
  json["crosscheck"] = to_json_object(comparison);
  return json;
}

std::string to_json(const StepResult& executed, const Comparison& comparison) {
  return to_json_object(executed, comparison).dump(1) + "\n";
}

}  // namespace tandem::studies
