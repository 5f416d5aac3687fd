#pragma once

#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "runtime/backend.h"

namespace tandem {

/// Gives each unit the duration it is told and keeps a log of what was asked of it.
class FakeBackend final : public Backend {
 public:
  struct Event {
    enum class Kind {
      started,
      ended
    };
    Kind kind = Kind::started;
    std::vector<TaskId> unit;
  };

  /// `duration` is asked for the first task of a unit.
  explicit FakeBackend(std::function<Seconds(TaskId)> duration) : duration_(std::move(duration)) {}

  const std::vector<Event>& log() const { return log_; }

  void prepare(const Dag&, Completions& completions) override { completions_ = &completions; }

  void start(std::span<const TaskId> unit) override {
    log_.push_back({Event::Kind::started, {unit.begin(), unit.end()}});
    running_.push({now_ + duration_(unit.front()), now_, {unit.begin(), unit.end()}});
  }

  void drive() override {
    while (!running_.empty()) {
      const Running next = running_.top();
      running_.pop();
      now_ = next.end;
      log_.push_back({Event::Kind::ended, next.unit});
      completions_->ended(next.unit.back(), next.start, next.end);
    }
  }

 private:
  struct Running {
    Seconds end;
    Seconds start;
    std::vector<TaskId> unit;
    bool operator>(const Running& other) const { return end > other.end; }
  };
  std::function<Seconds(TaskId)> duration_;
  Completions* completions_ = nullptr;
  Seconds now_ = 0;
  std::vector<Event> log_;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
};

}  // namespace tandem
