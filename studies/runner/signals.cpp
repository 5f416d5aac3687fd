#include "studies/runner/signals.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <string>
#include <system_error>

namespace tandem::studies {
namespace {

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

void handle(int signal, __sighandler_t how, struct sigaction* before = nullptr) {
  struct sigaction action {};
  action.sa_handler = how;
  ::sigaction(signal, &action, before);
}

}  // namespace

Interrupted::Interrupted(int signal) : std::runtime_error(std::string("interrupted (") + ::strsignal(signal) + ")") {}

ChildSignals::ChildSignals() {
  handle(SIGCHLD, SIG_DFL, &child_action_before_);  // ignored, ended children would leave no status
  sigemptyset(&waited_for_);
  sigaddset(&waited_for_, SIGCHLD);
  for (const int signal : ending_signals) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&waited_for_, signal);
  }
  ::sigprocmask(SIG_BLOCK, &waited_for_, &mask_before_);
}

ChildSignals::~ChildSignals() {
  ::sigaction(SIGCHLD, &child_action_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

void ChildSignals::wait_for_child(Seconds patience) const {
  const double whole = std::floor(patience);
  const timespec limit{static_cast<std::time_t>(whole), static_cast<long>((patience - whole) * 1e9)};
  const int signal = ::sigtimedwait(&waited_for_, nullptr, &limit);
  if (signal < 0 && errno != EAGAIN && errno != EINTR)
    throw std::system_error(errno, std::generic_category(), "cannot wait for the simulation processes");
  if (signal > 0 && signal != SIGCHLD) throw Interrupted(signal);
}

void ChildSignals::leave_to_parent() const {
  for (const int signal : ending_signals) handle(signal, SIG_IGN);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

}  // namespace tandem::studies
