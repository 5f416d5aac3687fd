#include "studies/runner/outcome.h"

#include <sys/wait.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/base/exit_code.h"

namespace tandem::studies {
namespace {

/// The last line on standard error is the sentence that says why.
std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text.erase(0, text.rfind('\n') + 1);  // npos + 1 is 0
  return text;
}

std::string sentence_of(const FinishedWorker& worker, const std::string& name) {
  constexpr std::string_view program = "tandem: ";
  std::string line = last_line(worker.err);
  if (line.starts_with(program)) line.erase(0, program.size());
  if (line.starts_with(worker_scenario)) line.replace(0, std::strlen(worker_scenario), name);
  return line;
}

std::string death_of(const FinishedWorker& worker) {
  if (!WIFSIGNALED(worker.status)) return "its process ended with exit code " + std::to_string(WEXITSTATUS(worker.status));
  const int signal = WTERMSIG(worker.status);
  std::string text = "its process was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  if (signal == SIGKILL) text += ", most likely because the machine ran out of memory";
  return text;
}

}  // namespace

Outcome outcome_of(const FinishedWorker& worker, const std::string& name) {
  const bool exited = WIFEXITED(worker.status);
  if (!exited || WEXITSTATUS(worker.status) != static_cast<int>(ExitCode::done)) {
    const std::string sentence = exited ? sentence_of(worker, name) : "";
    return {PointStatus::failed, sentence.empty() ? death_of(worker) : sentence, ""};
  }
  const nlohmann::json result = nlohmann::json::parse(worker.out, nullptr, false);
  const nlohmann::json::json_pointer fits("/memory/fits");
  if (!result.is_object() || !result.contains(fits)) return {PointStatus::failed, "its process printed no result", ""};
  return {result[fits].get<bool>() ? PointStatus::done : PointStatus::oom, "", worker.out};
}

}  // namespace tandem::studies
