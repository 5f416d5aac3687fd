#include "studies/slurm/slurm_programs.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <stdexcept>

#include "runtime/base/input_error.h"
#include "runtime/base/nearest.h"
#include "studies/runner/memory_file.h"

namespace tandem::studies {
namespace {

struct Printed {
  int status = 0;  ///< as waitpid(2) gives it
  std::string out, err;
  bool is_well() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

/// What a started program does with its streams and with signals, which this process may hold back.
class SpawnSettings {
 public:
  SpawnSettings(const MemoryFile& out, const MemoryFile& err) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, out.descriptor(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files_, err.descriptor(), STDERR_FILENO);
    sigset_t none{};
    sigemptyset(&none);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

/// Runs a program that is on the PATH to its end. Throws std::runtime_error where it cannot be started.
Printed run_program(std::vector<std::string> words) {
  const MemoryFile out, err;
  const SpawnSettings settings(out, err);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, pointers[0], settings.files(), settings.attributes(), pointers.data(), environ);
  if (error != 0)
    throw std::runtime_error("cannot start " + words.front() + " (" + std::strerror(error) +
                             "), which --slurm needs: expected Slurm's programs on the PATH");
  Printed printed;
  while (::waitpid(process, &printed.status, 0) < 0 && errno == EINTR) {
  }
  printed.out = out.read();
  printed.err = err.read();
  return printed;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

/// A job is known as "123", or as "123;name" on another cluster than this machine's, which sbatch says and other programs must be
/// told.
std::string id_of(const std::string& job) { return job.substr(0, job.find(';')); }
std::vector<std::string> cluster_option(const std::string& job) {
  const std::size_t at = job.find(';');
  return at == std::string::npos ? std::vector<std::string>{} : std::vector<std::string>{"--clusters=" + job.substr(at + 1)};
}

bool is_ours_to_say(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  constexpr std::string_view options[] = {"--array", "--wrap", "--parsable", "--test-only", "--wait", "-a", "-W"};
  return std::ranges::find(options, name) != std::end(options);
}

}  // namespace

std::vector<std::string> sbatch_words(const std::string& text) {
  const Place place{.file = "--sbatch"};
  std::vector<std::string> words;
  std::string word;
  bool is_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      is_word = true;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      is_word = true;
    } else if (c == ' ' || c == '\t') {
      if (is_word) words.push_back(std::exchange(word, {}));
      is_word = false;
    } else {
      word += c;
      is_word = true;
    }
  }
  if (quote != 0) throw InputError(place, "a quote does not end in " + excerpt(text) + ", expected another one");
  if (is_word) words.push_back(word);
  for (const std::string& each : words)
    if (is_ours_to_say(each))
      throw InputError(place,
                       each + " is what Tandem says itself, expected another option of sbatch; --slurm=N says how many tasks");
  return words;
}

std::string submit_slurm_array(const SlurmArray& array) {
  std::vector<std::string> words = {"sbatch", "--job-name=" + array.name, "--output=" + array.log, "--nodes=1", "--ntasks=1"};
  if (array.cpus > 0) words.push_back("--cpus-per-task=" + std::to_string(array.cpus));
  words.insert(words.end(), array.arguments.begin(), array.arguments.end());
  words.insert(words.end(), {"--no-requeue", "--parsable", "--array=0-" + std::to_string(array.tasks - 1), array.script});
  const Printed printed = run_program(std::move(words));
  const std::vector<std::string> lines = lines_of(printed.out);
  if (!printed.is_well() || lines.empty()) {
    const std::vector<std::string> said = lines_of(printed.err);
    throw std::runtime_error("sbatch took no job: " + (said.empty() ? "it did not say why" : said.back()));
  }
  return lines.back();
}

std::optional<std::map<std::string, std::string>> slurm_states(const std::vector<std::string>& jobs) {
  std::map<std::string, std::string> states;
  for (const std::string& job : jobs) {
    std::vector<std::string> words = {"squeue",       "--noheader",        "--array",
                                      "--states=all", "--format=%F_%K|%T", "--jobs=" + id_of(job)};
    for (const std::string& option : cluster_option(job)) words.push_back(option);
    const Printed printed = run_program(std::move(words));
    if (!printed.is_well()) {
      if (printed.err.find("Invalid job id") != std::string::npos) continue;  // it has been gone for some minutes
      return {};
    }
    for (const std::string& line : lines_of(printed.out))
      if (const std::size_t bar = line.find('|'); bar != std::string::npos) states[line.substr(0, bar)] = line.substr(bar + 1);
  }
  return states;
}

// https://slurm.schedmd.com/squeue.html, JOB STATE CODES: the states of jobs that will not go on.
bool has_ended_in_slurm(const std::string& state) {
  constexpr std::string_view ended[] = {"BOOT_FAIL", "CANCELLED",     "COMPLETED", "DEADLINE", "FAILED",
                                        "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",  "TIMEOUT"};
  return std::ranges::find(ended, state) != std::end(ended);
}

void cancel_slurm_job(const std::string& job, bool only_pending) {
  std::vector<std::string> words = {"scancel", "--quiet"};
  if (only_pending) words.emplace_back("--state=PENDING");
  for (const std::string& option : cluster_option(job)) words.push_back(option);
  words.push_back(id_of(job));
  run_program(std::move(words));
}

}  // namespace tandem::studies
