#include "studies/runner/step_server.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "runtime/base/freed_memory.h"
#include "runtime/base/large_pages.h"
#include "runtime/base/parallel.h"
#include "scenarios/reading/load.h"
#include "studies/step/json_value.h"
#include "studies/step/simulated_step.h"
#include "studies/step/site_json.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

/// What a stored result's warnings call the text beside it, whose lines and columns they name. Results have been made from their
/// text on standard input, and the same scenario keeps the same result.
constexpr const char* stored_text = "/proc/self/fd/0";

constexpr const char* called = "its process";  // in a failure of a step

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

/// Keeps what a simulation prints from getting between the lines of whoever asked for the simulation.
void silence() {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) fail("cannot open /dev/null");
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, stream);
}

/// What a server is asked: a line with the site, or without one where it is part of the text, and the text as it is.
std::string asked_of(const StepJob& job) { return (job.site.known() ? to_json_object(job.site).dump() : "") + '\n' + job.text; }

Scenario asked_scenario(const std::string& asked) {
  const std::size_t line = asked.find('\n');
  Scenario scenario = parse_scenario(asked.substr(line + 1), stored_text, {});
  if (line == 0) return scenario;
  const Json site = Json::parse(asked.substr(0, line));
  scenario.cluster.gpu.site = site_from_json(JsonValue(site, stored_text, "a site"));
  return scenario;
}

/// Returns what `tandem simulate --allow-oom --json` writes of the scenario: a step that does not fit is a result like any other.
std::string simulated(const Scenario& scenario) {
  return to_json(simulate_in_full(scenario, true, {.fold_time = true, .fold_mirrors = true, .ends_process = true}).result);
}

}  // namespace

StepServer::Bell::Bell() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
  if (descriptor_ < 0) fail("cannot start a simulation process");
}

StepServer::Bell::~Bell() { ::close(descriptor_); }

void StepServer::Bell::ring() const {
  if (::eventfd_write(descriptor_, 1) != 0) fail("cannot start a simulation");
}

void StepServer::Bell::wait() const {
  eventfd_t rung = 0;
  while (::eventfd_read(descriptor_, &rung) != 0)
    if (errno != EINTR) fail("cannot wait for a simulation to do");
}

StepServer::StepServer(const ProcessShare& share, const ChildSignals& signals)
    : server_(
          [&] {
            ::setpgid(0, 0);  // an interrupt from the terminal is the parent's to handle
            signals.leave_to_parent();
            silence();
            limit_threads(share.threads);
            give_back_freed_memory();
            prefer_large_pages_for_heap(small_pieces_of_most_steps);
            serve();
          },
          share.memory) {}

void StepServer::serve() {
  for (;;) {
    bell_.wait();
    simulate_in_child();
    ++ended_.value();
    ::kill(::getppid(), SIGCHLD);  // as if this had been its own child
  }
}

void StepServer::simulate_in_child() {
  sim::ChildProcess child([&] {
    try {
      output_.write(simulated(asked_scenario(asked_.read())));
    } catch (...) {
      output_.write(to_json(failure_of_exception()));
    }
  });
  if (const std::string why = child.join().failure(called); !why.empty()) {
    output_.clear();
    output_.write(to_json(Failure{.sentence = why}));
  }
}

void StepServer::start(const StepJob& job) {
  started_ = utc_now();
  stopwatch_ = {};
  output_.clear();
  asked_.clear();
  asked_.write(asked_of(job));
  ++given_;
  bell_.ring();
}

bool StepServer::has_ended() const { return ended_.value() == given_ || server_.has_ended(); }

StepServer::End StepServer::end() {
  End end;
  end.outcome.started = started_;
  end.outcome.seconds = stopwatch_.elapsed();
  if (ended_.value() != given_) {
    goes_on_ = false;
    end.outcome.step = StepFailure{{.sentence = server_.join().failure(called)}};
    return end;
  }
  std::string text = output_.read();
  const Json json = Json::parse(text, nullptr, false);
  try {
    if (json.is_object() && json.contains("failure")) {
      end.outcome.step = StepFailure{failure_from_json(json)};
    } else {
      end.outcome.step = step_result_from_json(json, called);
      end.json = std::move(text);
    }
  } catch (const InputError& error) {  // a child that ended well but early, or a result that cannot be
    end.outcome.step = StepFailure{{.sentence = error.what()}};
  }
  return end;
}

}  // namespace tandem::studies
