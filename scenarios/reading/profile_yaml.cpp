#include "scenarios/reading/profile_yaml.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>

#include "runtime/base/nearest.h"
#include "scenarios/reading/reader.h"
#include "traces/kernel_text.h"

namespace tandem::scenarios {
namespace {

/// What stands before and after the last " = " of a row.
struct Row {
  std::string what;
  Timing timing;
};

Row split(const YamlNode& node) {
  const std::size_t equals = node.kind == YamlNode::Kind::scalar ? node.text.rfind(" = ") : std::string::npos;
  const std::string expected = ", expected a row that ends with `= MEDIAN LOWEST HIGHEST SAMPLES`, times in us";
  if (equals == std::string::npos) throw InputError(node.place, "is " + describe(node) + expected);
  std::istringstream numbers(node.text.substr(equals + 3));
  std::array<double, 3> us{};
  std::int32_t samples = 0;
  std::string more;
  if (!(numbers >> us[0] >> us[1] >> us[2] >> samples) || numbers >> more)
    throw InputError(node.place, excerpt(node.text.substr(equals + 1)) + " stands there" + expected);
  constexpr Seconds microsecond = 1e-6;
  return {node.text.substr(0, equals), {us[0] * microsecond, us[1] * microsecond, us[2] * microsecond, samples}};
}

MeasuredKernel kernel_of_row(const YamlNode& node) {
  const Row row = split(node);
  try {
    return {kernel_of_text(row.what), row.timing};
  } catch (const std::invalid_argument& flaw) {
    throw InputError(node.place, "the kernel " + excerpt(row.what) + ": " + flaw.what());
  }
}

MeasuredCollective collective_of_row(const YamlNode& node) {
  const Row row = split(node);
  std::istringstream words(row.what);
  std::string name, on, more;
  MeasuredCollective collective{.timing = row.timing};
  const bool begins = static_cast<bool>(words >> name >> collective.members >> collective.bytes);
  const bool goes_on = static_cast<bool>(words >> on);
  if (!begins || (goes_on && (on != "on" || !(words >> collective.machines))) || words >> more)
    throw InputError(node.place, "the collective " + excerpt(row.what) + ", expected OPERATION MEMBERS BYTES [on MACHINES]");
  while (operation(collective.op).name != name) {
    if (collective.op == OpKind::receive) throw InputError(node.place, "there is no collective " + excerpt(name));
    collective.op = static_cast<OpKind>(static_cast<int>(collective.op) + 1);
  }
  return collective;
}

Site site_of(const YamlNode& node) {
  const Reader reader(node, "site",
                      {"runs", "gpu", "framework", "kernels", "communication", "overhead_s", "spread", "covariance"});
  constexpr double most_times = 100, most_covariance = 1e6;
  Site site{.runs = reader.integer("runs", {1, 1'000'000}),
            .gpu = reader.text("gpu"),
            .framework = reader.text("framework", ""),
            .kernels = reader.number("kernels", {1 / most_times, most_times}, 1),
            .communication = reader.number("communication", {1 / most_times, most_times}, 1),
            .overhead = reader.number("overhead_s", {0, 3600}, 0),
            .spread = reader.number("spread", {1, most_covariance}, 1)};
  const std::vector<double> numbers = reader.numbers("covariance", {-most_covariance, most_covariance}, {});
  if (numbers.size() != site.covariance.size())
    reader.fail("covariance", "covariance has " + std::to_string(numbers.size()) + " numbers, expected " +
                                  std::to_string(site.covariance.size()));
  std::ranges::copy(numbers, site.covariance.begin());
  return site;
}

}  // namespace

Profile profile_of_yaml(const std::string& text, const std::string& file) {
  const YamlNode document = parse_yaml(text, file);
  const Reader reader(document, "profile", {"machine", "site", "fits", "kernels", "collectives"});
  const Reader machine(reader.child("machine"), "machine", {"backend", "device", "threads", "libraries", "date", "tandem"});
  Profile profile;
  profile.origin = {.backend = machine.text("backend", ""),
                    .device = machine.text("device", ""),
                    .libraries = machine.text("libraries", ""),
                    .date = machine.text("date", ""),
                    .tandem = machine.text("tandem", ""),
                    .threads = static_cast<std::int32_t>(machine.integer("threads", {0, 1'000'000}, 0))};
  if (reader.has("site")) profile.site = site_of(reader.child("site"));
  if (!reader.has("kernels") && !reader.has("site") && !reader.has("collectives"))
    reader.fail("kernels", "kernels is missing, expected a profile as `tandem calibrate` writes it");
  for (const YamlNode& row : reader.child("kernels").items) profile.kernels.push_back(kernel_of_row(row));
  for (const YamlNode& row : reader.child("collectives").items) profile.collectives.push_back(collective_of_row(row));
  if (const std::string flaw = first_flaw(profile); !flaw.empty()) throw InputError({.file = file}, flaw);
  return profile;
}

}  // namespace tandem::scenarios
