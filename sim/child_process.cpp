#include "sim/child_process.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "runtime/base/forked_heap.h"
#include "runtime/base/freed_memory.h"
#include "runtime/base/large_pages.h"
#include "runtime/base/memory_limit.h"
#include "runtime/base/parallel.h"

namespace tandem::sim {
namespace {

constexpr int exit_with_sentence = 3;
/// That of a program which has read what it is to simulate.
constexpr std::size_t small_heap = std::size_t{4} << 20;

void* map_shared(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "cannot map memory for a simulation");
  return memory;
}

}  // namespace

/// The place where a child leaves the sentence it died with.
class ChildProcess::SharedSentence {
 public:
  SharedSentence() : text_(static_cast<char*>(map_shared(capacity))) {}
  ~SharedSentence() { munmap(text_, capacity); }
  SharedSentence(const SharedSentence&) = delete;
  SharedSentence& operator=(const SharedSentence&) = delete;

  void write(const char* sentence) { std::strncpy(text_, sentence, capacity - 1); }
  std::string read() const { return text_; }

 private:
  static constexpr std::size_t capacity = 4096;
  char* text_;
};

SharedMemory::SharedMemory(std::size_t bytes) {
  if (bytes > 0) bytes_ = {static_cast<std::byte*>(map_shared(bytes)), bytes};
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

SharedCounter::SharedCounter() : value_(new (map_shared(sizeof(Value))) Value(0)) {}

SharedCounter::~SharedCounter() { munmap(value_, sizeof(Value)); }

ChildProcess::ChildProcess(const std::function<void()>& work, std::optional<Bytes> memory)
    : sentence_(std::make_unique<SharedSentence>()) {
  const pid_t parent = getpid();
  std::fflush(nullptr);  // or the child, when it flushes, would write what waits in the buffers a second time
  end_kept_threads();
  child_ = fork();
  if (child_ < 0) throw std::system_error(errno, std::generic_category(), "cannot start a simulation process");
  if (child_ == 0) be_the_child(parent, work, memory);
}

void ChildProcess::be_the_child(pid_t parent, const std::function<void()>& work, std::optional<Bytes> memory) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(exit_with_sentence);  // it died before the line above
  copy_forked_heap(small_heap);
  try {
    if (memory) limit_memory(*memory);
    enforce_memory_limit();
    work();
    _exit(0);
  } catch (const std::bad_alloc&) {
    sentence_->write(beyond_memory_limit_sentence().c_str());
  } catch (const std::exception& error) {
    sentence_->write(error.what());
  } catch (...) {
    sentence_->write("unknown exception");
  }
  _exit(exit_with_sentence);
}

ChildProcess::~ChildProcess() {
  if (child_ == 0) return;
  kill(child_, SIGKILL);
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool ChildProcess::has_ended() const {
  siginfo_t ended{};
  if (waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOHANG | WNOWAIT) < 0)
    throw std::system_error(errno, std::generic_category(), "cannot wait for the simulation process");
  return ended.si_pid != 0;
}

ChildProcess::End ChildProcess::join(const std::function<void()>& meanwhile) {
  End end;
  rusage usage{};
  constexpr std::chrono::milliseconds between_looks(10);
  pid_t ended = 0;
  while ((ended = wait4(child_, &end.status, meanwhile ? WNOHANG : 0, &usage)) != child_) {
    if (ended == 0) {
      meanwhile();
      std::this_thread::sleep_for(between_looks);
    } else if (errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "cannot wait for the simulation process");
    }
  }
  child_ = 0;
  constexpr Bytes kibibyte = 1024;  // ru_maxrss counts them, see getrusage(2)
  end.peak_rss = usage.ru_maxrss * kibibyte;
  if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == exit_with_sentence) end.sentence = sentence_->read();
  return end;
}

std::string ChildProcess::End::failure(const std::string& process) const {
  if (!sentence.empty()) return sentence;
  if (WIFEXITED(status))
    return WEXITSTATUS(status) == 0 ? "" : process + " ended with exit code " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  std::string text = process + " was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  if (signal == SIGKILL) text += ", most likely because the machine ran out of memory";
  return text;
}

Bytes ChildProcess::wait(const std::function<void()>& meanwhile) {
  const End end = join(meanwhile);
  if (const std::string failure = end.failure("the simulation process"); !failure.empty()) throw std::runtime_error(failure);
  return end.peak_rss;
}

void run_in_children(std::size_t count, std::size_t jobs, const std::function<void(std::size_t)>& work,
                     const std::function<void(std::size_t)>& ended) {
  // A child would copy, page by page, what it has again of what is free here.
  give_back_freed_memory();
  prefer_large_pages_for_heap(small_pieces_of_most_steps);
  std::deque<ChildProcess> running;
  std::size_t done = 0;
  const auto wait_for_first = [&] {
    running.front().wait();  // all take about as long: it is the next to end, or nearly
    running.pop_front();
    if (ended) ended(done);
    ++done;
  };
  for (std::size_t number = 0; number < count; ++number) {
    if (running.size() >= std::max<std::size_t>(1, jobs)) wait_for_first();
    running.emplace_back([&work, number] { work(number); });
  }
  while (!running.empty()) wait_for_first();
}

}  // namespace tandem::sim
