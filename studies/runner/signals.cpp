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

void by_default(int signal, struct sigaction* before) {
  struct sigaction normal {};
  normal.sa_handler = SIG_DFL;
  ::sigaction(signal, &normal, before);
}

}  // namespace

Interrupted::Interrupted(int signal) : std::runtime_error(std::string("interrupted (") + ::strsignal(signal) + ")") {}

ChildSignals::ChildSignals() {
  by_default(SIGCHLD, &child_action_before_);  // ignored, ended children would leave no status
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

void ChildSignals::undo_in_child() const {
  for (const int signal : ending_signals)
    if (sigismember(&waited_for_, signal) == 1) by_default(signal, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

}  // namespace tandem::studies
