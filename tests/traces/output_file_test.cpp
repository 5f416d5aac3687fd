#include "traces/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>

#include "tests/runtime/temporary_folder.h"

namespace tandem::traces::output_file_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string mebibyte(std::size_t{1} << 20, 'x');

void write_whole(const std::string& path, const std::string& contents) {
  OutputFile file(path);
  file.write(contents);
  file.commit();
}

/// The one sentence that writing to `path` fails with, or nothing.
std::string failure(const std::string& path, std::size_t mebibytes = 1) {
  try {
    OutputFile file(path);
    for (std::size_t i = 0; i < mebibytes; ++i) file.write(mebibyte);
    file.commit();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

/// Runs `body` in a child process and returns its wait status.
int in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(OutputFile, IsNotThereBeforeItsCommitAndWholeAfter) {
  const TemporaryFolder folder;
  OutputFile file(folder / "out");
  const std::string large = mebibyte + mebibyte + "tail";
  file.write("head");
  file.write(large);
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  file.commit();
  EXPECT_EQ(read_all(folder / "out"), "head" + large);
  EXPECT_THROW(file.write("more"), std::logic_error);
  EXPECT_THROW(file.commit(), std::logic_error);
}

TEST(OutputFile, ReplacesAnOldFileOnlyAtItsCommit) {
  const TemporaryFolder folder;
  write_whole(folder / "out", "old");
  {
    OutputFile abandoned(folder / "out");
    abandoned.write(mebibyte + mebibyte);
  }
  EXPECT_EQ(read_all(folder / "out"), "old");
  write_whole(folder / "out", "new");
  EXPECT_EQ(read_all(folder / "out"), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "something is left beside it";
}

TEST(OutputFile, HasThePermissionsOfAnyNewFile) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  write_whole(folder / "new", "");
  write_whole(folder / "new", "");
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);  // 0666 less the umask
}

TEST(OutputFile, KilledBeforeItsCommitItLeavesNothing) {
  const TemporaryFolder folder;
  const int unnamed = ::open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (unnamed < 0) GTEST_SKIP() << "the file system of " << folder.path() << " has no unnamed files: " << std::strerror(errno);
  ::close(unnamed);
  const int status = in_child([&] {
    OutputFile file(folder / "out");
    for (int i = 0; i < 4; ++i) file.write(mebibyte);
    ::kill(::getpid(), SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(folder.empty());
}

/// From here on this process is told that no file system has unnamed files.
bool forbid_unnamed_files() {
  constexpr std::uint32_t tmpfile_flag = O_TMPFILE & ~O_DIRECTORY;
  std::array<sock_filter, 6> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, tmpfile_flag, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(OutputFile, WithoutUnnamedFilesAHiddenOneStandsIn) {
  const TemporaryFolder folder;
  constexpr int cannot_forbid = 2;
  const int status = in_child([&] {
    if (!forbid_unnamed_files()) ::_exit(cannot_forbid);
    if (::open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600) >= 0) ::_exit(3);
    { OutputFile abandoned(folder / "out"); }
    if (!folder.empty()) ::_exit(4);
    OutputFile file(folder / "out");
    file.write("new");
    if (std::filesystem::exists(folder / "out")) ::_exit(5);
    file.commit();
  });
  if (WEXITSTATUS(status) == cannot_forbid) GTEST_SKIP() << "cannot install a system call filter here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_all(folder / "out"), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(OutputFile, WritesThroughALinkAndKeepsIt) {
  const TemporaryFolder folder;
  write_whole(folder / "real", "old");
  std::filesystem::create_symlink("real", folder / "link");
  std::filesystem::create_symlink("not yet there", folder / "dangling");
  write_whole(folder / "link", "new");
  write_whole(folder / "dangling", "first");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_all(folder / "real"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "dangling"));
  EXPECT_EQ(read_all(folder / "not yet there"), "first");

  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_THAT(failure(folder / "loop"), HasSubstr(std::strerror(ELOOP)));
}

TEST(OutputFile, AFifoAndADeviceAreWrittenStraightInto) {
  const TemporaryFolder folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = read_all(fifo); });
  write_whole(fifo, "through the pipe");
  reader.join();
  EXPECT_EQ(received, "through the pipe");
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  EXPECT_EQ(failure("/dev/null"), "");
}

TEST(OutputFile, ReportsAFullDevice) {
  EXPECT_THAT(failure("/dev/full"), AllOf(HasSubstr("/dev/full"), HasSubstr(std::strerror(ENOSPC))));
  OutputFile small("/dev/full");
  small.write("stays in the buffer until the commit");
  EXPECT_THROW(small.commit(), std::runtime_error);
}

TEST(OutputFile, ReportsAFullDiskAndLeavesTheOldFile) {
  const TemporaryFolder folder;
  if (::mount("tandem-test", folder.path().c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "cannot mount a small file system here: " << std::strerror(errno);
  }
  write_whole(folder / "out", "old");
  EXPECT_THAT(failure(folder / "out", 8), AllOf(HasSubstr("out"), HasSubstr(std::strerror(ENOSPC))));
  EXPECT_EQ(read_all(folder / "out"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_EQ(::umount(folder.path().c_str()), 0);
}

TEST(OutputFile, NamesThePathAndTheReason) {
  const TemporaryFolder folder;
  EXPECT_EQ(failure(folder.path()), "cannot write '" + folder.path().string() + "': " + std::strerror(EISDIR));
  EXPECT_EQ(failure(folder / "missing/out"), "cannot write '" + folder / "missing/out" + "': " + std::strerror(ENOENT));
  write_whole(folder / "file", "");
  EXPECT_THAT(failure(folder / "file/out"), HasSubstr(std::strerror(ENOTDIR)));
  EXPECT_THAT(failure(""), HasSubstr(std::strerror(ENOENT)));
}

TEST(OutputFile, ReportsAFolderItMayNotWriteTo) {
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0555);
  constexpr uid_t nobody = 65534;
  const int status = in_child([&] {  // root may write anywhere, so the child gives that up
    if (::getuid() == 0 && ::setuid(nobody) != 0) ::_exit(2);
    const std::string message = failure(folder / "out");
    ::_exit(message.find(std::strerror(EACCES)) == std::string::npos ? 1 : 0);
  });
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ::chmod(folder.path().c_str(), 0755);
}

}  // namespace
}  // namespace tandem::traces::output_file_test
