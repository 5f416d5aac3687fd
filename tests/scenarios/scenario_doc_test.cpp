// docs/scenario.md against the readers: each field that a reader knows has a row, each row is a field that a reader knows, and
// the range in a row is the one that the reader states when it refuses a value.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/input_error.h"
#include "runtime/base/text_file.h"
#include "scenarios/reading/aliases.h"
#include "scenarios/reading/load.h"
#include "scenarios/reading/load_campaign.h"
#include "scenarios/reading/presets.h"

namespace tandem::scenarios::scenario_doc_test {
namespace {

constexpr std::string_view unknown = "zzzzzzzzzzzz";  // near no field, so that an error lists all of them

constexpr const char* scenario_text = R"(
name: base
model: {layers: 8, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, moe: {experts: 8, top_k: 2}}
cluster: {preset: dgx-h100, gpus: 32}
parallelism: {tp: 4, sp: true, pp: 2, dp: 4}
training: {sequence: 1024, micro_batch: 1, global_batch: 16, framework: torchtitan}
faults: {}
campaign: {tokens: 1e9}
)";

/// What must hold for the reader to come as far as the field.
struct Precondition {
  std::string_view prefix;
  std::vector<std::string> overrides;
};
const std::vector<Precondition>& preconditions() {
  static const std::vector<Precondition> all{
      {"parallelism.cp_ulysses", {"parallelism.cp_method=ulysses-ring"}},
      {"parallelism.reshard_after_forward", {"parallelism.zero=3"}},
      {"parallelism.gather_per_micro_batch", {"parallelism.zero=3"}},
      {"parallelism.prefetch", {"parallelism.zero=3"}},
      {"training.recompute_every", {"training.recompute=full"}},
      {"training.recompute_segment", {"training.recompute=full"}},
      {"training.documents.sigma", {"training.documents.mean=10"}},
      {"training.sync.backups", {"training.sync.kind=backup"}},
      {"training.sync.late", {"training.sync.kind=backup", "training.sync.backups=1"}},
      {"training.sync.staleness", {"training.sync.kind=stale"}},
      {"training.sync.servers", {"training.sync.kind=asynchronous"}},
      {"training.sync.every", {"training.sync.kind=local"}},
      {"training.sync_steps", {"training.sync.kind=asynchronous"}},
      {"faults.slow_gpu.factor", {"faults.slow_gpu.rank=0"}},
      {"faults.dead_link.cable", {"faults.dead_link.leaf=0"}},
      {"faults.slow_link.cable", {"faults.slow_link.leaf=0"}},
      {"faults.slow_link.factor", {"faults.slow_link.leaf=0"}},
      {"cluster.pcie.ports.gpus", {"cluster.pcie.ports.GBps=1"}},
      {"cluster.fabric.switches", {"cluster.fabric.kind=custom"}},
      {"cluster.fabric.switches.up", {"cluster.fabric.switches.name=leaf"}},
      {"cluster.fabric.switches.up.cables", {"cluster.fabric.switches.up.to=spine"}},
      {"cluster.fabric.switches.up.gbps", {"cluster.fabric.switches.up.to=spine"}},
      {"model.linear_attention.", {"model.linear_attention.key_heads=16", "model.layer_types=[linear_attention]"}},
      {"model.lightning_attention.", {"model.lightning_attention.heads=16", "model.layer_types=[lightning_attention]"}},
      {"model.indexer.", {"model.indexer.heads=4"}},
      {"model.compressed_attention.",
       {"model.compressed_attention.q_rank=64", "model.compressed_attention.rope_dim=16",
        "model.compressed_attention.output_rank=32"}},
      {"model.compressed_attention.yarn.",
       {"model.compressed_attention.yarn.factor=4", "model.compressed_attention.yarn.original_positions=64"}},
      {"model.hyper_connections.", {"model.hyper_connections.streams=2"}},
      {"model.encoder.",
       {"model.encoder.layers=1", "model.encoder.hidden=64", "model.encoder.heads=4", "model.encoder.ffn=64",
        "model.encoder.patches=16", "model.encoder.patch_width=12"}},
      {"model.mamba.", {"model.mamba.heads=16", "model.layer_types=[mamba]"}},
      {"campaign.days", {"campaign.tokens=~"}},
  };
  return all;
}

/// The sentence that refuses the scenario with this field set; empty where nobody does.
std::string refusal(const std::string& path, std::string_view value) {
  std::vector<std::string> overrides;
  for (const Precondition& precondition : preconditions())
    if (path.starts_with(precondition.prefix))
      overrides.insert(overrides.end(), precondition.overrides.begin(), precondition.overrides.end());
  overrides.push_back(path + "=" + std::string(value));
  try {
    if (path.starts_with("campaign"))
      parse_campaign(scenario_text, "s.yaml", overrides);
    else
      parse_scenario(scenario_text, "s.yaml", overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(separator, from), text.size());
    parts.emplace_back(text.substr(from, to - from));
    from = to + separator.size();
  }
  return parts;
}

/// The fields of a mapping, from the sentence that refuses one it does not have; none where the path is no mapping.
std::vector<std::string> fields_of(const std::string& path) {
  const std::string sentence = refusal(path + "." + std::string(unknown), "1");
  const std::string known = "has no field `" + std::string(unknown) + "`; expected one of: ";
  const std::size_t at = sentence.find(known);
  return at == std::string::npos ? std::vector<std::string>{} : split(std::string_view(sentence).substr(at + known.size()), ", ");
}

/// Every field that the readers know, by asking them mapping by mapping.
std::set<std::string> known_fields() {
  std::set<std::string> known;
  // An operation is named by its user, so no reader lists it.
  std::vector<std::string> mappings{"training.framework.forward.gemm"};
  for (const std::string section : {"model", "cluster", "parallelism", "training", "faults", "search", "campaign"}) {
    known.insert(section);
    mappings.push_back(section);
  }
  while (!mappings.empty()) {
    const std::string mapping = mappings.back();
    mappings.pop_back();
    for (const std::string& field : fields_of(mapping))
      if (known.insert(mapping + "." + field).second) mappings.push_back(mapping + "." + field);
  }
  return known;
}

struct Row {
  std::string field, value;
};

std::string trimmed(std::string text) {
  const auto not_space = [](char c) { return c != ' ' && c != '`'; };
  text.erase(text.begin(), std::ranges::find_if(text, not_space));
  text.erase(std::find_if(text.rbegin(), text.rend(), not_space).base(), text.end());
  return text;
}

std::string document() { return read_text_file(TANDEM_SOURCE_DIR "/docs/scenario.md", "a page"); }

/// Rows of the tables whose head has so many columns.
std::vector<Row> rows_of_width(std::size_t columns) {
  std::vector<Row> rows;
  for (const std::string& line : split(document(), "\n")) {
    if (!line.starts_with("| `")) continue;
    const std::vector<std::string> cells = split(line, "|");
    if (cells.size() == columns + 2) rows.push_back({trimmed(cells[1]), trimmed(cells[2])});
  }
  return rows;
}
std::vector<Row> field_rows() { return rows_of_width(4); }

/// The path with capital letters, which stand for any name, replaced by one.
std::string example_of(std::string field) {
  const std::pair<std::string_view, std::string_view> names[] = {
      {"TYPE", "bf16"}, {"KERNEL", "flash-2"}, {"PASS", "forward"}, {"ARCHITECTURE", "hopper"}, {"OPERATION", "gemm"}};
  for (const auto& [variable, name] : names)
    if (const std::size_t at = field.find(variable); at != std::string::npos) field.replace(at, variable.size(), name);
  return field;
}

bool is_variable(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= 'A' && c <= 'Z'; });
}

