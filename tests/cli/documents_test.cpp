// The pages of docs/ against the program: docs/commands lists the options that --help lists, and docs/json.md has every key that
// the commands write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/text_file.h"
#include "tests/cli/help_text.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::documents_test {
namespace {

using nlohmann::json;

const std::string documents = TANDEM_SOURCE_DIR "/docs/";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// What stands in the first group of each match at the beginning of a line.
std::set<std::string> found_in(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (const std::string& line : lines_of(text))
    if (std::smatch match; std::regex_search(line, match, pattern, std::regex_constants::match_continuous))
      found.insert(match[1]);
  return found;
}

void expect_same_options(const std::string& page, const std::string& help) {
  const std::string text = read_text_file(documents + "commands/" + page + ".md", "a page");
  std::vector<std::string> documented = {"-h"};
  for (const std::string& name : found_in(text, std::regex("\\| `(?:-h, )?(--[a-z-]+)[ `]"))) documented.push_back(name);
  EXPECT_THAT(options_in(help), testing::UnorderedElementsAreArray(documented)) << "docs/commands/" << page << ".md";
}

TEST(Documents, HaveAPageForEachCommandWithItsOptions) {
  const std::vector<std::string> commands = subcommands_in(run_tandem({"--help"}).out);
  EXPECT_GE(commands.size(), 16U);
  for (const std::string& command : commands) expect_same_options(command, run_tandem({command, "--help"}).out);
  expect_same_options("tandem-run", run_dag({"--help"}).out);
}

TEST(Documents, HaveAManualPageWithEachCommand) {
  const std::string page = read_text_file(documents + "tandem.1", "a page");
  const std::string commands = page.substr(0, page.find(".SH EXIT"));
  std::vector<std::string> named;
  const std::regex name("\n\\.TP\n\\.BR? (\\w+)(?: \", \" (\\w+))?");
  for (auto match = std::sregex_iterator(commands.begin(), commands.end(), name); match != std::sregex_iterator(); ++match)
    for (const std::size_t group : {1, 2})
      if ((*match)[group].matched) named.push_back((*match)[group]);
  EXPECT_THAT(named, testing::UnorderedElementsAreArray(subcommands_in(run_tandem({"--help"}).out)));
}

struct Key {
  std::string name, unit;
};

/// The keys of one section of docs/json.md, and those of the objects with tables of their own.
class Keys {
 public:
  explicit Keys(const std::string& section) {
    std::string heading;
    for (const std::string& line : lines_of(read_text_file(documents + "json.md", "a page"))) {
      if (line.starts_with("## ")) heading = line.substr(3);
      std::smatch match;
      if (!std::regex_match(line, match, std::regex("\\| `([^`]+)` \\| ([^|]+) \\|.*"))) continue;
      if (heading == section || is_name(match[1].str().substr(0, match[1].str().find('.'))))
        keys_.push_back({match[1], match[2]});
    }
  }

  /// Whether a row tells of `path`: by its name, with capitals for any name, or as a key of an object with a table of its own.
  bool tell_of(const std::string& path) const {
    return std::ranges::any_of(keys_, [&](const Key& key) {
      const std::size_t rest = length_of_match(key.name, path);
      if (rest == std::string::npos) return false;
      if (rest == path.size()) return true;
      return is_name(key.unit) && path[rest] == '.' && tell_of(key.unit + path.substr(rest));
    });
  }
  bool empty() const { return keys_.empty(); }

 private:
  std::vector<Key> keys_;

  static bool is_name(const std::string& text) {
    return std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; }) && !text.empty();
  }

  /// How much of `path` the key takes from its beginning up to the end of one of its names; npos where they differ.
  static std::size_t length_of_match(const std::string& key, const std::string& path) {
    std::size_t at = 0, from = 0;
    while (from < key.size()) {
      const std::size_t to = std::min(key.find('.', from), key.size());
      const std::string name = key.substr(from, to - from);
      const bool any = from > 0 && is_name(name);
      // The name of a field holds points: "parallelism.tp".
      const std::size_t end = name == "PATH" ? path.size() : std::min(path.find('.', at), path.size());
      if (at > path.size() || (!any && path.compare(at, end - at, name) != 0)) return std::string::npos;
      at = end + 1;
      from = to + 1;
    }
    return at - 1;
  }
};

/// What stands in the columns of the rows of AGENTS.md's tables.
std::vector<std::vector<std::string>> rows_for_agents() {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : lines_of(read_text_file(TANDEM_SOURCE_DIR "/AGENTS.md", "a page"))) {
    if (!line.starts_with("| ")) continue;
    std::vector<std::string>& cells = rows.emplace_back();
    std::istringstream stream(line.substr(2));
    for (std::string cell; std::getline(stream, cell, '|');) cells.push_back(cell);
  }
  return rows;
}

