#pragma once

#include <string>
#include <vector>

#include "scenarios/reading/overlay.h"
#include "scenarios/reading/yaml_tree.h"

namespace tandem::studies {

/// A scenario and the points at which to simulate it: every item of `points` with every cell of `grid`, the last field of the
/// grid varying fastest.
///
///     scenario: ../llama3-405b-16k.yaml    # beside the study's file, or the scenario itself as a mapping
///     name: dp-scaling                     # the file's name where left out
///     set: {cluster.gpus: ~}               # for all points
///     grid: {parallelism.dp: [8, 16]}
///     points: [{training.global_batch: 128}, {training.global_batch: 256, training.recompute: full}]
///     skip_invalid: true                   # what the scenario refuses becomes a row that says so
struct Study {
  struct GridField {
    std::string path;
    Place place;
    std::vector<YamlNode> values;
  };

  std::string name;
  std::string file;
  std::string folder;  ///< where the presets of the scenario that are files lie
  YamlNode scenario;   ///< with `set` applied, presets not yet filled in
  std::string scenario_name;
  std::vector<Assignments> points;  ///< one without assignments where the study has only a grid
  std::vector<GridField> grid;
  std::vector<std::string> paths;  ///< the fields that vary, in the order in which they appear first
  bool skip_invalid = false;

  std::size_t size() const;
  Assignments assignments(std::size_t point) const;
};

/// Reads a study and its scenario. Throws InputError, also where a file cannot be read.
Study load_study(const std::string& path);

/// Returns the assignments as a message names a point: "parallelism.dp=8 training.recompute=full".
std::string to_text(const Assignments& assignments);

}  // namespace tandem::studies
