// Parts of steps that were published one by one, against the same parts predicted: bench/accuracy/data/parts.csv, whose `view`
// says how a step is cut. The errors are kept in bench/accuracy/parts.csv, so that a change of accuracy is seen in review, also
// where the parts' errors cancel in the step. `./dev bench accuracy` prints their medians.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reading/load.h"
#include "sim/simulate.h"
#include "studies/validate/measured_step.h"
#include "studies/validate/run_scenario.h"
#include "tests/end_to_end/accuracy.h"
#include "tests/end_to_end/measured_operators.h"
#include "tests/end_to_end/step_parts.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::part_accuracy_test {
namespace {

enum class Role : std::uint8_t {
  part,        ///< adds up to the total with the other parts of its case
  total,       ///< of its case
  difference,  ///< of two cases
  ratio,       ///< the same divided, which has no unit
};

struct StepPart {
  std::string source, of, name;
  Role role = Role::part;
  Seconds measured = 0, predicted = 0;
  double error() const { return predicted / measured - 1; }
};

struct PlayedStep {
  Scenario scenario;
  Dag dag;
  Timeline timeline;
};

const RunRow& published_run(const std::string& id) {
  static const RunsFile runs = load_runs(TANDEM_SOURCE_DIR "/bench/accuracy/runs_2025.csv");
  for (const RunRow& row : runs.rows)
    if (row.text("id") == id) return row;
  throw std::runtime_error("no run " + id);
}

/// `where`: a scenario's file, or the id of a run in runs_2025.csv.
Scenario scenario_at(const std::string& where, const std::string& settings) {
  if (where.ends_with(".yaml")) return load_scenario(TANDEM_SOURCE_DIR "/" + where, words(settings));
  return parse_scenario(scenario_of(published_run(where)).yaml, where, words(settings));
}

/// The last one is kept, as rows of one step follow each other.
const PlayedStep& played(const std::string& where, const std::string& settings) {
  static std::pair<std::string, std::string> known;
  static PlayedStep step;
  if (known != std::pair(where, settings)) {
    step.scenario = scenario_at(where, settings);
    step.dag = lower(step.scenario, make_world(step.scenario, true));
    step.timeline = sim::simulate(step.dag).timeline;
    known = {where, settings};
  }
  return step;
}

Seconds part_of_step(const MeasuredRow& row, const std::string& settings) {
  static const std::map<std::string, PartTimes (*)(const Dag&, const Timeline&)> views = {
      {"phases", phases_of_step}, {"pair", kernels_of_pair}, {"layer", passes_of_layer}};
  const PlayedStep& step = played(row.at("scenario"), settings);
  return views.at(row.at("view"))(step.dag, step.timeline).at(row.at("part"));
}

using Rows = std::vector<MeasuredRow>;

std::vector<StepPart> as_printed(const Rows& rows) {
  static const std::map<std::string, Role> roles = {
      {"part", Role::part}, {"total", Role::total}, {"difference", Role::difference}, {"ratio", Role::ratio}};
  std::vector<StepPart> parts;
  for (const MeasuredRow& row : rows) {
    StepPart& part = parts.emplace_back(row.at("source"), row.at("case"), row.at("part"), roles.at(row.at("role")));
    part.measured = std::stod(row.at("measured"));
    part.predicted = part_of_step(row, row.at("settings"));
    if (part.role == Role::difference) part.predicted -= part_of_step(row, row.at("other"));
    if (part.role == Role::ratio) part.predicted /= part_of_step(row, row.at("other"));
  }
  return parts;
}

/// Step times of two numbers of micro-batches, and of one or two numbers of layers.
class Increments {
 public:
  void add(std::int64_t layers, std::int64_t micro_batches, Seconds time) { times_[layers][micro_batches] = time; }

  /// The largest step in parts: what a micro-batch more adds, times its micro-batches, and the rest. Where numbers of layers
  /// differ, the first falls into what a layer more adds to that, times its layers, and the rest of it.
  PartTimes parts() const {
    const auto& [few_layers, small] = *times_.begin();
    const auto& [many_layers, large] = *times_.rbegin();
    const auto slope = [](const std::map<std::int64_t, Seconds>& by_batches) {
      const auto [few, low] = *by_batches.begin();
      const auto [many, high] = *by_batches.rbegin();
      return (high - low) / static_cast<double>(many - few);
    };
    const double batches = static_cast<double>(large.rbegin()->first);
    const Seconds of_batches = slope(large) * batches, step = large.rbegin()->second;
    PartTimes parts{{"gradients and optimizer", step - of_batches}, {"step", step}};
    if (many_layers == few_layers) {
      parts["micro-batches"] = of_batches;
    } else {
      parts["layers"] = (slope(large) - slope(small)) * batches * static_cast<double>(many_layers) /
                        static_cast<double>(many_layers - few_layers);
      parts["ends of the model"] = of_batches - parts["layers"];
    }
    return parts;
  }

