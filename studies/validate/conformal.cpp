#include "studies/validate/conformal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/base/order_statistics.h"
#include "studies/step/step_interval.h"
#include "studies/validate/score.h"

namespace tandem::studies {
namespace {

using Rows = std::vector<const MeasuredError*>;

template <typename Keep>
Rows rows_where(const Rows& rows, const Keep& keep) {
  Rows kept;
  std::ranges::copy_if(rows, std::back_inserter(kept), [&](const MeasuredError* row) { return keep(*row); });
  return kept;
}

/// Each source weighs the same.
template <typename ValueOf>
std::vector<WeightedValue> weighted(const Rows& rows, const ValueOf& value_of) {
  std::map<std::string, double> rows_of_source;
  for (const MeasuredError* row : rows) rows_of_source[row->source] += 1;
  std::vector<WeightedValue> values;
  for (const MeasuredError* row : rows) values.push_back({value_of(*row), 1 / rows_of_source[row->source]});
  return values;
}

std::size_t sources_of(const Rows& rows) {
  std::set<std::string> sources;
  for (const MeasuredError* row : rows) sources.insert(row->source);
  return sources.size();
}

/// ln(predicted / measured) of each row, had its source not been there when the speed of its GPU was fitted to `rows`.
std::map<const MeasuredError*, double> without_own_source(const Rows& rows) {
  const auto ratio = [](const MeasuredError& row) { return row.log_ratio; };
  std::map<std::string, double> of_gpu;
  std::map<std::pair<std::string, std::string>, double> moved;  // by GPU and source
  std::map<const MeasuredError*, double> ratios;
  for (const MeasuredError* row : rows) {
    ratios[row] = row->log_ratio;
    if (!row->without_steps) continue;
    const std::string& gpu = row->step.gpu;
    const auto on_gpu = [&](const MeasuredError& other) { return other.step.gpu == gpu && other.without_steps; };
    if (!of_gpu.contains(gpu)) of_gpu[gpu] = huber_location(weighted(rows_where(rows, on_gpu), ratio));
    const auto [found, is_new] = moved.try_emplace({gpu, row->source});
    if (is_new) {
      const Rows others =
          rows_where(rows, [&](const MeasuredError& other) { return on_gpu(other) && other.source != row->source; });
      // Nobody else measured the GPU: its constant would be the one without steps.
      found->second = others.empty() ? -*row->without_steps : huber_location(weighted(others, ratio)) - of_gpu[gpu];
    }
    ratios[row] -= found->second;
  }
  return ratios;
}

double with_gpu_left_out(const MeasuredError& row) { return row.log_ratio + row.without_steps.value_or(0); }

double root_mean_square(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return values.empty() ? 0 : std::sqrt(squares / static_cast<double>(values.size()));
}

template <typename NameOf, typename ValueOf>
double spread_between(const Rows& rows, const NameOf& name_of, const ValueOf& value_of) {
  std::map<std::string, Rows> groups;
  for (const MeasuredError* row : rows) groups[name_of(*row)].push_back(row);
  std::vector<double> locations;
  for (const auto& [name, of_name] : groups) locations.push_back(huber_location(weighted(of_name, value_of)));
  return root_mean_square(locations);
}

/// Below which `share` of the weight lies: no value between two that were seen.
double conformal_quantile(std::vector<WeightedValue> values, double share) {
  std::ranges::sort(values, {}, &WeightedValue::value);
  double all = 0, below = 0;
  for (const WeightedValue& value : values) all += value.weight;
  for (const WeightedValue& value : values) {
    below += value.weight;
    if (below >= share * all * (1 - 1e-12)) return value.value;
  }
  return values.back().value;
}

void scale_to(std::vector<WeightedValue>& values, double weight) {
  double all = 0;
  for (const WeightedValue& value : values) all += value.weight;
  for (WeightedValue& value : values) value.weight *= weight / all;
}

using Scores = std::map<const MeasuredError*, double>;

/// The nine-tenths quantile of the rows' scores in each class; rows without a score say nothing.
class ClassQuantiles {
 public:
  ClassQuantiles(const Rows& rows, Scores scores) : scores_(std::move(scores)) {
    for (const MeasuredError* row : rows) {
      std::string around;
      for (const std::string& name : class_names(row->step)) {
        Rows& members = members_[name];
        if (scores_.contains(row)) members.push_back(row);
        parents_[name] = std::exchange(around, name);
      }
    }
  }

