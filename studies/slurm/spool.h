#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tandem::studies {

/// A step that a task has taken and not ended.
struct TakenStep {
  std::string hash;
  std::string task;  ///< "123_4": the fourth task, from 0, of the array 123
};

/// A folder through which one process, the coordinator, has steps simulated by tasks on other machines that see the folder, too.
/// A step is known by the hash of its scenario (runner/scenario_hash.h).
///
///     todo/HASH         a scenario, in YAML, for whoever takes it first
///     taken/HASH.TASK   the same while TASK simulates it
///     done/HASH         what became of it (outcome_file.h), for the coordinator
///     kept/HASH         the same once the coordinator has seen it, for a coordinator that comes after it
///     arrays            the Slurm jobs that work here, one on a line
///     beat              a number that changes as long as a coordinator is there
///     logs/, task.sh    what Slurm writes and runs
///
/// A file appears whole or not at all, and belongs to who renamed it: nothing takes a lock that network file systems may lack.
/// Tasks end where todo/ is gone.
///
/// All throw std::runtime_error (or filesystem_error) where the folder cannot be read or written; what other processes took away
/// meanwhile is no error.
class Spool {
 public:
  explicit Spool(const std::string& folder);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path log_of(const std::string& task) const;

  // For the coordinator.

  /// Makes the folder, and takes back what an earlier coordinator has left to be done.
  void open();
  /// Lays a step out to be done.
  void put(const std::string& hash, const std::string& scenario);
  std::vector<TakenStep> taken() const;
  std::vector<std::string> done() const;  ///< the hashes
  bool is_done(const std::string& hash) const;
  bool is_kept(const std::string& hash) const;
  /// Reads an outcome that is done or kept, and keeps it from now on.
  std::string keep(const std::string& hash);
  /// Forgets an outcome that is kept, so that the step is done again.
  void forget(const std::string& hash);
  /// Takes a step from its task for good.
  void drop(const TakenStep& step);
  void beat();
  void set_arrays(const std::vector<std::string>& jobs);
  std::vector<std::string> arrays() const;
  /// Tells the tasks to end.
  void close();
  /// The same, and leaves nothing behind.
  void remove();

  // For a task; `give_back` for either.

  /// Takes a step and returns its hash and scenario; nothing where there is none. Tasks begin their search at different steps.
  struct Step {
    std::string hash, scenario;
  };
  std::optional<Step> take(const std::string& task);
  void finish(const TakenStep& step, const std::string& outcome);
  void give_back(const TakenStep& step);
  std::string last_beat() const;
  bool is_there() const;

 private:
  std::filesystem::path folder_, todo_, taken_, done_, kept_;
  std::size_t beats_ = 0;
  std::vector<std::string> listed_;  ///< what was to be done when a task last looked, the next at the end

  void write(const std::filesystem::path& path, const std::string& text) const;
  std::filesystem::path file_of(const TakenStep& step) const;
};

}  // namespace tandem::studies
