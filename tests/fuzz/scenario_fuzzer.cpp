// A scenario's file, a campaign's, a --set, a search block.
#include <algorithm>

#include "scenarios/reading/document.h"
#include "scenarios/reading/load.h"
#include "scenarios/reading/load_campaign.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/search_spec.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/tree_mutator.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::fuzz {
namespace {

/// What is taken is written, with its presets filled in, and taken again as the same.
void read_scenario(const std::string& bytes) {
  const scenarios::YamlNode document = scenarios::parse_document(bytes, "input.yaml", {});
  scenarios::read_document(document, "input");
  const std::string written = scenarios::to_yaml(document);
  const scenarios::YamlNode again = scenarios::parse_document(written, "input.yaml", {});
  scenarios::read_document(again, "input");
  require(scenarios::to_yaml(again) == written, "a scenario that was written reads as another one");
}

/// Every one of `refusals_of` is a refusal, and there is none of what is taken.
void lint_scenario(const std::string& bytes) {
  const scenarios::YamlNode document = scenarios::parse_document(bytes, "input.yaml", {});
  const bool is_refused = !scenarios::refusals_of(document, "input").empty();
  bool is_read = true;
  try {
    scenarios::read_document(document, "input");
  } catch (const InputError&) {
    is_read = false;
  }
  require(is_read != is_refused, "what is read and what is refused contradict each other");
}

/// A line of the input is an option.
void set_fields(const std::string& bytes) {
  std::vector<std::string> options;
  for (std::size_t at = 0; at <= bytes.size() && options.size() < 8;) {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    options.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  scenarios::parse_scenario(scenarios::base_text(), "base.yaml", options);
}

/// Small ones of each kind, and what else a scenario may hold.
std::vector<std::string> scenario_seeds() {
  std::vector<std::string> seeds = repository_files("scenarios", ".yaml");
  std::erase_if(seeds, [](const std::string& text) { return text.size() > 3000; });
  seeds.push_back(scenarios::base_text());
  return seeds;
}

std::vector<std::string> search_seeds() {
  std::vector<std::string> blocks;
  for (const std::string& text : repository_files("scenarios", "-search.yaml")) {
    const scenarios::YamlNode document = scenarios::parse_yaml(text, "seed");
    if (const scenarios::YamlNode* block = document.find("search")) blocks.push_back(scenarios::to_yaml(*block));
  }
  return blocks;
}

const std::vector<std::string> scenario_words{"scenarios/reading", "scenarios/spec"};

[[maybe_unused]] const Registered scenario_targets({
    {.name = "scenario", .read = read_scenario, .seeds = scenario_seeds, .words_of = scenario_words, .mutate = mutate_yaml},
    {.name = "scenario-lint", .read = lint_scenario, .seeds = scenario_seeds, .words_of = scenario_words, .mutate = mutate_yaml},
    {.name = "campaign",
     .read = [](const std::string& bytes) { scenarios::parse_campaign(bytes, "input.yaml", {}); },
     .seeds = [] { return repository_files("scenarios", "-campaign.yaml"); },
     .words_of = {"scenarios/reading/read_campaign.cpp", "scenarios/spec/campaign_spec.h"},
     .mutate = mutate_yaml},
    {.name = "set",
     .read = set_fields,
     .seeds =
         [] {
           return std::vector<std::string>{"parallelism.tp=8\ntraining.recompute=full", "model=llama3-8b"};
         },
     .words_of = scenario_words},
    {.name = "search",
     .read = [](const std::string& bytes) { scenarios::read_search(scenarios::parse_yaml(bytes, "input.yaml")); },
     .seeds = search_seeds,
     .words_of = {"scenarios/reading/read_search.cpp", "scenarios/spec/names.h"},
     .mutate = mutate_yaml},
});

}  // namespace
}  // namespace tandem::fuzz