 private:
  std::map<std::int64_t, std::map<std::int64_t, Seconds>> times_;
};

std::vector<StepPart> compared(const MeasuredRow& row, const PartTimes& measured, const PartTimes& predicted) {
  std::vector<StepPart> parts;
  for (const auto& [name, time] : measured)
    parts.emplace_back(row.at("source"), row.at("case"), name, name == "step" ? Role::total : Role::part, time,
                       predicted.at(name));
  return parts;
}

/// Of a run in runs_2025.csv, as that says.
Seconds measured_time(const MeasuredRow& row, const Scenario& scenario) {
  const std::string& printed = row.at("measured");
  return printed.empty() ? *measured_step(published_run(row.at("scenario")), scenario).time : std::stod(printed);
}

std::vector<StepPart> from_increments(const Rows& rows) {
  Increments measured, predicted;
  for (const MeasuredRow& row : rows) {
    const PlayedStep& step = played(row.at("scenario"), row.at("settings"));
    const std::int64_t layers = step.scenario.model.layers;
    const std::int64_t micro_batches = step.scenario.training.micro_batches(step.scenario.parallelism);
    measured.add(layers, micro_batches, measured_time(row, step.scenario));
    predicted.add(layers, micro_batches, step.timeline.makespan());
  }
  return compared(rows.front(), measured.parts(), predicted.parts());
}

/// The first rank's kernels, as long as each took alone, and the rest of the measured step.
std::vector<StepPart> from_operators(const Rows& rows) {
  static const MeasuredOperators operators;
  const MeasuredRow& row = rows.front();
  const PlayedStep& step = played(row.at("scenario"), row.at("settings"));
  MeasuredOperators::OfStep of_step = operators.of_step(step.dag, step.timeline, 0);
  for (const std::string& shape : of_step.unknown)
    ADD_FAILURE() << row.at("case") << " has a kernel that was not measured: " << shape;
  const auto add_rest = [](PartTimes& parts, Seconds total) {
    Seconds rest = total;
    for (const auto& [name, time] : parts) rest -= time;
    parts["all else"] = rest;
    parts["step"] = total;
  };
  add_rest(of_step.measured, measured_time(row, step.scenario));
  add_rest(of_step.predicted, step.timeline.makespan());
  return compared(row, of_step.measured, of_step.predicted);
}

std::vector<StepPart> parts_of_case(const Rows& rows) {
  const std::string& view = rows.front().at("view");
  return view == "increments" ? from_increments(rows) : view == "operators" ? from_operators(rows) : as_printed(rows);
}

const std::vector<StepPart>& all_parts() {
  static const std::vector<StepPart> parts = [] {
    std::vector<Rows> cases;
    for (const MeasuredRow& row : measured_rows("parts.csv")) {
      const auto is_of = [&](const std::string& column) { return cases.back().front().at(column) == row.at(column); };
      if (cases.empty() || !is_of("source") || !is_of("case")) cases.emplace_back();
      cases.back().push_back(row);
    }
    std::vector<StepPart> all;
    for (const Rows& rows : cases)
      for (StepPart& part : parts_of_case(rows)) all.push_back(std::move(part));
    return all;
  }();
  return parts;
}

std::string parts_csv(const std::vector<StepPart>& parts) {
  std::string text = "source,case,part,unit,measured,predicted,error_percent\n";
  for (const StepPart& part : parts) {
    const double unit = part.role == Role::ratio ? 1 : 1e-3;
    text += fmt::format("{},{},{}{},{},{:.5g},{:.5g},{:+.1f}\n", part.source, part.of, part.role == Role::total ? "all: " : "",
                        part.name, part.role == Role::ratio ? "ratio" : "ms", part.measured / unit, part.predicted / unit,
                        100 * part.error());
  }
  return text;
}

/// Of a case whose parts add up: by how much they are off, as a share of the total, their signs apart, and what is left of that
/// in the total.
struct Cancelled {
  double of_parts = 0, of_total = 0;
};

std::map<std::string, Cancelled> cancelled(const std::vector<StepPart>& parts, const std::string& source) {
  std::map<std::string, Cancelled> cases;
  for (const StepPart& part : parts) {
    if (part.source != source || part.role != Role::total) continue;
    Cancelled& sums = cases[part.of];
    for (const StepPart& other : parts)
      if (other.source == source && other.of == part.of && other.role == Role::part)
        sums.of_parts += 100 * std::abs(other.predicted - other.measured) / part.measured;
    sums.of_total = 100 * std::abs(part.error());
  }
  return cases;
}

/// By source: how far parts are off, and in the mean of its cases the sums of their errors and the errors of the totals.
std::string summary_csv(const std::vector<StepPart>& parts) {
  std::map<std::string, Errors> by_source;
  for (const StepPart& part : parts)
    if (part.role != Role::total) by_source[part.source].all.push_back(part.error());
  std::string text = "source,parts,median_percent,p90_percent,parts_of_total_percent,total_percent\n";
  for (const auto& [source, errors] : by_source) {
    Cancelled mean;
    const auto cases = cancelled(parts, source);
    for (const auto& [name, sums] : cases) {
      mean.of_parts += sums.of_parts / static_cast<double>(cases.size());
      mean.of_total += sums.of_total / static_cast<double>(cases.size());
    }
    text += fmt::format("{},{},{:.1f},{:.1f},{:.1f},{:.1f}\n", source, errors.all.size(), errors.quantile(0.5),
                        errors.quantile(0.9), mean.of_parts, mean.of_total);
  }
  return text;
}

TEST(PartAccuracy, IsWhatItWas) {
  const std::string now = parts_csv(all_parts());
  std::cout << summary_csv(all_parts());
  expect_unchanged(now, file_in_accuracy("parts.csv"), "parts.csv");
}

// The clock of an A100 is fitted to layers of 22B; what recomputing and sequence parallelism change is not, nor are the larger
// ones.
TEST(PartAccuracy, LayersAreWithinSixPerCent) {
  for (const StepPart& part : all_parts())
    if (part.source == "Korthikanti") {
      EXPECT_LE(std::abs(part.error()), 0.06) << part.of << ", " << part.name;
    }
}

// Of a step that takes a + b l + c n + d l n with l layers and n micro-batches, the layers take d l n, the ends c n, the rest a +
// b l.
TEST(PartAccuracy, IncrementsTakeALinearStepApart) {
  constexpr double a = 3, b = 0.5, c = 7, d = 0.25;
  const auto step = [](std::int64_t l, std::int64_t n) {
    return a + b * static_cast<double>(l) + c * static_cast<double>(n) + d * static_cast<double>(l * n);
  };
  Increments of_both, of_batches;
  for (const std::int64_t n : {2, 16}) {
    for (const std::int64_t l : {12, 24}) of_both.add(l, n, step(l, n));
    of_batches.add(24, n, step(24, n));
  }
  const PartTimes parts = of_both.parts(), batches = of_batches.parts();
  EXPECT_DOUBLE_EQ(parts.at("layers"), d * 24 * 16);
  EXPECT_DOUBLE_EQ(parts.at("ends of the model"), c * 16);
  EXPECT_DOUBLE_EQ(parts.at("gradients and optimizer"), a + b * 24);
  EXPECT_DOUBLE_EQ(parts.at("step"), step(24, 16));
  EXPECT_DOUBLE_EQ(batches.at("micro-batches"), d * 24 * 16 + c * 16);
  EXPECT_DOUBLE_EQ(batches.at("gradients and optimizer"), a + b * 24);
}

// A view that leaves a task out, or counts one twice, would show errors that the step does not have.
TEST(PartAccuracy, PredictedPartsAddUpToTheirTotal) {
  std::map<std::pair<std::string, std::string>, Seconds> sums, totals;
  for (const StepPart& part : all_parts()) {
    const std::pair of(part.source, part.of);
    if (part.role == Role::part) sums[of] += part.predicted;
    if (part.role == Role::total) totals[of] = part.predicted;
  }
  for (const auto& [of, total] : totals) EXPECT_NEAR(sums[of], total, 1e-9 * total) << of.first << ", " << of.second;
}

}  // namespace
}  // namespace tandem::studies::part_accuracy_test
