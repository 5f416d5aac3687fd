#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/units.h"

namespace tandem::studies {

/// What decides how well a step is predicted.
struct StepClass {
  bool has_experts = false;
  std::string generation;  ///< of the GPU: "hopper"
  std::string framework;   ///< "megatron-core"
  std::string gpu;         ///< "h100-sxm-80gb"
};

/// Returns the classes that a step is in, from the widest to the narrowest: "all", "dense", "dense hopper", "dense hopper nemo".
/// A class by the number of GPUs would hold less well: of sources left out, fewer were inside.
std::vector<std::string> class_names(const StepClass& step);

/// How far predictions of published runs were off, by class: what the intervals of predictions are made of. Data:
/// studies/step/interval_table.csv, which `fit_intervals` (studies/validate/conformal.h) makes and `./dev bench accuracy` renews.
struct IntervalTable {
  /// Nine of ten runs of sources never seen were off by this multiple of their expected error at most.
  struct Class {
    std::size_t rows = 0, sources = 0;
    double factor = 0;
    double within = 0;  ///< the same once it is known what other runs of the source were off by
    bool operator==(const Class&) const = default;
  };
  std::map<std::string, Class> classes;
  std::map<std::string, std::size_t> gpus, frameworks;  ///< that were measured: runs
  Seconds overhead = 0;  ///< what a source's steps take longer than in proportion: standard deviation between sources
  /// Standard deviation of ln(predicted / measured) between GPUs of which no step was used, and between frameworks.
  double unseen_gpu = 0, unseen_framework = 0;
  bool operator==(const IntervalTable&) const = default;

  /// Returns the narrowest class of which there are runs; `all` at least.
  const std::pair<const std::string, Class>& narrowest(const StepClass& step) const;
};

/// Reads and writes the lines "kind,name,runs,sources,value,within". Throws std::logic_error, or what `parse_csv` throws, where a
/// line is no such.
IntervalTable interval_table_from_csv(const std::string& text);
std::string to_csv(const IntervalTable& table);

/// The table that was built in.
const IntervalTable& interval_table();

}  // namespace tandem::studies
