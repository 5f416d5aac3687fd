#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/terminal/line.h"
#include "cli/terminal/screen.h"
#include "runtime/base/units.h"

namespace tandem {

/// "simulating  [########------------]  41 %, about 12 s left". Without `left` that part is missing. `what` is shortened to what
/// `width` columns leave.
std::string progress_text(const std::string& what, double share, std::optional<Seconds> left,
                          std::size_t width = Screen::unlimited);

/// How far long work is, in a line on standard error where that is a terminal. Nothing is shown in the first `patience` seconds,
/// and nothing remains at the end. Silent where `--verbose` tells what is done.
class ProgressBar {
 public:
  explicit ProgressBar(Seconds patience = 2);

  bool is_shown() const { return shown_; }

  /// Another part of the work begins, whose end is estimated from what of it is done.
  void begin(std::string what);
  /// Of what began, 0 ... 1; absent where nobody knows, which shows for how long it has been going on.
  void show(std::optional<double> share);
  /// `left` is the caller's estimate.
  void show(const std::string& what, double share, std::optional<Seconds> left);
  /// Before something else is written. What goes on shows it again.
  void take_away() { line_.take_away(); }

 private:
  using Clock = std::chrono::steady_clock;
  TerminalLine line_;
  bool shown_;
  Seconds patience_;
  Clock::time_point start_ = Clock::now(), part_start_ = start_, drawn_;
  std::string what_;

  bool is_due();
};

/// For work that tells which share of it is done: begins the part `what`. Empty where nothing would be shown; `bar` may be null.
std::function<void(double share)> shown_in(ProgressBar* bar, const std::string& what);

/// Shows part of the work while it lives, from a thread of its own: for work that cannot stop to tell. There is no such thread
/// where nothing is shown, and the work must not fork.
class ProgressThread {
 public:
  using Share = std::function<std::optional<double>()>;

  /// Begins the part `what` of the bar. `bar` may be null: nothing is shown. `share` is called from the other thread.
  ProgressThread(
      ProgressBar* bar, std::string what, Share share = [] { return std::nullopt; });
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

/// What `work` returns, shown meanwhile for how long it has been going on.
template <typename Work>
auto shown_while(ProgressBar* bar, const std::string& what, const Work& work) {
  const ProgressThread watch(bar, what);
  return work();
}

}  // namespace tandem
