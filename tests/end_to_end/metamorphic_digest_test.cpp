// The results of random scenarios are the same whichever compiler made the program, and however it optimised.
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "runtime/base/hash.h"
#include "runtime/base/text_file.h"
#include "studies/step/simulated_step.h"
#include "tests/end_to_end/random_scenarios.h"

namespace tandem::studies::metamorphic_digest_test {
namespace {

using Json = nlohmann::ordered_json;

/// The JSON as text, numbers to twelve significant digits. Compilers may add up and multiply in another order or by one rounding
/// less (fused multiply-add), which leaves a few units of 1e-16 for each of some thousand operations on the way to a number: far
/// from the twelfth digit, but for a number that happens to lie between two roundings.
void write_rounded(const Json& json, std::string& text) {
  if (json.is_number_float()) {
    text += fmt::format("{:.12g}", json.get<double>());
  } else if (json.is_structured()) {
    text += json.is_array() ? "[" : "{";
    for (const auto& [key, value] : json.items()) {
      text += key + ":";
      write_rounded(value, text);
      text += ",";
    }
    text += "]";
  } else {
    text += json.dump();
  }
}

/// What a result says of the step; not what the run cost.
std::string digest_of(const Scenario& scenario) {
  Json json = to_json_object(simulate_in_full(scenario, true).result);
  for (const char* of_the_run : {"wall_s", "jitter_wall_s", "peak_rss_bytes"}) json["run"].erase(of_the_run);
  std::string text;
  write_rounded(json, text);
  std::uint64_t digest = 0;
  for (const char c : text) digest = hash(digest ^ static_cast<unsigned char>(c));
  return fmt::format("{:016x}", digest);
}

const std::string file = TANDEM_SOURCE_DIR "/tests/end_to_end/digests_of_random_scenarios.txt";

/// By seed.
std::map<std::uint32_t, std::string> stored_digests() {
  std::map<std::uint32_t, std::string> digests;
  std::istringstream lines(read_text_file(file, "a list of digests"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::uint32_t seed = 0;
    if (std::string digest; words >> seed >> digest) digests[seed] = digest;
  }
  return digests;
}

// A change of predictions, or of the fields of a result, changes them: TANDEM_WRITE_DIGESTS=1 end_to_end_test
// --gtest_filter='ResultDigests.*' writes the file anew, to be reviewed with the change.
TEST(ResultDigests, AreThoseOfEveryCompilerAndOptimisation) {
  constexpr std::size_t scenarios = 60;
  const std::map<std::uint32_t, std::string> stored = stored_digests();
  std::string written = "# seed of a random scenario, digest of its result: metamorphic_digest_test.cpp\n";
  std::size_t compared = 0;
  for (const RandomScenario& drawn : random_scenarios(scenarios, 1, 1)) {
    const std::string digest = digest_of(drawn.scenario);
    written += fmt::format("{} {}\n", drawn.seed, digest);
    const auto known = stored.find(drawn.seed);
    if (known == stored.end()) continue;
    EXPECT_EQ(digest, known->second) << drawn.text();
    ++compared;
  }
  if (std::getenv("TANDEM_WRITE_DIGESTS") != nullptr) std::ofstream(file) << written;
  EXPECT_EQ(compared, scenarios);
}

}  // namespace
}  // namespace tandem::studies::metamorphic_digest_test