  double of(const std::string& name) {
    std::vector<WeightedValue> scores = scores_of(name);
    scores.push_back({std::numeric_limits<double>::infinity(), 1});
    return conformal_quantile(std::move(scores), 0.9);
  }

 private:
  Scores scores_;
  std::map<std::string, Rows> members_;
  std::map<std::string, std::string> parents_;
  std::map<std::string, std::vector<WeightedValue>> known_;

  const std::vector<WeightedValue>& scores_of(const std::string& name) {
    std::vector<WeightedValue>& known = known_[name];
    if (!known.empty()) return known;
    std::vector<WeightedValue> own = weighted(members_.at(name), [&](const MeasuredError& row) { return scores_.at(&row); });
    const std::string& parent = parents_.at(name);
    if (std::vector<WeightedValue> around = parent.empty() ? std::vector<WeightedValue>() : scores_of(parent); !around.empty()) {
      scale_to(around, parent_sources);
      own.insert(own.end(), around.begin(), around.end());
    }
    return known = std::move(own);
  }
};

/// Runs that a site would have: of one source, with one GPU and framework.
std::vector<Rows> sites_of(const Rows& rows) {
  std::map<std::tuple<std::string, std::string, std::string, bool>, Rows> groups;
  for (const MeasuredError* row : rows)
    groups[{row->source, row->step.gpu, row->step.framework, row->step.has_experts}].push_back(row);
  std::vector<Rows> sites;
  for (auto& [key, group] : groups) sites.push_back(std::move(group));
  return sites;
}

/// A mean of n - 1 others is off by itself, which makes the difference larger by the root of n / (n - 1).
Scores scores_within_sites(const Rows& rows) {
  constexpr std::size_t fewest = 3;
  Scores scores;
  for (const Rows& site : sites_of(rows)) {
    if (site.size() < fewest) continue;
    double sum = 0;
    for (const MeasuredError* row : site) sum += row->log_ratio;
    const auto n = static_cast<double>(site.size());
    for (const MeasuredError* row : site) {
      const double others = (sum - row->log_ratio) / (n - 1);
      scores[row] = std::abs(row->log_ratio - others) * std::sqrt((n - 1) / n) / row->expected;
    }
  }
  return scores;
}

/// The slope of a line through points, by least squares.
double slope_of(const std::vector<std::pair<double, double>>& points) {
  double x_mean = 0, y_mean = 0, xx = 0, xy = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& [x, y] : points) {
    x_mean += x / n;
    y_mean += y / n;
  }
  for (const auto& [x, y] : points) {
    xx += (x - x_mean) * (x - x_mean);
    xy += (x - x_mean) * (y - y_mean);
  }
  return xy / xx;
}

Seconds spread_of_overheads(const Rows& rows) {
  constexpr std::size_t fewest = 4;
  constexpr double least_ratio = 2;
  const double median_of_normal = normal_quantile(0.75);  // of |x| over the standard deviation
  std::vector<WeightedValue> overheads;
  for (const Rows& site : sites_of(rows)) {
    if (site.size() < fewest) continue;
    std::vector<std::pair<double, double>> points;
    for (const MeasuredError* row : site) points.emplace_back(1 / row->predicted, std::exp(-row->log_ratio));
    const auto [longest, shortest] = std::ranges::minmax(points | std::views::keys);
    if (shortest >= least_ratio * longest) overheads.push_back({std::abs(slope_of(points)), 1});
  }
  return overheads.empty() ? 0 : weighted_quantile(overheads, 0.5) / median_of_normal;
}

IntervalTable table_of(const Rows& rows) {
  const std::map<const MeasuredError*, double> ratios = without_own_source(rows);
  Scores scores;
  std::map<std::string, Rows> members;
  IntervalTable table;
  for (const MeasuredError* row : rows) {
    scores[row] = std::abs(ratios.at(row)) / row->expected;
    for (const std::string& name : class_names(row->step)) members[name].push_back(row);
    ++table.gpus[row->step.gpu];
    ++table.frameworks[row->step.framework];
  }
  ClassQuantiles anywhere(rows, std::move(scores)), within_sites(rows, scores_within_sites(rows));
  constexpr double unbounded = std::numeric_limits<double>::infinity();
  if (rows.empty()) table.classes["all"] = {0, 0, unbounded, unbounded};
  for (const auto& [name, of_class] : members) {
    const double factor = anywhere.of(name);
    table.classes[name] = {of_class.size(), sources_of(of_class), factor, std::min(factor, within_sites.of(name))};
  }
  table.overhead = spread_of_overheads(rows);
  table.unseen_gpu = spread_between(
      rows, [](const MeasuredError& row) { return row.step.gpu; }, with_gpu_left_out);
  table.unseen_framework = spread_between(
      rows, [](const MeasuredError& row) { return row.step.framework; }, [](const MeasuredError& row) { return row.log_ratio; });
  return table;
}

/// A row's error as one way of leaving out has it.
struct Judged {
  double log_ratio = 0;
  bool inside = false;
};

Judged judged(const MeasuredError& row, double log_ratio, const IntervalTable& table) {
  ErrorParts expected{};
  expected.front() = row.expected;
  const Interval interval = interval_around(1, expected, row.step, table);
  return {log_ratio, std::abs(log_ratio) <= std::log(interval.high)};
}

LeftOut::Error error_of(const Rows& rows, const std::map<const MeasuredError*, Judged>& all) {
  std::vector<ScoredError> errors;
  for (const MeasuredError* row : rows) errors.push_back({row->source, std::expm1(all.at(row).log_ratio), all.at(row).inside});
  const Score score = score_of(errors);
  return {score.median, score.p90, score.coverage};
}

}  // namespace