/// What stands between backticks.
std::vector<std::string> code_in(const std::string& text) {
  std::vector<std::string> code;
  const std::regex quoted("`([^`]+)`");
  for (auto match = std::sregex_iterator(text.begin(), text.end(), quoted); match != std::sregex_iterator(); ++match)
    code.push_back((*match)[1]);
  return code;
}

// What AGENTS.md promises to programs: commands and options that there are, and keys that these write.
TEST(Documents, TellAgentsOfCommandsOptionsAndKeysThatThereAre) {
  const std::vector<std::string> commands = subcommands_in(run_tandem({"--help"}).out);
  const std::map<std::string, std::string> sections = {
      {"simulate", "A step"},   {"execute", "A step"},      {"search", "A search"},
      {"lint", "A lint"},       {"diff", "A diff"},         {"campaign", "A campaign"},
      {"place", "A placement"}, {"topology", "A topology"}, {"validate", "A validation"}};
  std::set<std::string> told;
  std::string command;  // of the row, or of the one above where that is "the same"
  for (const std::vector<std::string>& row : rows_for_agents()) {
    if (row.size() < 3) continue;
    for (const std::string& code : code_in(row[1])) {
      if (!code.starts_with("tandem ")) continue;
      std::istringstream words(code);
      words >> command >> command;
      told.insert(command);
      ASSERT_THAT(commands, testing::Contains(command)) << code;
      const std::vector<std::string> options = options_in(run_tandem({command, "--help"}).out);
      for (std::string word; words >> word;)
        if (word.starts_with("--")) {
          EXPECT_THAT(options, testing::Contains(word)) << code;
        }
    }
    const auto section = sections.find(command);
    if (section == sections.end()) continue;
    const Keys keys(section->second);
    for (const std::string& key : code_in(row[2]))
      EXPECT_TRUE(key == "simulate" || key == "points" || keys.tell_of(key)) << command << " writes no " << key;
  }
  for (const auto& [name, section] : sections) EXPECT_THAT(told, testing::Contains(name));
}

TEST(Documents, TellAgentsOfEveryExitCode) {
  std::vector<std::string> codes;
  for (const std::vector<std::string>& row : rows_for_agents())
    if (!row.empty() && std::isdigit(static_cast<unsigned char>(row[0][0])) != 0) codes.push_back(row[0]);
  EXPECT_THAT(codes, testing::ElementsAre("0 ", "1 ", "2 ", "3 "));

  const TemporaryFolder folder;
  const std::string tiny = scenario_file("tiny-host"), wrong = folder / "wrong.yaml";
  std::ofstream(wrong) << "modle: x\n";
  EXPECT_EQ(run_tandem({"simulate", tiny, "--json", "-"}).exit_code, 0);
  EXPECT_EQ(run_tandem({"simulate", tiny, "--json", "/no/such/folder/f"}).exit_code, 1);
  EXPECT_EQ(run_tandem({"simulate", wrong}).exit_code, 2);
  EXPECT_EQ(run_tandem({"simulate", tiny, "--set", "cluster.gpu.memory_GiB=0.001"}).exit_code, 3);
}

/// Every key of a result: "stages_s[].exposed.tp".
void collect(const json& value, const std::string& path, std::set<std::string>& paths) {
  if (!path.empty() && !path.ends_with("[]")) paths.insert(path);
  if (value.is_object())
    for (const auto& [key, child] : value.items()) collect(child, path.empty() ? key : path + "." + key, paths);
  if (value.is_array())
    for (const json& item : value) collect(item, path + "[]", paths);
}

void expect_told(const std::string& section, const json& result) {
  const Keys keys(section);
  EXPECT_FALSE(keys.empty()) << "docs/json.md has no section " << section;
  std::set<std::string> paths;
  collect(result, "", paths);
  EXPECT_GT(paths.size(), 5U) << section;
  for (const std::string& path : paths)
    EXPECT_TRUE(keys.tell_of(path)) << "docs/json.md tells nothing of " << path << " under " << section;
}

json result_of(std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  const std::string file = folder / "result.json";
  arguments.insert(arguments.end(), {"--json", file});
  const CommandResult result = run_tandem(arguments);
  EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 1 || result.exit_code == 3) << result.err;  // what lint warns of
  return json::parse(read_text_file(file, "a result"));
}

