// What is said where CUDA, its driver or a GPU is missing: one sentence with the reason, exit code 1.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::no_gpu_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string tiny = scenario_file("tiny-host");

/// The environment of the programs that are run while it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

class NoGpu : public testing::TestWithParam<Words> {};

TEST_P(NoGpu, AMissingModuleIsNamed) {
  const Variable module("TANDEM_CUDA_MODULE", "/nowhere/tandem_cuda.so");
  expect_refusal(run_tandem(GetParam()), 1, {"no backend cuda", "/nowhere/tandem_cuda.so", "available: --backend host"});
}

TEST_P(NoGpu, AFileThatIsNoModuleIsNamed) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(tiny, folder / "tandem_cuda.so");
  const Variable module("TANDEM_CUDA_MODULE", folder / "tandem_cuda.so");
  expect_refusal(run_tandem(GetParam()), 1, {"no backend cuda", "tandem_cuda.so"});
}

TEST_P(NoGpu, TheReasonIsOneSentence) {
  const CommandResult run = run_tandem(GetParam());
  if (run.exit_code == 0) GTEST_SKIP() << "there is a GPU here";
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("no backend cuda: "));
  // Of this build without CUDA, of CUDA without a driver, of a driver without a GPU.
  EXPECT_THAT(run.err,
              AnyOf(HasSubstr("without CUDA"), HasSubstr("driver"), HasSubstr("no CUDA-capable device"), HasSubstr("lib")));
  EXPECT_EQ(std::ranges::count(run.err, '\n'), 1);
}

INSTANTIATE_TEST_SUITE_P(Commands, NoGpu,
                         testing::Values(Words{"execute", tiny, "--backend", "cuda"},
                                         Words{"crosscheck", tiny, "--backend", "cuda"}));

TEST(NoGpu, TandemRunNamesAMissingModule) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tandem({"lower", tiny, "--out", folder / "step.dag"}).exit_code, 0);
  const Variable module("TANDEM_CUDA_MODULE", "/nowhere/tandem_cuda.so");
  expect_refusal(run_program(TANDEM_RUN_BINARY, {folder / "step.dag", "--backend", "cuda"}), 1,
                 {"no backend cuda", "/nowhere/tandem_cuda.so", "--backend host"});
}

// Processes that torchrun started come to an agreed end when one of them cannot go on.
TEST(NoGpu, TheHostBackendRunsInOneProcess) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tandem({"lower", tiny, "--out", folder / "step.dag"}).exit_code, 0);
  const Variable rank("RANK", "1"), size("WORLD_SIZE", "8"), local("LOCAL_RANK", "1"), address("MASTER_ADDR", "127.0.0.1"),
      port("MASTER_PORT", "29500");
  expect_refusal(run_program(TANDEM_RUN_BINARY, {folder / "step.dag", "--backend", "host"}), 1,
                 {"one process", "8 were launched"});
  expect_refusal(run_tandem({"calibrate", "--backend", "host", "--out", folder / "host.profile"}), 1,
                 {"one process", "8 were launched"});
}

}  // namespace
}  // namespace tandem::cli::no_gpu_test