/// Whether the row is of this field, or of one inside it.
bool describes(const Row& row, const std::string& field) {
  const std::vector<std::string> of_row = split(row.field, "."), names = split(field, ".");
  if (of_row.size() < names.size()) return false;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (of_row[i] != names[i] && !is_variable(of_row[i])) return false;
  return true;
}

TEST(ScenarioDocument, HasARowForEachFieldThatAReaderKnows) {
  const std::vector<Row> rows = field_rows();
  const std::set<std::string> known = known_fields();
  EXPECT_GT(known.size(), 200U);  // fewer would mean that the readers no longer say what they know
  for (const std::string& field : known)
    EXPECT_TRUE(std::ranges::any_of(rows, [&](const Row& row) { return describes(row, field); }))
        << "docs/scenario.md has no row for " << field;
}

TEST(ScenarioDocument, HasNoRowThatNoReaderKnows) {
  std::set<std::string> seen;
  for (const Row& row : field_rows()) {
    EXPECT_TRUE(seen.insert(row.field).second) << row.field << " has two rows";
    const std::string sentence = refusal(example_of(row.field), unknown);
    EXPECT_EQ(sentence.find("has no field"), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find("not a mapping"), std::string::npos) << sentence;
  }
}

bool is_range(const std::string& text) {
  return std::ranges::any_of(std::array{"a whole number from ", "a number from ", "true or false", "one of: "},
                             [&](const char* form) { return text.starts_with(form); });
}

