#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runtime/base/input_error.h"
#include "runtime/base/nearest.h"
#include "runtime/dag/profile.h"
#include "studies/calibrate/profile_yaml.h"
#include "studies/interop/cluster_text.h"
#include "studies/interop/import_source.h"
#include "studies/interop/nccl_tests_shape.h"

namespace tandem::studies {
namespace {

using CollectiveKey = std::tuple<OpKind, std::int32_t, std::int32_t, Bytes>;

/// What all files measured.
class CollectiveSamples {
 public:
  explicit CollectiveSamples(ImportResult& result) : result_(result) {}

  void add(const std::string& file, const ReadRun& found) {
    const std::string name(found.collective->name);
    const std::string of_run = fmt::format("{} among {} GPUs", name, found.members);
    if (!found.collective->op) return result_.ignored.push_back(file + ": " + name);
    if (found.members < 2) return result_.ignored.push_back(file + ": " + of_run);
    if (*found.collective->op == OpKind::send && found.members != 2)
      return result_.ignored.push_back(file + ": " + of_run + " (a ring of transfers)");
    if (found.members % found.machines != 0) {
      result_.warnings.push_back(fmt::format("{}: {} on {} machines is left out, as these have different numbers of GPUs", file,
                                             of_run, found.machines));
      return;
    }
    for (const NcclTestRun::Row& row : found.run.rows) {
      for (const NcclTestRun::Measured& one : row.measured) {
        constexpr double micro = 1e-6;
        if (row.bytes > 0 && one.time_us > 0)
          times_[{*found.collective->op, static_cast<std::int32_t>(found.members), static_cast<std::int32_t>(found.machines),
                  row.bytes}]
              .push_back(one.time_us * micro);
      }
    }
    for (const auto& [number, rank] : found.run.ranks) gpus_.insert(rank.gpu);
    if (!found.run.libraries.empty()) libraries_.insert(found.run.libraries);
    date_ = std::max(date_, found.run.date);
  }

  Profile profile() const {
    Profile profile;
    for (const auto& [key, times] : times_) {
      const auto& [op, members, machines, bytes] = key;
      profile.collectives.push_back(
          {.op = op, .members = members, .machines = machines, .bytes = bytes, .timing = timing_of(times)});
    }
    profile.origin = {.backend = "nccl-tests",
                      .device = joined_texts(gpus_),
                      .libraries = joined_texts(libraries_),
                      .date = date_.empty() ? "not printed" : date_,
                      .tandem = TANDEM_VERSION};
    return profile;
  }

  bool has_several_gpus() const { return gpus_.size() > 1; }

 private:
  ImportResult& result_;
  std::map<CollectiveKey, std::vector<Seconds>> times_;
  std::set<std::string> gpus_, libraries_;
  std::string date_;

  static std::string joined_texts(const std::set<std::string>& texts) {
    constexpr std::size_t longest = 200;  // as a profile has them
    const std::string all = fmt::format("{}", fmt::join(texts, "; "));
    return all.empty() ? "not printed" : all.substr(0, longest);
  }
};

constexpr const char* a_test_output = "the output of nccl-tests or rccl-tests, or its JSON (-J)";

/// A text may begin with a bracket, too, as "[1,0]<stdout>:".
bool begins_as_json(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (text[first] != '[') return text[first] == '{';
  const std::size_t next = text.find_first_not_of(" \t\r\n", first + 1);
  return next != std::string::npos && text[next] == '{';
}

std::vector<NcclTestRun> runs_in(const std::string& file) {
  const std::string text = read_large_text(file, a_test_output);
  std::vector<NcclTestRun> runs = begins_as_json(text) ? parse_nccl_tests_json(text, file) : parse_nccl_tests_text(text, file);
  if (runs.empty()) throw InputError({.file = file}, std::string("has no row of measured times, expected ") + a_test_output);
  return runs;
}

}  // namespace

/// Reads what nccl-tests measured into a profile of collectives alone, one row for each operation, number of GPUs, of machines
/// and of bytes: the median of all times that were printed for it, out of place and in place.
ImportResult import_nccl_tests(const ImportSource& /*source*/, const ImportRequest& request) {
  ImportResult result;
  CollectiveSamples samples(result);
  for (const std::string& file : request.paths) {
    for (NcclTestRun& run : runs_in(file)) samples.add(file, shape_of_run(std::move(run), file, request, result));
  }
  const Profile profile = samples.profile();
  if (profile.collectives.empty())
    throw InputError({.file = request.paths.front()},
                     "has no collective that Tandem has: " + joined(result.ignored) + joined(result.warnings));
  if (samples.has_several_gpus())
    result.warnings.push_back("several models of GPU were measured: " + profile.origin.device + "; a profile is of one");
  result.out = to_yaml(profile);
  return result;
}

}  // namespace tandem::studies
