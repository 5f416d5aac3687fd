#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/nearest.h"
#include "studies/interop/nccl_tests.h"
#include "studies/interop/nccl_tests_words.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::json;

constexpr const char* a_json_report =
    "what nccl-tests writes with -J: `config`, and `results` with `size`, `out_of_place`, `in_place`";
// Six decimals are printed; files that were converted from a text have two.
constexpr double json_bandwidth_slack = 0.005 + 1e-9, json_time_slack = 0.05 + 1e-9;

Place place_of_byte(const std::string& text, std::size_t byte, const std::string& file) {
  Place place{file, 1, 1};
  for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    ++place.column;
    if (text[i] == '\n') {
      ++place.line;
      place.column = 1;
    }
  }
  return place;
}

/// Reads values of an object, each named with the way to it in messages.
class JsonFields {
 public:
  JsonFields(const Json& object, std::string path, const std::string& file)
      : object_(object), path_(std::move(path)), file_(file) {
    if (!object.is_object()) fail("", "is no object");
  }

  [[noreturn]] void fail(const std::string& key, const std::string& sentence) const {
    throw InputError({.file = file_}, path_ + (key.empty() ? "" : (path_.empty() ? "" : ".") + key) + " " + sentence +
                                          ", expected " + a_json_report);
  }

  const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  double number(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) fail(key, "is missing");
    if (!value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() < 0) fail(key, "is no number");
    return value->get<double>();
  }

  Bytes bytes(const char* key) const {
    const double value = number(key);
    if (value > static_cast<double>(most_nccl_test_bytes)) fail(key, "is out of bounds");
    return static_cast<Bytes>(value);
  }

  std::int64_t whole(const char* key, std::int64_t fallback) const {
    const Json* value = find(key);
    return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : fallback;
  }

  std::string text(const char* key) const {
    const Json* value = find(key);
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }

 private:
  const Json& object_;
  std::string path_;
  const std::string& file_;
};

void read_measured(const JsonFields& row, const char* key, const std::string& path, const std::string& file,
                   NcclTestRun::Row& into) {
  const Json* half = row.find(key);
  if (half == nullptr) return;
  const JsonFields fields(*half, path + "." + key, file);
  if (fields.find("cpu_time") != nullptr)
    fields.fail("cpu_time", "is the time of a CPU (-C), which is not that of the collective");
  const Json* wrong = fields.find("nwrong");
  if (wrong != nullptr && wrong->is_number() && wrong->get<double>() != 0)
    throw InputError({.file = file}, path + "." + key + ".nwrong is " + wrong->dump() +
                                         ", expected 0: the results are not right, and so may be the times");
  into.measured.push_back({.time_us = fields.number("time"),
                           .time_slack = json_time_slack,
                           .algbw = fields.number("alg_bw"),
                           .algbw_slack = json_bandwidth_slack,
                           .busbw = fields.number("bus_bw"),
                           .busbw_slack = json_bandwidth_slack,
                           .place = {.file = file}});
}

NcclTestRun::Row row_of(const Json& result, const std::string& path, const std::string& file) {
  const JsonFields fields(result, path, file);
  NcclTestRun::Row row{.bytes = fields.bytes("size"),
                       .count = fields.whole("count", 0),
                       .word = word_of_type(fields.text("type")),
                       .redop = fields.text("redop"),
                       .place = {.file = file}};
  const std::string root = fields.text("root");
  const std::size_t first = root.find_first_not_of(' ');
  row.root = first == std::string::npos ? fields.whole("root", -1) : std::atoll(root.c_str() + first);
  read_measured(fields, "out_of_place", path, file, row);
  read_measured(fields, "in_place", path, file, row);
  if (row.measured.empty()) fields.fail("out_of_place", "is missing, and so is in_place");
  return row;
}

void read_config(const JsonFields& top, const std::string& file, NcclTestRun& run) {
  const Json* config = top.find("config");
  if (config == nullptr) return;
  const JsonFields fields(*config, "config", file);
  run.ranks_per_process = ranks_of_process(fields.whole("nthreads", 1), fields.whole("ngpus", 1));
  const Json* devices = fields.find("devices");
  if (devices == nullptr || !devices->is_array()) return;
  for (const Json& device : *devices) {
    const JsonFields one(device, "config.devices", file);
    run.ranks[one.whole("rank", static_cast<std::int64_t>(run.ranks.size()))] = {one.whole("group", 0), one.text("hostname"),
                                                                                 one.text("device_info")};
  }
}

