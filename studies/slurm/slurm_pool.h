#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "studies/runner/step_pool.h"
#include "studies/slurm/outcome_file.h"
#include "studies/slurm/spool.h"

namespace tandem::studies {

/// What a user says of the array.
struct SlurmSettings {
  std::string name;     ///< of the Slurm job
  std::string folder;   ///< the spool's; all nodes must see it
  std::string program;  ///< the path of `tandem`, which all nodes must see
  std::size_t tasks = 8;
  int jobs = 0;                        ///< steps at once in a task, and its CPUs; 0 for as many as Slurm gives it CPUs
  std::vector<std::string> arguments;  ///< for sbatch, as `sbatch_words` returns them
  std::function<void(const std::string& sentence)> told;  ///< is told what happens in Slurm
};

/// Simulates steps in the tasks of a Slurm job array, which is submitted when the first step has been started, with no more tasks
/// than steps are expected.
///
/// A step whose task ended before it did goes to another task, and is a failure when that has happened `most_tries` times. Where
/// all tasks have ended and steps are left, another array is submitted, unless the one before brought nothing.
///
/// Killed, the pool leaves a folder with which the next one goes on: it takes the outcomes that have come, and the tasks that
/// still run. Destroyed while it holds steps, it cancels the array; else it ends the tasks, and removes the folder unless a step
/// failed.
class SlurmPool final : public StepPool {
 public:
  static constexpr int most_tries = 3;

  /// Throws std::runtime_error where the folder cannot be made, or where another process gathers in it.
  explicit SlurmPool(SlurmSettings settings);
  ~SlurmPool() override;

  void expect(std::size_t steps) override;
  std::size_t capacity() const override { return most_in_spool; }
  std::size_t running() const override { return running_; }
  void start(std::size_t index, const StepJob& job, const ChildSignals& signals) override;
  /// Also throws std::runtime_error where sbatch refuses the array, or where an array ended that brought nothing.
  std::vector<EndedStep> wait(const ChildSignals& signals) override;

 private:
  /// What a coordinator's death leaves for the tasks to do, and how many files its folders may hold.
  static constexpr std::size_t most_in_spool = 1024;
  using Clock = std::chrono::steady_clock;

  struct Lock {
    explicit Lock(const std::string& file);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    int descriptor;
  };

  SlurmSettings settings_;
  Spool spool_;
  Lock lock_;
  std::vector<std::string> arrays_;     ///< the Slurm jobs that may have tasks
  std::set<std::string> taken_before_;  ///< steps that tasks had taken when this pool was made, and that they may still end
  std::map<std::string, std::vector<std::size_t>> waiting_;    ///< who waits for a step, by its hash
  std::map<std::string, int> tries_;                           ///< of steps whose tasks have ended before they did
  std::vector<std::pair<std::string, StepWithText>> at_hand_;  ///< outcomes that need no task any more
  std::size_t expected_ = 0, running_ = 0;
  bool submitted_ = false, has_brought_ = false, any_failed_ = false;
  Clock::time_point next_beat_{}, next_look_{};
  Clock::duration between_looks_{};

  std::vector<EndedStep> gathered();
  void look_after_tasks();
  void lose(const TakenStep& step, const std::string& state);
  void submit();
  [[noreturn]] void give_up(const std::map<std::string, std::string>& states) const;
};

}  // namespace tandem::studies
