// `tandem calibrate` as a launcher starts it: several processes on the loopback, each with a GPU that a module pretends to have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "scenarios/reading/profile.h"
#include "studies/calibrate/launched_collectives.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/loopback_socket.h"
#include "tests/runtime/processes.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::calibrate_launched_test {
namespace {

using testing::HasSubstr;

class CalibrateLaunched : public testing::Test {
 protected:
  TemporaryFolder folder_;

  std::string profile() const { return folder_ / "gpus.profile"; }

  struct Outcome {
    int exit_code;
    std::string out, err;
  };

  /// `tandem calibrate` in `size` processes, with more variables in their environment.
  std::vector<Outcome> calibrate(std::uint32_t size, const std::map<std::string, std::string>& variables = {},
                                 const std::string& out = {}) {
    const std::string port = std::to_string(free_port());
    Processes processes;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      processes.start([&, rank](const Processes::Ready&) {
        std::map<std::string, std::string> all = variables;
        all.insert({{"RANK", std::to_string(rank)},
                    {"WORLD_SIZE", std::to_string(size)},
                    {"LOCAL_RANK", std::to_string(rank)},
                    {"MASTER_ADDR", "127.0.0.1"},
                    {"MASTER_PORT", port},
                    {"TANDEM_SECRET", "what these processes alone know"},
                    {"TANDEM_CUDA_MODULE", TANDEM_FAKE_GPU}});
        for (const auto& [name, value] : all) setenv(name.c_str(), value.c_str(), 1);
        const CommandResult result =
            run_tandem({"calibrate", "--backend", "cuda", "--out", out.empty() ? profile() : out, "--budget", "3"});
        return std::to_string(result.exit_code) + "\n" + result.out + "\n--\n" + result.err;
      });
    }
    std::vector<Outcome> outcomes;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      const std::string text = processes.outcome(rank).text;
      const std::size_t first = text.find('\n'), second = text.find("\n--\n");
      outcomes.push_back(
          {std::stoi(text), text.substr(first + 1, second - first - 1), text.substr(second + std::string("\n--\n").size())});
    }
    return outcomes;
  }
};

TEST_F(CalibrateLaunched, MeasuresCollectivesAmongAllGpus) {
  constexpr std::uint32_t gpus = 4;
  const std::vector<Outcome> outcomes = calibrate(gpus);
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
  }
  for (std::uint32_t rank = 1; rank < gpus; ++rank) EXPECT_EQ(outcomes[rank].out, "");
  EXPECT_THAT(outcomes[0].out, HasSubstr("4 x fake GPU (cuda): "));
  EXPECT_THAT(outcomes[0].out, HasSubstr("collectives measured"));

  const Profile measured = read_profile(profile());
  EXPECT_EQ(measured.origin.device, "4 x fake GPU");
  EXPECT_EQ(measured.origin.backend, "cuda");
  EXPECT_FALSE(measured.kernels.empty());
  // 4 KiB to 64 MiB, a sixteenth of the GPU's memory, in steps of 4.
  constexpr std::size_t sizes = 8, operations = 4, groups = 2;
  EXPECT_EQ(measured.collectives.size(), sizes * (operations * groups + 1));
  for (const MeasuredCollective& collective : measured.collectives) {
    // The odd ranks wait for nobody; the receiver of a transfer is one.
    const Seconds expected = 10e-6 * collective.members + static_cast<double>(collective.bytes) / 1e11;
    EXPECT_NEAR(collective.timing.median, expected, 1e-9) << operation(collective.op).name << " " << collective.bytes;
    EXPECT_EQ(collective.machines, 1);
    EXPECT_GE(collective.timing.samples, 4);
  }
  EXPECT_EQ(read_profile(profile() + ".yaml").collectives.size(), measured.collectives.size());
}

TEST_F(CalibrateLaunched, EndsForAllWithOneSentence) {
  const auto all_say = [&](const std::vector<Outcome>& outcomes, const std::vector<std::string>& words) {
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.exit_code, 1);
      EXPECT_EQ(outcome.out, "");
      for (const std::string& word : words) EXPECT_THAT(outcome.err, HasSubstr(word));
      EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    }
    EXPECT_FALSE(std::filesystem::exists(profile()));
  };
  all_say(calibrate(3, {{"FAKE_GPU_FAILS", "2"}}), {"rank 2", "this GPU has no memory left"});
  all_say(calibrate(2, {{"FAKE_GPU_ODD", "1"}}), {"rank 1", "model of GPU"});
  all_say(calibrate(2, {{"TANDEM_CUDA_MODULE", "/nowhere/tandem_cuda.so"}}), {"no backend cuda", "/nowhere/tandem_cuda.so"});
  all_say(calibrate(2, {}, "/no/such/folder/p"), {"rank 0", "/no/such/folder/p"});
}

TEST_F(CalibrateLaunched, OfOneProcessMeasuresKernelsAlone) {
  const std::vector<Outcome> outcomes = calibrate(1);
  ASSERT_EQ(outcomes[0].exit_code, 0) << outcomes[0].err;
  EXPECT_THAT(outcomes[0].out, HasSubstr("no collectives: this was one GPU alone"));
  const Profile measured = read_profile(profile());
  EXPECT_EQ(measured.origin.device, "fake GPU");
  EXPECT_TRUE(measured.collectives.empty());
}

TEST(LaunchedGpus, AreCountedByMachine) {
  EXPECT_EQ(text_of("NVIDIA H200", {{0, 1, 2, 3}}), "4 x NVIDIA H200");
  EXPECT_EQ(text_of("NVIDIA H200", {{0, 1}, {2, 3}, {4, 5}}), "6 x NVIDIA H200 on 3 machines of 2");
  EXPECT_EQ(text_of("NVIDIA H200", {{0, 1, 2}, {3}}), "4 x NVIDIA H200 on 2 machines of 1 to 3");
}

}  // namespace
}  // namespace tandem::cli::calibrate_launched_test
