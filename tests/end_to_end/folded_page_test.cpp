// A page of a step that was folded in time, or by stages that mirror each other, shows the whole step: each task, what links
// carry, what memory holds, what the step time is made of.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/analysis/memory_over_time.h"
#include "sim/link_use.h"
#include "studies/report/step_report.h"
#include "studies/step/simulated_step.h"
#include "tests/end_to_end/random_clusters.h"
#include "tests/end_to_end/tiny.h"
#include "tests/studies/page_columns.h"

namespace tandem::studies::folded_page_test {
namespace {

using nlohmann::json;

struct DrawnTask {
  double start = 0, end = 0;
  std::string type;
  int micro_batch = -1, layer = -1, chunk = -1;
};

/// The tasks of a page by rank and stream, each as often as viz/src/report.ts says that it happens.
using DrawnTasks = std::map<std::pair<int, int>, std::vector<DrawnTask>>;

/// The tasks of a row that mirrors another.
void draw_mirror(const json& row, const json& timeline, DrawnTasks& drawn) {
  const json &mirror = timeline["mirror"], &of = timeline["rows"][row["mirrors"].get<std::size_t>()];
  const int of_copy = mirror["micro_batches"];
  EXPECT_TRUE(row["streams"].empty());
  for (const json& stream : of["streams"]) {
    const int number = stream["stream"];
    int other = number;
    for (const json& pair : mirror["streams"])
      for (const int side : {0, 1})
        if (pair[side] == number) other = pair[1 - side];
    std::vector<DrawnTask> tasks = drawn.at({of["rank"], number});
    for (DrawnTask& task : tasks) {
      if (task.chunk >= 0) task.chunk = 1 - task.chunk;
      if (task.micro_batch >= 0) task.micro_batch += task.micro_batch < of_copy ? of_copy : -of_copy;
    }
    drawn[{row["rank"], other}] = std::move(tasks);
  }
}

DrawnTasks drawn_tasks(const json& timeline) {
  const auto gap = column<std::uint32_t>(timeline, "gap"), duration = column<std::uint32_t>(timeline, "duration"),
             type = column<std::uint32_t>(timeline, "type"), run = column<std::uint32_t>(timeline, "run");
  const auto micro_batch = column<std::int16_t>(timeline, "micro_batch"), layer = column<std::int16_t>(timeline, "layer"),
             chunk = column<std::int16_t>(timeline, "chunk");
  std::vector<std::size_t> labels;  // by task
  for (std::size_t place = 0; place < run.size(); ++place) labels.insert(labels.end(), run[place], place);
  const bool repeats = timeline.contains("repeat");
  const json repeat =
      repeats ? timeline["repeat"] : json{{"times", 0}, {"length_s", 0.0}, {"micro_batches", 0}, {"second_half_from", 0}};
  const int times = repeat["times"], half = repeat["second_half_from"], micro_batches = repeat["micro_batches"];
  const double tick = timeline["tick_s"], length = repeat["length_s"];

  DrawnTasks drawn;
  std::size_t first = 0;
  for (const json& row : timeline["rows"]) {
    if (row.contains("mirrors")) continue;
    for (const json& stream : row["streams"]) {
      std::vector<DrawnTask>& tasks = drawn[{row["rank"], stream["stream"]}];
      const std::size_t count = stream["tasks"];
      std::vector<DrawnTask> in_columns;
      double now = 0;
      for (std::size_t i = first; i < first + count; ++i) {
        const double start = now + gap[i];
        now = start + duration[i];
        in_columns.push_back({start * tick, now * tick, timeline["types"][type[i]].dump(), micro_batch[labels[i]],
                              layer[labels[i]], chunk[labels[i]]});
      }
      first += count;
      const auto add = [&](std::size_t from, std::size_t to, int time) {
        for (std::size_t i = from; i < to; ++i) {
          DrawnTask task = in_columns[i];
          task.start += time * length;
          task.end += time * length;
          const bool is_of_other_copy = half > 0 && task.micro_batch >= half;
          if (task.micro_batch >= 0) task.micro_batch += (time + (is_of_other_copy ? times : 0)) * micro_batches;
          tasks.push_back(task);
        }
      };
      const std::size_t from = repeats ? stream["repeated"][0].get<std::size_t>() : 0;
      const std::size_t to = repeats ? stream["repeated"][1].get<std::size_t>() : count;
      add(0, to, 0);
      for (int time = 1; time <= times; ++time) add(from, to, time);
      add(to, count, times);
    }
  }
  for (const json& row : timeline["rows"])
    if (row.contains("mirrors")) draw_mirror(row, timeline, drawn);
  return drawn;
}

/// The first task of the step that is drawn otherwise.
std::string difference_of_tasks(const json& folded, const json& whole) {
  const DrawnTasks some = drawn_tasks(folded), all = drawn_tasks(whole);
  const double tolerance = 1e-9 * whole["step_s"].get<double>();  // rounding to ticks is a quarter of that
  if (some.size() != all.size()) return "streams";
  for (const auto& [stream, tasks] : all) {
    const std::string place = "rank " + std::to_string(stream.first) + " stream " + std::to_string(stream.second);
    const std::vector<DrawnTask>& same = some.at(stream);
    if (same.size() != tasks.size()) return place + ": " + std::to_string(same.size()) + " of " + std::to_string(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const DrawnTask &a = same[i], &b = tasks[i];
      if (std::abs(a.start - b.start) > tolerance || std::abs(a.end - b.end) > tolerance || a.type != b.type ||
          a.micro_batch != b.micro_batch || a.layer != b.layer || a.chunk != b.chunk)
        return place + ": task " + std::to_string(i) + ", " + a.type + " of micro-batch " + std::to_string(a.micro_batch) +
               " at " + std::to_string(a.start) + " for " + b.type + " of micro-batch " + std::to_string(b.micro_batch) + " at " +
               std::to_string(b.start);
    }
  }
  return "";
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << what << ", " << i;
}

void expect_same_links(const SimulatedStep& folded, const SimulatedStep& whole) {
  constexpr std::size_t bins = 20;
  const sim::LinkUse some = sim::link_use(folded.dag, folded.timeline, bins),
                     all = sim::link_use(whole.dag, whole.timeline, bins);
  expect_near(some.edges, all.edges, 1e-9 * all.edges.back(), "edges");
  ASSERT_EQ(some.links.size(), all.links.size());
  for (std::size_t link = 0; link < all.links.size(); ++link) {
    EXPECT_NEAR(some.links[link].bytes, all.links[link].bytes, 1e-9 * all.links[link].bytes);
    expect_near(some.links[link].utilisation, all.links[link].utilisation, 1e-6, whole.dag.links[link].name);
    EXPECT_EQ(some.links[link].users.size(), all.links[link].users.size());
  }
}

/// Where classes of links differ: what is told of all links of a tier.
void expect_same_tiers(const json& folded, const json& whole) {
  ASSERT_EQ(folded["tiers"].size(), whole["tiers"].size());
  for (std::size_t tier = 0; tier < whole["tiers"].size(); ++tier) {
    const json &some = folded["tiers"][tier], &all = whole["tiers"][tier];
    for (const char* const key : {"tier", "links", "capacity"}) EXPECT_EQ(some[key], all[key]) << key;
    expect_near(some["utilisation"], all["utilisation"], 1.1e-3, all["tier"].get<std::string>());
  }
}

void expect_same_memory(const json& folded, const json& whole) {
  ASSERT_EQ(folded.size(), whole.size());
  for (std::size_t stage = 0; stage < whole.size(); ++stage) {
    const json &some = folded[stage], &all = whole[stage];
    for (const char* const key : {"rank", "parameters", "peak_bytes", "peak_task", "largest"})
      EXPECT_EQ(some[key], all[key]) << key;
    const double step = all["t_s"].back();
    EXPECT_NEAR(some["peak_at_s"].get<double>(), all["peak_at_s"].get<double>(), 1e-9 * step);
    EXPECT_NEAR(some["t_s"].back(), step, 1e-9 * step);
  }
}

/// Byte-seconds that the first rank holds in each twentieth of the step, from all points.
std::vector<double> held_by_bin(const SimulatedStep& step) {
  constexpr std::size_t bins = 20;
  const MemoryOverTime memory = memory_over_time(step.dag, step.timeline, {0}, {.points = 1'000'000})[0];
  const Seconds width = step.timeline.makespan() / bins;
  std::vector<double> held(bins, 0);
  for (std::size_t i = 0; i < memory.points.size(); ++i) {
    const Seconds from = memory.points[i].at;
    const Seconds to = i + 1 < memory.points.size() ? memory.points[i + 1].at : step.timeline.makespan();
    for (std::size_t bin = 0; bin < bins; ++bin) {
      const double begin = static_cast<double>(bin) * width;
      held[bin] +=
          std::max(0.0, std::min(to, begin + width) - std::max(from, begin)) * static_cast<double>(memory.points[i].bytes());
    }
  }
  return held;
}

/// The critical path's time by kind.
std::map<std::string, double> path_of(const json& report) {
  std::map<std::string, double> kinds;
  for (const json& kind : report["critical_path"]["kinds"]) kinds[kind["name"]] = kind["time_s"];
  return kinds;
}

struct Compared {
  bool folded = false;
  bool same_path = false;
};

Compared compare(const Scenario& scenario, bool in_time, bool mirrors, const std::string& what) {
  SCOPED_TRACE(what);
  const SimulationOptions options{.fold_time = in_time, .fold_mirrors = mirrors, .memory_over_time = true};
  const SimulatedStep folded = simulate_step(scenario, true, options);
  if (in_time && folded.timeline.repeat.times == 0) return {};
  const SimulatedStep whole = simulate_step(scenario, true, {.memory_over_time = true});
  const json some = step_report(scenario, folded, ""), all = step_report(scenario, whole, "");
  EXPECT_EQ(difference_of_tasks(some["timeline"], all["timeline"]), "");
  if (folded.dag.links.size() == whole.dag.links.size())
    expect_same_links(folded, whole);
  else
    expect_same_tiers(some["links"], all["links"]);
  expect_same_memory(some["memory"], all["memory"]);
  const std::vector<double> held = held_by_bin(whole);
  expect_near(held_by_bin(folded), held, 1e-6 * std::ranges::max(held), "memory");
  const auto kinds = path_of(some), of_whole = path_of(all);
  double sum = 0;
  bool same_path = kinds.size() == of_whole.size();
  for (const auto& [name, time] : kinds) {
    sum += time;
    same_path &= of_whole.contains(name) && std::abs(of_whole.at(name) - time) <= 1e-9 * whole.result.step_time;
  }
  EXPECT_NEAR(sum, whole.timeline.makespan(), 1e-9 * sum);
  return {.folded = true, .same_path = same_path};
}

TEST(FoldedPage, ShowsTheWholeStepOnEverySchedule) {
  for (const std::string plan :
       {"parallelism.dp=2 training.schedule=1f1b", "parallelism.pp=4 training.schedule=1f1b",
        "parallelism.pp=4 parallelism.tp=2 parallelism.vpp=2 model.layers=8 training.schedule=interleaved-1f1b",
        "parallelism.pp=4 training.schedule=zb-h1", "parallelism.pp=2 parallelism.vpp=2 model.layers=8 training.schedule=zb-v",
        "parallelism.pp=4 model.layers=8 training.schedule=dualpipe",
        "parallelism.dp=8 parallelism.zero=3 training.schedule=1f1b training.framework=torchtitan"}) {
    const Compared compared = compare(with_micro_batches(tiny_cluster(words(plan)), 96), true, false, plan);
    EXPECT_TRUE(compared.folded) << plan;
    EXPECT_TRUE(compared.same_path) << plan;
  }
}

TEST(FoldedPage, ShowsTheWholeStepOnRandomClusters) {
  std::size_t folded = 0, same_path = 0, all = 0;
  for (const RandomCluster& cluster : random_clusters(24, 12, 1)) {
    ++all;
    const Compared compared = compare(with_micro_batches(cluster.scenario, 64), true, false, cluster.text());
    folded += compared.folded ? 1 : 0;
    same_path += compared.same_path ? 1 : 0;
  }
  EXPECT_GE(3 * folded, all) << folded << " of " << all;
  EXPECT_EQ(same_path, folded);
}

TEST(FoldedPage, ShowsStagesThatMirrorOthers) {
  const std::string dualpipe = "parallelism.pp=4 model.layers=8 training.schedule=dualpipe training.global_batch=64 ";
  for (const std::string plan : {"", "parallelism.dp=2 parallelism.zero=1", "parallelism.tp=2 parallelism.sp=true"}) {
    const Scenario scenario = with_micro_batches(tiny_cluster(words(dualpipe + plan)), 96);
    for (const bool in_time : {false, true}) {
      const Compared compared = compare(scenario, in_time, true, plan);
      EXPECT_TRUE(compared.folded) << plan;
      EXPECT_TRUE(compared.same_path) << plan;
    }
  }
}

}  // namespace
}  // namespace tandem::studies::folded_page_test