/// How the reader of this field states its range; nothing where it states none, or where it refuses another field.
std::optional<std::string> stated_range(const std::string& sentence) {
  const std::size_t at = sentence.rfind("expected ");
  if (at == std::string::npos || sentence.find('`' + std::string(unknown) + '`') == std::string::npos) return {};
  const std::string range = sentence.substr(at + std::string_view("expected ").size());
  return is_range(range) ? std::optional(range) : std::nullopt;
}

/// Whether a row states the range of a reader, by itself or before what else the field may be, such as a list or a mapping.
bool states(const std::string& value, const std::string& range) {
  if (value == range) return true;
  const std::string_view names = "one of: ";
  const std::string first = range.starts_with(names) ? range.substr(names.size()) : range;
  return std::ranges::any_of(std::array{", or ", ", a ", "; "},
                             [&](const char* rest) { return value.starts_with(first + rest); });
}

TEST(ScenarioDocument, StatesTheRangesOfTheReaders) {
  std::size_t compared = 0, presets = 0;
  for (const Row& row : field_rows()) {
    const std::string sentence = refusal(example_of(row.field), unknown);
    const std::optional<std::string> range = stated_range(sentence);
    if (!range) {
      EXPECT_FALSE(is_range(row.value)) << row.field << " has the row " << row.value << ", but: " << sentence;
      continue;
    }
    if (sentence.find(" preset `") != std::string::npos) {  // of which there are as many as files
      EXPECT_NE(row.value.find("preset"), std::string::npos) << row.field << ": " << sentence;
      ++presets;
      continue;
    }
    EXPECT_TRUE(states(row.value, *range)) << row.field << " has the row " << row.value << ", but: " << sentence;
    ++compared;
  }
  EXPECT_GT(compared, 150U);
  EXPECT_GT(presets, 5U);
}

TEST(ScenarioDocument, ListsTheNamesOfOtherPrograms) {
  std::set<std::string> documented, understood;
  for (const Row& row : rows_of_width(2))
    if (row.field.find('.') != std::string::npos) documented.insert(row.field);  // not the table of folders
  for (const std::string section : {"model", "cluster", "parallelism", "training"})
    for (const std::string& alias : aliases_of(section)) understood.insert(section + "." + alias);
  EXPECT_EQ(documented, understood);
}

/// The names in backquotes.
std::set<std::string> quoted_names(const std::string& value) {
  std::set<std::string> names;
  for (std::size_t begin = value.find('`'); begin != std::string::npos;) {
    const std::size_t end = value.find('`', begin + 1);
    names.insert(value.substr(begin + 1, end - begin - 1));
    begin = value.find('`', end + 1);
  }
  return names;
}

TEST(ScenarioDocument, ListsThePresetsThatShip) {
  const std::array<std::pair<PresetKind, const char*>, 5> kinds{{{PresetKind::model, "models: "},
                                                                 {PresetKind::gpu, "GPUs"},
                                                                 {PresetKind::cluster, "clusters"},
                                                                 {PresetKind::framework, "frameworks"},
                                                                 {PresetKind::campaign, "campaigns"}}};
  for (const auto& [kind, title] : kinds) {
    std::set<std::string> documented;
    for (const std::string& line : split(document(), "\n"))
      if (line.starts_with(std::string("| ") + title)) documented.merge(quoted_names(line));
    const std::vector<std::string> names = preset_names(kind);
    EXPECT_EQ(documented, std::set<std::string>(names.begin(), names.end())) << title;
  }
}

}  // namespace
}  // namespace tandem::scenarios::scenario_doc_test
