#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace tandem {

/// Processes forked from a test, each with something to do.
class Processes {
 public:
  Processes() = default;
  /// Kills those that still run.
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  /// How a process ended: by returning, with what it returned; by throwing, with exit code 1 and the sentence; with exit code
  /// 97 when an expectation of the test did not hold in it. What it wrote to standard error comes before.
  struct Outcome {
    int exit_code = -1;
    int signal = 0;
    std::string text;
  };

  /// Tells the test that `work` has come to some point; returns at once. In the child.
  using Ready = std::function<void()>;

  /// Returns the number of the process, counted from 0.
  std::size_t start(const std::function<std::string(const Ready&)>& work);
  /// Until the process has called Ready, for `limit` at most.
  void wait_until_ready(std::size_t process);
  void send_signal(std::size_t process, int signal) const;
  /// Of a process that has not ended within `limit`, it is killed, and the test fails.
  Outcome outcome(std::size_t process);

 private:
  struct Child {
    int pid = -1;
    int text = -1;   ///< a file without a name
    int ready = -1;  ///< the reading end of a pipe
    bool ended = false;
  };
  static constexpr std::chrono::seconds limit{60};
  std::vector<Child> children_;
};

}  // namespace tandem
