#include "studies/runner/worker_pool.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <system_error>
#include <thread>
#include <utility>

namespace tandem::studies {
namespace {

constexpr int cannot_start = 127;  // as in a shell

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

/// A file without a name, for what goes into a process and what comes out: unlike a pipe it never makes either side wait.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("tandem", MFD_CLOEXEC)) {
    if (descriptor_ < 0) fail("cannot start a simulation process");
  }
  MemoryFile(MemoryFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  MemoryFile& operator=(MemoryFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~MemoryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int descriptor() const { return descriptor_; }
  void put(const std::string& text) const {
    if (::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      fail("cannot start a simulation process");
  }
  std::string text() const {
    std::string text(static_cast<std::size_t>(::lseek(descriptor_, 0, SEEK_END)), '\0');
    if (::pread(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      fail("cannot read what a simulation process printed");
    return text;
  }

 private:
  int descriptor_;
};

[[noreturn]] void become_worker(pid_t parent, const sigset_t& mask, int in, int out, int err) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(cannot_start);  // it died before the line above
  ::setpgid(0, 0);                                   // an interrupt from the terminal is the sweep's to handle
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (::dup2(in, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(err, STDERR_FILENO) < 0) ::_exit(cannot_start);
  // What does not fit is a result like any other, so it is asked for in full.
  ::execl("/proc/self/exe", "tandem", "simulate", worker_scenario, "--json", "-", "--allow-oom", nullptr);
  ::_exit(cannot_start);
}

}  // namespace

std::size_t processes_at_once(int jobs) {
  return jobs > 0 ? static_cast<std::size_t>(jobs) : std::max(1U, std::thread::hardware_concurrency());
}

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

Interrupted::Interrupted(int signal) : std::runtime_error(std::string("interrupted (") + ::strsignal(signal) + ")") {}

struct WorkerPool::Worker {
  pid_t process = 0;
  std::size_t point = 0;
  MemoryFile in, out, err;
  std::string started = utc_now();
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
};

WorkerPool::WorkerPool(std::size_t jobs) : jobs_(jobs) {
  struct sigaction normal {};
  normal.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &normal, &child_action_before_);  // ignored, ended children would leave no status
  sigemptyset(&waited_for_);
  sigaddset(&waited_for_, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&waited_for_, signal);
  }
  ::sigprocmask(SIG_BLOCK, &waited_for_, &mask_before_);
}

WorkerPool::~WorkerPool() {
  for (const Worker& worker : workers_) ::kill(worker.process, SIGKILL);
  for (const Worker& worker : workers_)
    while (::waitpid(worker.process, nullptr, 0) < 0 && errno == EINTR) continue;
  ::sigaction(SIGCHLD, &child_action_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::size_t WorkerPool::running() const { return workers_.size(); }

void WorkerPool::start(std::size_t point, const std::string& scenario) {
  Worker worker;
  worker.point = point;
  worker.in.put(scenario);
  workers_.reserve(workers_.size() + 1);
  const pid_t parent = ::getpid();
  worker.process = ::fork();
  if (worker.process < 0) fail("cannot start a simulation process");
  if (worker.process == 0)
    become_worker(parent, mask_before_, worker.in.descriptor(), worker.out.descriptor(), worker.err.descriptor());
  workers_.push_back(std::move(worker));
}

std::vector<FinishedWorker> WorkerPool::wait(Seconds patience) {
  if (workers_.empty()) return {};
  const double whole = std::floor(patience);
  const timespec limit{static_cast<std::time_t>(whole), static_cast<long>((patience - whole) * 1e9)};
  const int signal = ::sigtimedwait(&waited_for_, nullptr, &limit);
  if (signal < 0 && errno != EAGAIN && errno != EINTR) fail("cannot wait for the simulation processes");
  if (signal > 0 && signal != SIGCHLD) throw Interrupted(signal);
  return collect();
}

std::vector<FinishedWorker> WorkerPool::collect() {
  std::vector<FinishedWorker> finished;
  std::erase_if(workers_, [&](const Worker& worker) {
    int status = 0;
    const pid_t ended = ::waitpid(worker.process, &status, WNOHANG);
    if (ended == 0) return false;
    if (ended < 0) fail("cannot wait for a simulation process");
    finished.push_back({.point = worker.point,
                        .status = status,
                        .scenario = worker.in.text(),
                        .out = worker.out.text(),
                        .err = worker.err.text(),
                        .started = worker.started,
                        .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - worker.began).count()});
    return true;
  });
  return finished;
}

}  // namespace tandem::studies
