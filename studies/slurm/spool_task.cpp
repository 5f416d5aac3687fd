#include "studies/slurm/spool_task.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "studies/runner/child_pool.h"
#include "studies/runner/scenario_hash.h"
#include "studies/slurm/outcome_file.h"
#include "studies/slurm/spool.h"

namespace tandem::studies {
namespace {

/// Network file systems show a change late: NFS after up to a minute.
constexpr std::chrono::minutes without_a_beat{5};
constexpr std::chrono::seconds between_glances{10};
constexpr Seconds between_looks = 0.5;
constexpr Seconds between_looks_of_the_idle = 2;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

/// Whether the coordinator lives, as far as this process can see: clocks of machines differ, so only changes count.
class Coordinator {
 public:
  explicit Coordinator(const Spool& spool) : spool_(spool) {}

  bool is_there() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return true;
    next_ = now + between_glances;
    if (std::string beat = spool_.last_beat(); beat != last_) {
      last_ = std::move(beat);
      changed_ = now;
    }
    return now - changed_ < without_a_beat;
  }

 private:
  const Spool& spool_;
  std::string last_;
  std::chrono::steady_clock::time_point next_{}, changed_ = std::chrono::steady_clock::now();
};

class SpoolTask {
 public:
  SpoolTask(const std::string& folder, std::string task, std::size_t at_once)
      : spool_(folder), task_(std::move(task)), children_(at_once), coordinator_(spool_) {}

  void run() {
    try {
      for (;;) {
        while (running_.size() < children_.capacity() && begin()) {
        }
        if (running_.empty() && (!spool_.is_there() || !coordinator_.is_there())) return;
        // A search's next steps come within seconds, if any do; later, many tasks look into one folder.
        idle_ = running_.empty() ? idle_ + 1 : 0;
        constexpr int soon = 10;
        collect(idle_ > soon ? between_looks_of_the_idle : between_looks);
      }
    } catch (const Interrupted&) {
      for (const auto& [number, hash] : running_) spool_.give_back({hash, task_});
    }
  }

 private:
  Spool spool_;
  std::string task_;
  ChildPool children_;
  Coordinator coordinator_;
  ChildSignals signals_;
  std::map<std::size_t, std::string> running_;  ///< hashes of steps
  std::size_t begun_ = 0;
  int idle_ = 0;  ///< how many looks ago there was something to do

  /// Returns whether there was a step to take.
  bool begin() {
    const std::optional<Spool::Step> step = spool_.take(task_);
    if (!step) return false;
    try {
      if (hash_of_scenario(step->scenario) != step->hash)
        throw std::runtime_error("the task's tandem is another version than the one that waits for it");
      children_.start(begun_, {.scenario = {}, .text = step->scenario}, signals_);
      running_.emplace(begun_++, step->hash);
    } catch (const std::exception& error) {
      StepWithText ended{.outcome = {.step = StepFailure{{.sentence = error.what()}}, .started = utc_now()}, .json = ""};
      spool_.finish({step->hash, task_}, to_outcome_file(ended));
    }
    return true;
  }

  void collect(Seconds patience) {
    for (EndedStep& step : children_.wait(signals_, patience)) {
      spool_.finish({running_.extract(step.index).mapped(), task_},
                    to_outcome_file({std::move(step.outcome), std::move(step.json)}));
    }
  }
};

}  // namespace

void work_on_spool(const std::string& folder, const std::string& task, std::size_t at_once) {
  SpoolTask(folder, task, at_once).run();
}

std::string this_slurm_task() {
  const std::string job = variable("SLURM_ARRAY_JOB_ID"), index = variable("SLURM_ARRAY_TASK_ID");
  if (job.empty() || index.empty())
    throw std::runtime_error("this is no task of a Slurm array, expected to be run by what --slurm submits");
  return job + "_" + index;
}

std::size_t cpus_of_slurm_task() {
  std::size_t cpus = 1;
  const std::string text = variable("SLURM_CPUS_ON_NODE");
  std::from_chars(text.data(), text.data() + text.size(), cpus);
  return std::max<std::size_t>(1, cpus);
}

}  // namespace tandem::studies
