#include "studies/runner/step_process.h"

#include <fcntl.h>
#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "runtime/base/memory_limit.h"
#include "runtime/base/parallel.h"
#include "runtime/base/progress.h"
#include "scenarios/reading/load.h"
#include "sim/fluid_network.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

/// What a stored result's warnings call the text beside it, whose lines and columns they name. Results have been made from their
/// text on standard input, and the same scenario keeps the same result.
constexpr const char* stored_text = "/proc/self/fd/0";

/// A path in a sentence need not be UTF-8.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

/// Keeps what a simulation prints from getting between the lines of whoever asked for the simulation.
void silence() {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) fail("cannot open /dev/null");
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, stream);
}

/// Returns what `tandem simulate --allow-oom --json` writes of the scenario: a step that does not fit is a result like any other.
std::string simulated(const Scenario& scenario, const std::string& text) {
  StepResult result = simulate_in_full(scenario, true, {.fold_time = true, .fold_mirrors = true, .ends_process = true}).result;
  if (!result.warnings.empty()) result.warnings = parse_scenario(text, stored_text, {}).warnings;
  return to_json(result);
}

std::string death_of(int status) {
  if (!WIFSIGNALED(status)) return "its process ended with exit code " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  std::string text = "its process was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  if (signal == SIGKILL) text += ", most likely because the machine ran out of memory";
  return text;
}

bool ended_well(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(ExitCode::done); }

}  // namespace

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

MemoryFile::MemoryFile() : descriptor_(::memfd_create("tandem", MFD_CLOEXEC)) {
  if (descriptor_ < 0) fail("cannot start a simulation process");
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

void MemoryFile::write(const std::string& text) const {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(descriptor_, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) fail("cannot send the simulation's result");
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

std::string MemoryFile::read() const {
  std::string text(static_cast<std::size_t>(::lseek(descriptor_, 0, SEEK_END)), '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got = ::pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got == 0 || (got < 0 && errno != EINTR)) fail("cannot read a simulation's result");
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  return text;
}

ProcessShare share_of(std::size_t processes, Bytes memory) {
  const std::size_t threads = std::thread::hardware_concurrency() / processes;
  return {.memory = memory / static_cast<Bytes>(processes), .threads = std::clamp<std::size_t>(threads, 1, most_threads())};
}

void keep_to(const ProcessShare& share) {
  limit_memory(share.memory);
  limit_threads(share.threads);
}

StepProcess::StepProcess(const Scenario& scenario, const std::string& text, const ProcessShare& share,
                         const ChildSignals& signals)
    : started_(utc_now()), child_([&] {
        ::setpgid(0, 0);  // an interrupt from the terminal is the parent's to handle
        signals.undo_in_child();
        silence();
        try {
          keep_to(share);
          enforce_memory_limit();
          output_.write(simulated(scenario, text));
        } catch (...) {
          output_.write(text_of(to_json_object(failure_of_exception())));
        }
      }) {}

StepResult result_from_child(const Scenario& scenario, bool folded, const SimulationOptions& options,
                             const Stopwatch& stopwatch) {
  SimulationOptions of_child = options;
  of_child.ends_process = true;
  const MemoryFile output;
  sim::run_in_child([&] {
    const auto take_away = [](Progress* shown) { shown->take_away(); };
    const std::unique_ptr<Progress, decltype(take_away)> shown(options.progress, take_away);  // by the child, which knows of it
    // Beside lowering, where there may be another thread.
    const std::future<void> opened = sim::open_simgrid_beside();
    try {
      output.write(to_json(simulate_in_full(scenario, folded, of_child, stopwatch).result));
    } catch (const InputError&) {  // has a place, which the sentence of a child's exception has not
      output.write(text_of(to_json_object(failure_of_exception())));
    }
  });
  const Json json = Json::parse(output.read());
  if (!json.contains("failure")) return step_result_from_json(json, "its process");
  const Failure failure = failure_from_json(json);
  throw InputError(failure.place, failure.sentence);
}

StepProcess::End StepProcess::end() {
  const ChildProcess::End child = child_.join();
  End end;
  end.outcome.started = started_;
  end.outcome.seconds = stopwatch_.elapsed();
  if (!ended_well(child.status)) {
    end.outcome.step = StepFailure{{.sentence = child.sentence.empty() ? death_of(child.status) : child.sentence}};
    return end;
  }
  std::string text = output_.read();
  const Json json = Json::parse(text, nullptr, false);
  try {
    if (json.is_object() && json.contains("failure")) {
      end.outcome.step = StepFailure{failure_from_json(json)};
    } else {
      end.outcome.step = step_result_from_json(json, "its process");
      end.json = std::move(text);
    }
  } catch (const InputError& error) {  // a child that ended well but early, or a result that cannot be
    end.outcome.step = StepFailure{{.sentence = error.what()}};
  }
  return end;
}

}  // namespace tandem::studies
