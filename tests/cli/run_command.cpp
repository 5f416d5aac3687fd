#include "tests/cli/run_command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>

namespace tandem::cli {
namespace {

/// A file without a name that takes what a command prints.
class Capture {
 public:
  explicit Capture(const char* name) : descriptor_(::memfd_create(name, MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  ~Capture() { ::close(descriptor_); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  int descriptor() const { return descriptor_; }
  std::string text() const {
    std::string text(static_cast<std::size_t>(::lseek(descriptor_, 0, SEEK_END)), '\0');
    if (::pread(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) text = "<unreadable>";
    return text;
  }

 private:
  int descriptor_;
};

[[noreturn]] void become(std::vector<char*>& argv, StandardOutput standard_output, int out, int err) {
  if (standard_output == StandardOutput::full_device) out = ::open("/dev/full", O_WRONLY);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  if (standard_output == StandardOutput::closed) ::close(STDOUT_FILENO);
  ::execv(argv.front(), argv.data());
  ::_exit(127);
}

Seconds since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

int wait_or_kill(pid_t child, Seconds limit) {
  const auto began = std::chrono::steady_clock::now();
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (since(began) > limit) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return status;
}

}  // namespace

CommandResult run_tandem(const std::vector<std::string>& arguments, const CommandOptions& options) {
  return run_program(TANDEM_BINARY, arguments, options);
}

CommandResult run_dag(const std::vector<std::string>& arguments, const CommandOptions& options) {
  return run_program(TANDEM_RUN_BINARY, arguments, options);
}

CommandResult run_program(const std::string& path, const std::vector<std::string>& arguments, const CommandOptions& options) {
  std::vector<std::string> words = {path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const Capture out("out");
  const Capture err("err");
  const auto began = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) become(argv, options.standard_output, out.descriptor(), err.descriptor());
  const int status = wait_or_kill(child, options.kill_after.value_or(options.time_limit));

  CommandResult result;
  result.wall = since(began);
  EXPECT_LT(result.wall, options.time_limit) << testing::PrintToString(arguments);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.out = out.text();
  result.err = err.text();
  return result;
}

std::string scenario_file(const std::string& name) { return TANDEM_SOURCE_DIR "/scenarios/" + name + ".yaml"; }

void expect_refusal(const CommandResult& result, int exit_code, const std::vector<std::string>& words) {
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.exit_code, exit_code);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, testing::MatchesRegex("tandem(-run)?: [^\n]+\n"));
  for (const std::string& word : words) EXPECT_THAT(result.err, testing::HasSubstr(word));
}

}  // namespace tandem::cli
