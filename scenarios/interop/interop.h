#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

// A scenario as other programs want it, and back.

/// Something that the other program has no word for.
struct Lost {
  std::string field;  ///< of the scenario: "parallelism.order"
  std::string why;    ///< one clause
};

/// Text for another program. What it cannot express stands in it as comments, too.
struct Exported {
  std::string text;
  std::vector<Lost> lost;
};

/// A scenario that was read, with the document it was read from.
struct ScenarioWithDocument {
  Scenario scenario;
  YamlNode document;  ///< presets filled in, overrides applied
};

/// The document as YAML for people: a section per paragraph, a field per line.
std::string scenario_yaml(const YamlNode& document);

/// Another program's file, and what is known beside it.
struct ForeignText {
  std::string text;
  std::string file;                               ///< for places
  std::int64_t gpus = 0;                          ///< how many will run it; 0 where that is not known
  std::span<const std::string> environment = {};  ///< "NAME=VALUE", of a script
};

/// Something that the file does not say and that nobody could guess: wrong unless the user sets the field.
struct Missing {
  std::string field;     ///< of the scenario: "model.vocab"
  Place place;           ///< in the file
  std::string sentence;  ///< what is missing and what was expected
};

/// A scenario read from another program's words: all but its cluster, of which that program knows nothing.
struct Imported {
  YamlNode document;                      ///< every value has its place in the file
  std::vector<std::string> ignored;       ///< what says nothing that a scenario has, in the file's order
  std::vector<std::string> notes = {};    ///< what the scenario leaves out of what the file means, with places
  std::vector<std::string> assumed = {};  ///< what the file does not say, and what was taken for it
  std::vector<Missing> missing = {};
};

}  // namespace tandem::scenarios
