// The parsers below all readers of text, by themselves, which is fast.
#include "scenarios/interop/foreign_tree.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/json_tree.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/tree_mutator.h"

namespace tandem::fuzz {
namespace {

void read_yaml(const std::string& bytes) {
  const std::string written = scenarios::to_yaml(scenarios::parse_yaml(bytes, "input.yaml"));
  if (written.size() > 100'000) return;  // aliases
  require(scenarios::to_yaml(scenarios::parse_yaml(written, "written.yaml")) == written, "written YAML reads as something else");
}

[[maybe_unused]] const Registered parsers({
    {.name = "yaml",
     .read = read_yaml,
     .seeds = [] { return repository_files("scenarios/textbook", ".yaml"); },
     .mutate = mutate_yaml},
    {.name = "json",
     .read = [](const std::string& bytes) { scenarios::parse_json(bytes, "input.json"); },
     .seeds = [] { return std::vector{repository_file("tests/studies/samples/hf.json")}; },
     .mutate = mutate_json},
    {.name = "toml",
     .read = [](const std::string& bytes) { scenarios::parse_toml(bytes, "input.toml"); },
     .seeds = [] { return std::vector{repository_file("tests/studies/samples/torchtitan.toml")}; }},
});

}  // namespace
}  // namespace tandem::fuzz
