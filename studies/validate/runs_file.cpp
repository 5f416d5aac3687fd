#include "studies/validate/runs_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "runtime/base/lower_case.h"
#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"
#include "runtime/dag/axis.h"
#include "scenarios/spec/limits.h"

namespace tandem::studies {
namespace {

enum class CellKind : std::uint8_t {
  text,
  integer,
  number,
  flag,
  memory  ///< a number, or "OOM" for a run that did not fit
};

struct ColumnRule {
  std::string_view name;
  CellKind kind = CellKind::text;
  double least = 0;
  double most = 0;
  std::string_view unit = {};  ///< that the range is in
  bool required = false;
};

constexpr double most_width = 4'194'304, most_sequences = 16'777'216, most_ranks = max_gpus;

/// What the run was.
constexpr ColumnRule run_columns[] = {
    {.name = "id", .required = true},
    {.name = "source"},
    {.name = "framework"},
    {.name = "gpu", .required = true},
    {"n_gpus", CellKind::integer, 1, most_ranks, "GPUs", true},
    {"gpus_per_node", CellKind::integer, 1, 65'536, "GPUs"},
    {"nvlink_GBps", CellKind::number, 1, 20'000, "GB/s in one direction"},
    {"nics_per_node", CellKind::integer, 0, 65'536, "NICs"},
    {"nic_gbps", CellKind::number, 1, 20'000, "Gbit/s"},
    {.name = "network"},
    {.name = "model"},
    {.name = "preset"},
    {"layers", CellKind::integer, 1, max_layers, "layers"},
    {"hidden", CellKind::integer, 1, most_width, "elements"},
    {"heads", CellKind::integer, 1, 65'536, "heads"},
    {"kv_heads", CellKind::integer, 1, 65'536, "heads"},
    {"ffn", CellKind::integer, 1, most_width, "elements"},
    {.name = "gated", .kind = CellKind::flag},
    {"vocab", CellKind::integer, 2, 16'777'216, "tokens"},
    {"sequence", CellKind::integer, 1, 16'777'216, "tokens", true},
    {"experts", CellKind::integer, 0, 65'536, "experts"},
    {"top_k", CellKind::integer, 0, 1'024, "experts"},
    {"moe_ffn", CellKind::integer, 0, most_width, "elements"},
    {"capacity_factor", CellKind::number, 0, 1'000, "times an even share"},
    {"mtp_depth", CellKind::integer, 0, 64, "further tokens"},
    {.name = "precision"},
    {.name = "fp8_recipe"},
    {.name = "grad_dtype"},
    {.name = "first_last_bf16", .kind = CellKind::flag},
    {.name = "fp8_param_gather", .kind = CellKind::flag},
    {.name = "fp4_param_gather", .kind = CellKind::flag},
    {.name = "fp8_dpa", .kind = CellKind::flag},
    {.name = "fp8_output_proj", .kind = CellKind::flag},
    {"bf16_layers_at_start", CellKind::integer, 0, max_layers, "layers"},
    {"bf16_layers_at_end", CellKind::integer, 0, max_layers, "layers"},
    {.name = "cuda_graph"},
    {name_of(Axis::tp), CellKind::integer, 1, most_ranks, "GPUs"},
    {.name = "sp", .kind = CellKind::flag},
    {name_of(Axis::pp), CellKind::integer, 1, most_ranks, "stages"},
    {"vpp", CellKind::integer, 1, max_layers, "model chunks of a stage"},
    {name_of(Axis::cp), CellKind::integer, 1, most_ranks, "GPUs"},
    {name_of(Axis::ep), CellKind::integer, 1, most_ranks, "GPUs"},
    {"etp", CellKind::integer, 1, most_ranks, "GPUs"},
    {name_of(Axis::dp), CellKind::integer, 1, most_ranks, "replicas"},
    {.name = "pipeline_layout"},
    {.name = "schedule"},
    {"zero", CellKind::integer, 0, 3, "stages of ZeRO"},
    {"hsdp", CellKind::integer, 0, most_ranks, "GPUs of a shard group"},
    {"micro_batch", CellKind::integer, 1, 4'096, "sequences"},
    {"global_batch", CellKind::integer, 1, most_sequences, "sequences", true},
    {.name = "recompute"},
    {"recompute_every", CellKind::integer, 1, 10'000, "layers"},
    {.name = "attention"},
    {.name = "overlap_dp", .kind = CellKind::flag},
    {.name = "overlap_tp", .kind = CellKind::flag},
    {.name = "overlap_pp", .kind = CellKind::flag},
    {.name = "overlap_ep", .kind = CellKind::flag},
    {.name = "dispatcher"},
    {.name = "compiled", .kind = CellKind::flag},
    {.name = "cross_entropy"},
    {.name = "cp_method"},
};

/// What was measured.
constexpr ColumnRule measured_columns[] = {
    {"step_time_s", CellKind::number, 1e-6, 1e6, "seconds"},
    {.name = "step_time_kind"},
    {"tokens_per_s_per_gpu", CellKind::number, 1e-6, 1e9, "tokens/s of one GPU"},
    {"tflops_per_gpu", CellKind::number, 1e-6, 1e5, "TFLOP/s of one GPU"},
    {.name = "flops_formula"},
    {"mfu_pct", CellKind::number, 1e-6, 200, "percent"},
    {"memory_gb", CellKind::memory, 1e-6, 10'000, "GB of one GPU"},
    {.name = "memory_kind"},
    {"reserved_gib", CellKind::number, 1e-6, 10'000, "GiB of one GPU"},
    {.name = "core", .kind = CellKind::flag},
};

/// For people.
constexpr std::string_view remarks[] = {"hfu_pct", "trust", "notes", "address", "status", "arch_status", "seen"};

std::vector<ColumnRule> all_columns() {
  std::vector<ColumnRule> all(std::begin(run_columns), std::end(run_columns));
  all.insert(all.end(), std::begin(measured_columns), std::end(measured_columns));
  return all;
}

const ColumnRule* rule_of(std::string_view name) {
  static const std::vector<ColumnRule> all = all_columns();
  const auto found = std::ranges::find(all, name, &ColumnRule::name);
  return found == all.end() ? nullptr : &*found;
}

/// The column that `name` was probably meant to be, or empty. Stricter than `nearest`, since a table may well have columns of its
/// own.
std::string meant_by(const std::string& name) {
  const std::size_t most_edits = std::clamp<std::size_t>(name.size() / 3, 1, 2);
  const auto distance = [&](const ColumnRule& rule) {
    return edit_distance(lower_case(name), lower_case(std::string(rule.name)));
  };
  const std::vector<ColumnRule> all = all_columns();
  const auto near = std::ranges::min_element(all, {}, distance);
  return distance(*near) <= most_edits ? std::string(near->name) : "";
}

/// Without spaces around it, and empty for the words that stand for a blank.
std::string known_text(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return {};
  const std::string trimmed = text.substr(first, text.find_last_not_of(" \t") - first + 1);
  const std::string word = lower_case(trimmed);
  return word == "not given" || word == "unknown" || word == "n/a" ? "" : trimmed;
}

std::optional<double> parsed(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [parsed_to, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && parsed_to == end && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string expectation(const ColumnRule& rule) {
  if (rule.kind == CellKind::flag) return "0, 1 or nothing";
  return fmt::format("{}{} from {} to {}, or nothing where it is unknown",
                     rule.kind == CellKind::integer ? "a whole number of " : "", rule.unit, rule.least, rule.most);
}

bool is_valid(const ColumnRule& rule, const std::string& text) {
  if (rule.kind == CellKind::text || text.empty()) return true;
  if (rule.kind == CellKind::flag) return text == "0" || text == "1";
  if (rule.kind == CellKind::memory && text == "OOM") return true;
  const std::optional<double> value = parsed(text);
  if (!value || *value < rule.least || *value > rule.most) return false;
  return rule.kind != CellKind::integer || *value == std::floor(*value);
}

void check_header(const std::vector<CsvCell>& header, const std::string& path, std::vector<std::string>& ignored) {
  constexpr std::size_t most_columns = 200;
  if (header.size() > most_columns)
    throw InputError(header[most_columns].place, "the table has " + std::to_string(header.size()) +
                                                     " columns, expected at most " + std::to_string(most_columns));
  std::map<std::string, const CsvCell*> seen;
  for (const CsvCell& cell : header) {
    if (cell.text.empty()) throw InputError(cell.place, "the column has no name, expected one such as micro_batch");
    const auto [same, is_new] = seen.emplace(cell.text, &cell);
    if (!is_new)
      throw InputError(cell.place, "the column " + excerpt(cell.text) + " is there twice, first in column " +
                                       std::to_string(same->second->place.column) + ", expected it once");
    if (rule_of(cell.text) != nullptr || std::ranges::find(remarks, cell.text) != std::end(remarks)) continue;
    const std::string meant = meant_by(cell.text);
    if (!meant.empty())
      throw InputError(cell.place, "there is no column " + excerpt(cell.text) + "; did you mean `" + meant + "`?");
    ignored.push_back(cell.text);
  }
  const Place& place = header.empty() ? Place{.file = path} : header.front().place;
  for (const ColumnRule& rule : run_columns)
    if (rule.required && !seen.contains(std::string(rule.name)))
      throw InputError(place, "the column " + std::string(rule.name) +
                                  " is missing, expected at least id, gpu, n_gpus, sequence, " +
                                  "global_batch and preset or the model's shape");
  for (const char* shape : {"layers", "hidden", "heads", "ffn", "vocab"})
    if (!seen.contains("preset") && !seen.contains(shape))
      throw InputError(place, std::string("the columns preset and ") + shape + " are missing, expected one of the two");
}

RunRow read_row(const std::vector<CsvCell>& header, const std::vector<CsvCell>& cells) {
  std::map<std::string, CsvCell, std::less<>> by_column;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    CsvCell cell{known_text(cells[i].text), cells[i].place};
    const ColumnRule* rule = rule_of(header[i].text);
    if (rule != nullptr && !is_valid(*rule, cell.text))
      throw InputError(cell.place, header[i].text + " is " + excerpt(cell.text) + ", expected " + expectation(*rule));
    if (rule != nullptr && rule->kind == CellKind::integer && !cell.text.empty())  // "8.0", as spreadsheets write it
      cell.text = std::to_string(static_cast<std::int64_t>(*parsed(cell.text)));
    by_column.emplace(header[i].text, std::move(cell));
  }
  return {std::move(by_column), cells.front().place};
}

void check_ids(const std::vector<RunRow>& rows) {
  std::map<std::string, int> lines;
  for (const RunRow& row : rows) {
    const Place& place = row.place("id");
    if (!row.has("id")) throw InputError(place, "the id is blank, expected one of its own for every row");
    const auto [same, is_new] = lines.emplace(row.text("id"), place.line);
    if (!is_new)
      throw InputError(place, "the id " + excerpt(row.text("id")) + " is that of line " + std::to_string(same->second) +
                                  ", too, expected one of its own for every row");
  }
}

}  // namespace

const std::string& RunRow::text(std::string_view column) const {
  static const std::string unknown;
  const auto found = cells_.find(column);
  return found == cells_.end() ? unknown : found->second.text;
}

std::string RunRow::name(std::string_view column) const { return lower_case(text(column)); }

std::optional<double> RunRow::number(std::string_view column) const { return parsed(text(column)); }

std::optional<std::int64_t> RunRow::integer(std::string_view column) const {
  const std::optional<double> value = number(column);
  return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}

std::optional<bool> RunRow::flag(std::string_view column) const {
  return has(column) ? std::optional(text(column) == "1") : std::nullopt;
}

const Place& RunRow::place(std::string_view column) const {
  const auto found = cells_.find(column);
  return found == cells_.end() ? place_ : found->second.place;
}

RunRow RunRow::with(const std::string& column, const std::string& text) const {
  RunRow row = *this;
  CsvCell& cell = row.cells_.try_emplace(column, CsvCell{{}, place_}).first->second;
  cell.text = text;
  return row;
}

namespace {

void keep(RunsFile& file, bool (*stays)(const RunRow& row)) {
  for (std::size_t i = file.rows.size(); i-- > 0;) {
    if (stays(file.rows[i])) continue;
    file.rows.erase(file.rows.begin() + static_cast<std::ptrdiff_t>(i));
    file.table.rows.erase(file.table.rows.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

void RunsFile::keep_core() {
  keep(*this, [](const RunRow& row) { return row.flag("core").value_or(false); });
}

void RunsFile::keep_memory() {
  keep(*this, [](const RunRow& row) { return row.has("memory_gb") || row.has("reserved_gib"); });
}

std::vector<std::string_view> scenario_columns() {
  std::vector<std::string_view> names;
  for (const ColumnRule& rule : run_columns)
    if (rule.name != "id" && rule.name != "model") names.push_back(rule.name);
  return names;
}

RunsFile load_runs(const std::string& path) {
  RunsFile file;
  file.table = parse_csv(read_text_file(path, "a table of runs with commas"), path);
  check_header(file.table.header, path, file.ignored);
  for (const std::vector<CsvCell>& cells : file.table.rows) file.rows.push_back(read_row(file.table.header, cells));
  if (file.rows.empty()) throw InputError({.file = path}, "the table has no rows, expected one for each run");
  check_ids(file.rows);
  return file;
}

}  // namespace tandem::studies
