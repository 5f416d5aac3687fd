// Killed at any moment, a simulation leaves each output file whole or as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <random>

#include "tests/cli/json_result.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"
#include "traces/perfetto.pb.h"

namespace tandem::cli::kill_test {
namespace {

constexpr int kills = 10;
constexpr Seconds earliest = 0.01;
constexpr std::mt19937::result_type seed = 405;
const std::string old_text = "what was there before\n";

CommandResult simulate_into(const TemporaryFolder& folder, std::optional<Seconds> kill_after) {
  return run_tandem({"simulate", scenario_file("llama3-405b-16k"), "--json", folder / "r.json", "--trace", folder / "t.pftrace"},
                    {.kill_after = kill_after});
}

/// What a simulation that nobody kills leaves behind, and how long it takes.
struct Undisturbed {
  Seconds wall = 0;
  std::string result;
  std::string trace;
};

Undisturbed simulate_undisturbed() {
  const TemporaryFolder folder;
  const CommandResult run = simulate_into(folder, std::nullopt);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  Undisturbed whole{run.wall, without_run_costs(read_all(folder / "r.json")), read_all(folder / "t.pftrace")};
  checked_result(read_all(folder / "r.json"));
  EXPECT_TRUE(perfetto::Trace().ParseFromString(whole.trace));
  EXPECT_GT(whole.trace.size(), 1'000'000U);
  return whole;
}

/// Half of the moments anywhere in the run, half in its last third, where the files are written.
std::vector<Seconds> moments(Seconds wall) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<Seconds> anywhere(earliest, std::max(wall, 2 * earliest));
  std::uniform_real_distribution<Seconds> while_writing(2 * wall / 3, wall);
  std::vector<Seconds> moments;
  for (int i = 0; i < kills; ++i) moments.push_back(i % 2 == 0 ? anywhere(random) : while_writing(random));
  return moments;
}

std::vector<std::string> files_in(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  return names;
}

TEST(Kill, LeavesWholeFilesOrNone) {
  const Undisturbed whole = simulate_undisturbed();
  int killed = 0;
  for (const Seconds moment : moments(whole.wall)) {
    SCOPED_TRACE("killed after " + std::to_string(moment) + " s");
    const TemporaryFolder folder;
    killed += simulate_into(folder, moment).signal == SIGKILL ? 1 : 0;
    for (const std::string& name : files_in(folder)) {
      const std::string bytes = read_all(folder / name);
      EXPECT_TRUE(name == "r.json" || name == "t.pftrace") << name;
      EXPECT_TRUE(name == "r.json" ? without_run_costs(bytes) == whole.result : bytes == whole.trace) << name << " is partial";
    }
  }
  EXPECT_GT(killed, kills / 3);
}

TEST(Kill, LeavesOldFilesUntilTheNewAreWhole) {
  const Undisturbed whole = simulate_undisturbed();
  for (const Seconds moment : moments(whole.wall)) {
    SCOPED_TRACE("killed after " + std::to_string(moment) + " s");
    const TemporaryFolder folder;
    for (const char* name : {"r.json", "t.pftrace"}) std::ofstream(folder / name) << old_text;
    simulate_into(folder, moment);
    const std::string result = read_all(folder / "r.json");
    const std::string trace = read_all(folder / "t.pftrace");
    EXPECT_TRUE(result == old_text || without_run_costs(result) == whole.result) << "r.json is partial";
    EXPECT_TRUE(trace == old_text || trace == whole.trace) << "t.pftrace is partial";
    EXPECT_LE(files_in(folder).size(), 3U);  // a link cannot replace: for an instant the whole new file has a hidden name
  }
}

}  // namespace
}  // namespace tandem::cli::kill_test
