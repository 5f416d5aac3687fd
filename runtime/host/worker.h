#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tandem {

/// A thread that runs jobs one after the other, in the order they were pushed. Jobs must not throw.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Any thread. Jobs pushed after `stop` never run.
  void push(std::function<void()> job);
  /// Lets the job that runs come to its end, drops those that wait, and ends the thread. Not from a job.
  void stop();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::thread thread_{[this] { run(); }};  ///< last: it uses the others

  void run();
};

}  // namespace tandem
