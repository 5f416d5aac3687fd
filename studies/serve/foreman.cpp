#include "studies/serve/foreman.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/base/stopwatch.h"
#include "sim/fluid_network.h"
#include "studies/runner/step_failure.h"
#include "studies/serve/file_wall.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

std::string line_of_json(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string failure_line(const std::string& sentence) {
  return to_json(Failure{.code = ExitCode::failed, .place = {}, .sentence = sentence});
}

/// Leaves the stream as descriptor 3 and nothing else but three descriptors that lead nowhere.
int keep_only(int stream) {
  constexpr int kept = 3;
  if (stream != kept && ::dup2(stream, kept) < 0) throw std::system_error(errno, std::generic_category(), "dup2");
  ::close_range(kept + 1, ~0U, 0);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, standard);
  ::close(nowhere);
  return kept;
}

/// The life of a child.
void work_on(const JobKind& kind, int given, const JobLimits& limits, const JobSite& site) {
  ::setpgid(0, 0);
  ::setpriority(PRIO_PROCESS, 0, kind.niceness);
  const sigset_t none{};
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int stream = keep_only(given);
  try {
    wall_in(site.folder);
    const std::optional<std::string> body = read_all(stream, limits.input);
    if (!body) throw InputError({"the request", 0, 0}, fmt::format("it is longer than {} bytes", limits.input));
    const Json parsed = Json::parse(*body, nullptr, false);
    if (parsed.is_discarded()) throw InputError({"the request", 0, 0}, "it is no JSON");
    const TellProgress tell = [&](const Json& words) { write_line(stream, line_of_json({{"progress", words}})); };
    write_line(stream, line_of_json({{"answer", kind.work(parsed, site, tell)}}));
  } catch (...) {
    write_line(stream, to_json(failure_of_exception()));
  }
}

}  // namespace

struct Foreman::RunningJob {
  const JobKind& kind;
  OwnDescriptor stream;  ///< kept to hear that nobody waits, and to say how the child died
  Seconds limit;
  sim::ChildProcess child;
  Stopwatch stopwatch = {};

  RunningJob(ArrivedJob job, const JobLimits& limits, const JobSite& site)
      : kind(job_kinds()[job.kind]),
        stream(std::move(job.stream)),
        limit(kind.is_long ? limits.time_of_long : limits.time),
        child([&] { work_on(kind, stream.get(), limits, site); }, limits.memory) {}

  bool is_wanted() const {
    pollfd other_end{stream.get(), 0, 0};
    return ::poll(&other_end, 1, 0) == 0 || (other_end.revents & (POLLHUP | POLLERR)) == 0;
  }
};

Foreman::Foreman(const JobLimits& limits, JobSite site, int inside, pid_t helper)
    : limits_(limits), site_(std::move(site)), inside_(inside), helper_(helper) {
  const sigset_t handled = handled_signals();
  ::sigprocmask(SIG_BLOCK, &handled, nullptr);
  signals_ = OwnDescriptor(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (signals_.get() < 0) throw std::system_error(errno, std::generic_category(), "cannot wait for signals");
  sim::open_simgrid();  // which jobs could not, behind their walls
}

Foreman::~Foreman() = default;

std::size_t Foreman::running_long() const {
  return static_cast<std::size_t>(std::ranges::count_if(running_, [](const RunningJob& job) { return job.kind.is_long; }));
}

void Foreman::take(ArrivedJob job) {
  if (job.kind >= job_kinds().size()) return;
  if (waiting_.size() >= limits_.waiting) {
    write_line(job.stream.get(), failure_line("too much is asked at once; please try again"), false);
    return;
  }
  waiting_.push_back(std::move(job));
}

void Foreman::start_what_may() {
  for (auto job = waiting_.begin(); job != waiting_.end();) {
    const bool is_long = job_kinds()[job->kind].is_long;
    const std::size_t long_ones = running_long();
    const bool may = is_long ? long_ones < limits_.long_at_once : running_.size() - long_ones < limits_.at_once;
    if (!may) {
      ++job;
      continue;
    }
    ArrivedJob next = std::move(*job);
    job = waiting_.erase(job);
    const int stream = next.stream.get();
    const OwnDescriptor kept(::fcntl(stream, F_DUPFD_CLOEXEC, 0));
    try {
      running_.emplace_back(std::move(next), limits_, site_);
    } catch (const std::system_error& error) {
      write_line(kept.get(), failure_line(error.what()), false);
    }
  }
}

void Foreman::end_what_must() {
  for (auto job = running_.begin(); job != running_.end();) {
    std::string sentence;
    bool ends = true;
    if (job->child.has_ended()) {
      sentence = job->child.join().failure("the simulation's process");
    } else if (job->stopwatch.elapsed() > job->limit) {
      sentence = fmt::format("it takes longer than the {:g} s that it may", job->limit);
    } else {
      ends = !job->is_wanted();
    }
    if (!ends) {
      ++job;
      continue;
    }
    if (!sentence.empty()) write_line(job->stream.get(), failure_line(sentence), false);
    job = running_.erase(job);  // which kills a child that runs
  }
}

int Foreman::signal_that_came() {
  signalfd_siginfo info{};
  int asked = 0;
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info))
    if (info.ssi_signo != SIGCHLD) asked = static_cast<int>(info.ssi_signo);
  return asked;
}

/// Returns the signal that asks this process to end, -1 where its helper has ended, else 0.
int Foreman::wait_a_moment() {
  std::vector<pollfd> ends = {{signals_.get(), POLLIN, 0}, {inside_, POLLIN, 0}};
  double patience_ms = -1;
  for (const RunningJob& job : running_) {
    ends.push_back({job.stream.get(), 0, 0});
    const double left = 1e3 * (job.limit - job.stopwatch.elapsed()) + 1;
    patience_ms = patience_ms < 0 ? std::max(left, 0.0) : std::min(patience_ms, std::max(left, 0.0));
  }
  ::poll(ends.data(), ends.size(), static_cast<int>(patience_ms));
  if (const int asked = signal_that_came(); asked != 0) return asked;
  if (::waitpid(helper_, nullptr, WNOHANG) != 0) return -1;
  if ((ends[1].revents & POLLIN) != 0)
    if (std::optional<ArrivedJob> job = next_job(inside_)) take(*std::move(job));
  return 0;
}

int Foreman::run() {
  for (;;) {
    const int ended_by = wait_a_moment();
    if (ended_by != 0) return std::max(ended_by, 0);
    end_what_must();
    start_what_may();
  }
}

}  // namespace tandem::studies