constexpr const char* small_text =
    "name: small\n"
    "model: {layers: 4, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096}\n"
    "cluster: {preset: dgx-h100, gpus: 32}\n"
    "parallelism: {tp: 2, sp: true, pp: 2, dp: 8}\n"
    "training: {sequence: 1024, micro_batch: 1, global_batch: 16}\n"
    "search: {axes: {tp: [2], pp: [1, 2], vpp: [1], cp: [1], zero: [1], micro_batch: [1], sp: [true], schedule: [1f1b]}}\n"
    "faults: {mtbf: {gpu_hours: 1000}}\n"
    "campaign: {days: 1, replicas: 10}\n";

class DocumentedKeys : public testing::Test {
 protected:
  DocumentedKeys() { std::ofstream(scenario()) << small_text; }
  std::string scenario() const { return folder_ / "small.yaml"; }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryFolder folder_;
};

TEST_F(DocumentedKeys, AreThoseOfAStep) {
  expect_told("A step", result_of({"simulate", scenario(), "--set", "faults.jitter={kernel: 0.02, draws: 2}", "--set",
                                   "cluster.fabric.routing=ecmp", "--fold-tolerance", "1"}));
  expect_told("A step", result_of({"simulate", scenario(), "--set", "training.sync_every=2", "--set", "parallelism.zero=0"}));
  expect_told("A step", result_of({"simulate", scenario(), "--set",
                                   "model.moe={experts: 8, top_k: 2, capacity_factor: 1, load: {zipf: 1}}"}));
  expect_told("A step", result_of({"simulate", scenario(), "--set", "model.moe={experts: 8, top_k: 2, routing: expert-choice}"}));
  const std::string sync =
      "training.sync=[{kind: backup, backups: 1}, {kind: stale, staleness: 2}, {kind: local, every: 2}, "
      "{kind: asynchronous, servers: 1}]";
  expect_told("A step", result_of({"simulate", scenario(), "--set", "parallelism.zero=0", "--set", sync}));
  expect_told("A step", result_of({"crosscheck", scenario_file("tiny-host"), "--backend", "host"}));
}

TEST_F(DocumentedKeys, AreThoseOfASearch) {
  expect_told("A search", result_of({"search", scenario(), "--jobs", "1", "--out", *this / "s.sqlite", "--explain", "pp=1"}));
  expect_told("A search", result_of({"search", scenario(), "--jobs", "1", "--out", *this / "p.sqlite", "--set",
                                     "search.objective={price_per_gpu_hour: 2}"}));
}

TEST_F(DocumentedKeys, AreThoseOfADiff) {
  const std::string a = *this / "a.json", b = *this / "b.json";
  run_tandem({"simulate", scenario(), "--json", a});
  run_tandem({"simulate", scenario(), "--set", "training.recompute=full", "--json", b});
  expect_told("A diff", result_of({"diff", a, b}));
}

TEST_F(DocumentedKeys, AreThoseOfATracedStep) {
  const std::string traces = *this / "traces/", out = *this / "out.json";
  ASSERT_EQ(run_tandem({"simulate", scenario(), "--trace", traces}).exit_code, 0);
  expect_told("A measured step", result_of({"crosscheck", scenario(), "--measured", traces}));
  ASSERT_EQ(run_tandem({"import", traces, "--from", "kineto", "--out", out}).exit_code, 0);
  expect_told("A traced step", json::parse(read_text_file(out, "a result")));
}

TEST_F(DocumentedKeys, AreThoseOfALint) {
  expect_told("A lint", result_of({"lint", scenario(), "--jobs", "1"}));
  for (const char* gigabytes : {"0.06", "0.001"})
    expect_told("A lint",
                result_of({"lint", scenario(), "--jobs", "1", "--set", std::string("cluster.gpu.memory_GiB=") + gigabytes}));
}

TEST_F(DocumentedKeys, AreThoseOfACampaign) { expect_told("A campaign", result_of({"campaign", scenario(), "--jobs", "1"})); }

TEST_F(DocumentedKeys, AreThoseOfAPlacement) {
  expect_told("A placement", result_of({"place", scenario(), "--jobs", "1", "--moves", "10", "--out", *this / "p.yaml"}));
}

TEST_F(DocumentedKeys, AreThoseOfATopology) { expect_told("A topology", result_of({"topology", scenario()})); }

TEST_F(DocumentedKeys, AreThoseOfAValidation) {
  const std::string runs = TANDEM_SOURCE_DIR "/scenarios/runs/korthikanti-2022.csv";
  expect_told("A validation", result_of({"validate", runs, "--jobs", "1"}));
  expect_told("An explained run", result_of({"validate", runs, "--jobs", "1", "--explain", "22b-full"}));
}

}  // namespace
}  // namespace tandem::cli::documents_test