/// Reads the report that -J of nccl-tests wrote.
NcclTestRun run_of_report(const Json& document, const std::string& file) {
  const JsonFields top(document, "", file);
  const Json* results = top.find("results");
  if (results == nullptr || !results->is_array() || results->empty()) top.fail("results", "is missing or empty");
  NcclTestRun run;
  run.place = {.file = file};
  read_config(top, file, run);
  if (const Json* arguments = top.find("args");
      arguments != nullptr && arguments->is_array() && !arguments->empty() && arguments->front().is_string()) {
    const std::string program = arguments->front().get<std::string>();
    run.name = nccl_test_named_in(program.substr(program.find_last_of('/') + 1));
  }
  run.date = top.text("start_time");
  if (const std::int64_t version = top.whole("nccl_version", 0); version > 0) run.libraries = "NCCL " + std::to_string(version);
  for (std::size_t i = 0; i < results->size(); ++i)
    run.rows.push_back(row_of((*results)[i], "results[" + std::to_string(i) + "]", file));
  const Json* outside = top.find("out_of_bounds");
  if (outside != nullptr && JsonFields(*outside, "out_of_bounds", file).whole("count", 0) != 0)
    throw InputError({.file = file}, "out_of_bounds.count is not 0, expected a run whose results are right");
  return run;
}

/// Reads the records of rccl-tests, one for each size, in place or not: the runs are those of a name, ranks and nodes.
std::vector<NcclTestRun> runs_of_records(const Json& document, const std::string& file) {
  std::vector<NcclTestRun> runs;
  for (std::size_t i = 0; i < document.size(); ++i) {
    const JsonFields record(document[i], "[" + std::to_string(i) + "]", file);
    const std::string name = nccl_test_named_in(record.text("name"));
    const std::int64_t ranks = record.whole("ranks", 0), nodes = record.whole("nodes", 0);
    if (name.empty() || ranks < 1) record.fail("name", "or `ranks` is missing");
    const std::string wrong = record.text("wrong");
    if (!wrong.empty() && wrong != "0" && wrong != "N/A")
      throw InputError({.file = file}, "[" + std::to_string(i) + "].wrong is " + excerpt(wrong) +
                                           ", expected 0: the results are not right, and so may be the times");
    auto run = std::ranges::find_if(runs, [&](const NcclTestRun& one) {
      return one.name == name && one.stated_ranks == ranks && one.stated_machines == nodes;
    });
    if (run == runs.end()) {
      run = runs.insert(run, NcclTestRun{});
      run->name = name;
      run->stated_ranks = ranks;
      run->stated_machines = nodes;
      run->ranks_per_process = ranks_of_process(1, record.whole("gpusPerRank", 1));
      run->place = {.file = file};
    }
    NcclTestRun::Row row{.bytes = record.bytes("size"), .word = 0, .redop = record.text("redop"), .place = {.file = file}};
    const NcclTestCollective* collective = find_nccl_test(name);
    row.root = collective != nullptr && collective->has_root ? std::max<std::int64_t>(0, record.whole("root", 0)) : -1;
    if (row.redop.empty()) row.redop = "none";
    row.measured.push_back({.time_us = record.number("time"),
                            .time_slack = json_time_slack,
                            .algbw = record.number("algBw"),
                            .algbw_slack = json_bandwidth_slack,
                            .busbw = record.number("busBw"),
                            .busbw_slack = json_bandwidth_slack,
                            .place = {.file = file}});
    run->rows.push_back(std::move(row));
  }
  return runs;
}

}  // namespace

std::vector<NcclTestRun> parse_nccl_tests_json(const std::string& text, const std::string& file) {
  Json document;
  try {
    document = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw InputError(place_of_byte(text, error.byte, file),
                     std::string("is no JSON, or ends too early, expected ") + a_json_report);
  }
  if (document.is_array()) return runs_of_records(document, file);
  return {run_of_report(document, file)};
}

}  // namespace tandem::studies
