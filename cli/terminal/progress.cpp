#include "cli/terminal/progress.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/base/quantities.h"

namespace tandem::cli {
namespace {

constexpr std::chrono::milliseconds between_updates(200);

/// Shows part of the work while it lives.
class ProgressThread final : public Progress::Watch {
 public:
  ProgressThread(ProgressBar& bar, Progress::Share share)
      : thread_([this, &bar, share = std::move(share)] {
          std::unique_lock lock(mutex_);
          while (!ends_.wait_for(lock, between_updates, [this] { return ended_; })) bar.show(share());
        }) {}
  ~ProgressThread() override {
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
    }
    ends_.notify_one();
    thread_.join();
  }
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace

std::string progress_text(const std::string& what, double share, std::optional<Seconds> left, std::size_t width) {
  constexpr std::size_t length = 20;
  share = std::clamp(share, 0.0, 1.0);
  std::string bar(static_cast<std::size_t>(std::floor(share * length)), '#');
  bar.resize(length, '-');
  const std::string rest =
      fmt::format("  [{}] {:3.0f} %{}", bar, std::floor(100 * share), left ? ", about " + rounded(*left) + " left" : "");
  return shortened(what, width > rest.size() ? width - rest.size() : 0) + rest;
}

ProgressBar::ProgressBar(Seconds patience)
    : shown_(line_.is_shown() && !spdlog::should_log(spdlog::level::debug)), patience_(patience) {}

bool ProgressBar::is_due() {
  if (!shown_ || whole_.elapsed() < patience_ || Clock::now() - drawn_ < between_updates) return false;
  drawn_ = Clock::now();
  return true;
}

void ProgressBar::begin(std::string what) {
  what_ = std::move(what);
  part_ = {};
}

void ProgressBar::show(std::optional<double> share) {
  if (!is_due()) return;
  const Seconds elapsed = part_.elapsed();
  if (!share)
    line_.show(fmt::format("{}, {} so far", what_, rounded(elapsed)));
  else
    line_.show(
        progress_text(what_, *share, *share > 0 ? std::optional(elapsed / *share * (1 - *share)) : std::nullopt, line_.width()));
}

void ProgressBar::show(const std::string& what, double share, std::optional<Seconds> left) {
  if (is_due()) line_.show(progress_text(what, share, left, line_.width()));
}

std::unique_ptr<Progress::Watch> ProgressBar::watch(std::string part, Share share) {
  if (!shown_) return nullptr;
  begin(std::move(part));
  return std::make_unique<ProgressThread>(*this, std::move(share));
}

}  // namespace tandem::cli