IntervalTable fit_intervals(std::span<const MeasuredError> measured) {
  Rows rows;
  for (const MeasuredError& row : measured) rows.push_back(&row);
  return table_of(rows);
}

std::vector<LeftOut> leave_out(std::span<const MeasuredError> measured) {
  Rows rows;
  for (const MeasuredError& row : measured) rows.push_back(&row);
  const IntervalTable all = table_of(rows);
  const std::map<const MeasuredError*, double> source_out = without_own_source(rows);
  std::map<std::string, IntervalTable> without_source, without_gpu;
  std::map<const MeasuredError*, Judged> in_sample, of_source, of_gpu;
  for (const MeasuredError* row : rows) {
    in_sample[row] = judged(*row, row->log_ratio, all);
    const auto [by_source, new_source] = without_source.try_emplace(row->source);
    if (new_source)
      by_source->second = table_of(rows_where(rows, [&](const MeasuredError& other) { return other.source != row->source; }));
    of_source[row] = judged(*row, source_out.at(row), by_source->second);
    const auto [by_gpu, new_gpu] = without_gpu.try_emplace(row->step.gpu);
    if (new_gpu)
      by_gpu->second = table_of(rows_where(rows, [&](const MeasuredError& other) { return other.step.gpu != row->step.gpu; }));
    of_gpu[row] = judged(*row, with_gpu_left_out(*row), by_gpu->second);
  }
  std::map<std::string, Rows> sets;
  std::vector<std::string> order;
  const auto join = [&](const std::string& name, const MeasuredError* row) {
    Rows& set = sets[name];
    if (set.empty()) order.push_back(name);
    set.push_back(row);
  };
  for (const MeasuredError* row : rows) join("all", row);
  const auto kind_of = [](const MeasuredError& row) { return std::string(row.step.has_experts ? "experts" : "dense"); };
  for (const MeasuredError* row : rows) join(kind_of(*row), row);
  for (const MeasuredError* row : rows) join(kind_of(*row) + " " + row->step.generation, row);
  for (const MeasuredError* row : rows) join(kind_of(*row) + " " + row->step.gpu, row);
  for (const MeasuredError* row : rows) join(kind_of(*row) + " " + row->step.framework, row);
  for (const MeasuredError* row : rows) join(class_names(row->step).back(), row);
  std::vector<LeftOut> results;
  for (const std::string& name : order) {
    const Rows& set = sets.at(name);
    results.push_back(
        {name, set.size(), sources_of(set), error_of(set, in_sample), error_of(set, of_source), error_of(set, of_gpu)});
  }
  return results;
}

}  // namespace tandem::studies
