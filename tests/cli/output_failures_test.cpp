// Outputs that cannot be written: exit code 1, one sentence, nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "tests/cli/json_result.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::output_failures_test {
namespace {

constexpr int failed = 1;
const std::string tiny = scenario_file("tiny-host");

struct BadPath {
  std::string name;
  std::string path;
  std::string reason;
};
void PrintTo(const BadPath& bad, std::ostream* out) { *out << bad.path; }

class BadPaths : public testing::TestWithParam<BadPath> {};

TEST_P(BadPaths, FailTheRun) {
  for (const std::string option : {"--json", "--trace"}) {
    if (option == "--trace" && GetParam().path.ends_with('/')) continue;  // asks for a folder
    expect_refusal(run_tandem({"simulate", tiny, option, GetParam().path}), failed,
                   {"cannot write '" + GetParam().path + "': " + GetParam().reason});
  }
}

const BadPath bad_paths[] = {
    {"MissingFolder", "/no/such/folder/out", "No such file or directory"},
    {"FileAsFolder", "/dev/null/out", "Not a directory"},
    {"FolderWithoutFiles", "/proc/out", "No such file or directory"},
    {"Folder", "/tmp", "Is a directory"},
    {"FolderToBe", "/tmp/no-such-folder/", "Is a directory"},
    {"FullDevice", "/dev/full", "No space left on device"},
};
INSTANTIATE_TEST_SUITE_P(Paths, BadPaths, testing::ValuesIn(bad_paths), [](const auto& test) { return test.param.name; });

TEST(BadFolders, FailTheRun) {
  for (const auto& [path, reason] :
       std::vector<std::pair<std::string, std::string>>{{"/no/such/folder/", "No such file or directory"},
                                                        {"/dev/null/", "Not a directory"},
                                                        {"/proc/", "No such file or directory"}})
    expect_refusal(run_tandem({"simulate", tiny, "--trace", path}), failed, {"cannot write '" + path, reason});
}

TEST(BadFolders, AreNotLeftBehindByARunThatFails) {
  const TemporaryFolder folder;
  expect_refusal(run_tandem({"simulate", tiny, "--trace", folder / "ranks/", "--json", "/no/such/folder/out"}), failed,
                 {"/no/such/folder/out"});
  EXPECT_TRUE(folder.empty());
}

TEST(BadFolders, OfAPlanAreFoundBeforeTheSearch) {
  expect_refusal(run_tandem({"search", scenario_file("llama3-8b-64"), "--write", "/dev/null/best"}), failed,
                 {"cannot write '/dev/null/best': Not a directory"});
}

/// A file system of 16 KiB, seen by this process alone.
class SmallDisk {
 public:
  SmallDisk(const TemporaryFolder& folder, unsigned long flags) : path_(folder.path()) {
    mounted_ = ::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               ::mount("tandem-test", path_.c_str(), "tmpfs", flags, "size=16k") == 0;
    reason_ = mounted_ ? "" : std::strerror(errno);
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  const std::string& reason() const { return reason_; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    return names;
  }

 private:
  std::filesystem::path path_;
  bool mounted_ = false;
  std::string reason_;
};

class FullDisks : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(FullDisks, LeaveNoPartialFile) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder, 0);
  if (!disk.mounted()) GTEST_SKIP() << "cannot mount a small disk, which takes root: " << disk.reason();
  std::ofstream(folder / "filler") << std::string(3 * 4096, 'x');  // leaves one page
  const std::string& option = GetParam().front();
  const std::string path = folder / GetParam().back();
  // With 16 stages the JSON result exceeds the page that is left.
  expect_refusal(run_tandem({"simulate", scenario_file("llama3-405b-16k"), option, path}), failed,
                 {"cannot write '" + path + "': No space left on device"});
  EXPECT_THAT(disk.files(), testing::ElementsAre("filler"));
}

INSTANTIATE_TEST_SUITE_P(Outputs, FullDisks,
                         testing::Values(std::vector<std::string>{"--json", "r.json"},
                                         std::vector<std::string>{"--trace", "t.pftrace"},
                                         std::vector<std::string>{"--trace", "t.json"}),
                         [](const auto& test) {
                           return test.param.back() == "r.json"      ? "Result"
                                  : test.param.back() == "t.pftrace" ? "Perfetto"
                                                                     : "Chrome";
                         });

TEST(ReadOnlyDisk, FailsTheRun) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder, MS_RDONLY);
  if (!disk.mounted()) GTEST_SKIP() << "cannot mount a read-only disk, which takes root: " << disk.reason();
  const std::string path = folder / "r.json";
  expect_refusal(run_tandem({"simulate", tiny, "--json", path}), failed, {"cannot write '" + path + "': Read-only file system"});
}

const std::vector<std::string> talkative[] = {
    {"simulate", tiny},
    {"simulate", tiny, "--json", "-"},
    {"execute", tiny, "--backend", "host"},
    {"crosscheck", tiny, "--backend", "host"},
    {"lower", tiny, "--out", "/dev/null"},
    {"--help"},
    {"simulate", "--help"},
    {"--version"},
};

class StandardOutputs : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(StandardOutputs, ThatAreClosedOrFullFailTheRun) {
  for (const StandardOutput output : {StandardOutput::closed, StandardOutput::full_device})
    expect_refusal(run_tandem(GetParam(), {.standard_output = output}), failed, {"standard output cannot be written"});
}

TEST_P(StandardOutputs, ThatAreThereAreEnough) {
  const CommandResult run = run_tandem(GetParam());
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  EXPECT_NE(run.out, "");
}

INSTANTIATE_TEST_SUITE_P(Commands, StandardOutputs, testing::ValuesIn(talkative));

TEST(ClosedStandardOutput, LeavesTheFilesWhole) {
  const TemporaryFolder folder;
  const CommandResult run = run_tandem({"simulate", tiny, "--json", folder / "r.json", "--trace", folder / "t.json"},
                                       {.standard_output = StandardOutput::closed});
  EXPECT_EQ(run.exit_code, failed);
  checked_result(read_all(folder / "r.json"));
  EXPECT_TRUE(nlohmann::json::accept(read_all(folder / "t.json")));
}

}  // namespace
}  // namespace tandem::cli::output_failures_test
