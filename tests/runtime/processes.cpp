#include "tests/runtime/processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <system_error>

namespace tandem {
namespace {

[[noreturn]] void fail_call(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

[[noreturn]] void run_child(const std::function<std::string(const Processes::Ready&)>& work, int text, int ready) {
  ::dup2(text, STDERR_FILENO);
  int exit_code = 0;
  std::string answer;
  try {
    answer = work([ready] {
      if (::write(ready, "r", 1) != 1) ::_exit(99);
    });
  } catch (const std::exception& error) {
    answer = error.what();
    exit_code = 1;
  }
  if (testing::Test::HasFailure()) exit_code = 97;
  if (::write(text, answer.data(), answer.size()) != static_cast<ssize_t>(answer.size())) ::_exit(98);
  ::_exit(exit_code);
}

/// Whether something can be read, or a process has ended, within `limit`.
bool comes(int descriptor, std::chrono::milliseconds limit) {
  pollfd waited{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&waited, 1, static_cast<int>(limit.count())) == 1;
}

}  // namespace

Processes::~Processes() {
  for (Child& child : children_) {
    if (!child.ended) {
      ::kill(child.pid, SIGKILL);
      ::waitpid(child.pid, nullptr, 0);
    }
    ::close(child.text);
    ::close(child.ready);
  }
}

std::size_t Processes::start(const std::function<std::string(const Ready&)>& work) {
  Child child;
  std::array<int, 2> pipe{};
  child.text = ::memfd_create("text", MFD_CLOEXEC);
  if (child.text < 0 || ::pipe2(pipe.data(), O_CLOEXEC) != 0) fail_call("memfd_create, pipe");
  child.ready = pipe[0];
  child.pid = ::fork();
  if (child.pid < 0) fail_call("fork");
  if (child.pid == 0) run_child(work, child.text, pipe[1]);
  ::close(pipe[1]);
  children_.push_back(child);
  return children_.size() - 1;
}

void Processes::wait_until_ready(std::size_t process) {
  char byte = 0;
  if (!comes(children_[process].ready, limit) || ::read(children_[process].ready, &byte, 1) != 1)
    ADD_FAILURE() << "process " << process << " did not get ready";
}

void Processes::send_signal(std::size_t process, int signal) const { ::kill(children_[process].pid, signal); }

Processes::Outcome Processes::outcome(std::size_t process) {
  Child& child = children_[process];
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0));
  if (handle < 0) fail_call("pidfd_open");
  if (!comes(handle, limit)) {
    ADD_FAILURE() << "process " << process << " hangs";
    ::kill(child.pid, SIGKILL);
  }
  ::close(handle);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  child.ended = true;
  Outcome outcome;
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.text.resize(static_cast<std::size_t>(::lseek(child.text, 0, SEEK_END)));
  if (::pread(child.text, outcome.text.data(), outcome.text.size(), 0) < 0) fail_call("pread");
  return outcome;
}

}  // namespace tandem
