#include "traces/tidied_name.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <utility>

namespace tandem::traces {
namespace {

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr std::size_t most_names = 64;

/// What a handler can read: it may neither allocate nor lock, so names lie in places that are always there.
struct Place {
  std::atomic<pid_t> owner;     ///< 0: free
  std::atomic<unsigned> since;  ///< counts the names, so that later ones go first; 0 until `path` is whole
  char path[PATH_MAX];
};
std::array<Place, most_names> places;
std::atomic<unsigned> names_made;

void remove_name(const char* path) {
  if (::unlink(path) != 0 && errno == EISDIR) ::rmdir(path);
}

void remove_all_and_end(int signal) {
  const pid_t self = ::getpid();
  for (;;) {
    Place* latest = nullptr;
    for (Place& place : places)
      if (place.owner == self && place.since > (latest == nullptr ? 0U : latest->since.load())) latest = &place;
    if (latest == nullptr) break;
    remove_name(latest->path);
    latest->since = 0;
  }
  ::kill(self, signal);  // SA_RESETHAND: by default it ends the process
}

/// Handles what nobody else does.
void handle_ending_signals() {
  for (const int signal : ending_signals) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL) continue;
    action = {};
    action.sa_handler = remove_all_and_end;
    action.sa_flags = SA_RESETHAND | SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

int take_place(const std::string& path) {
  if (path.size() >= PATH_MAX) return -1;
  handle_ending_signals();
  for (std::size_t i = 0; i < most_names; ++i) {
    pid_t free = 0;
    if (!places[i].owner.compare_exchange_strong(free, ::getpid())) continue;
    std::memcpy(places[i].path, path.c_str(), path.size() + 1);
    places[i].since = ++names_made;
    return static_cast<int>(i);
  }
  return -1;
}

void leave_place(int place) {
  if (place < 0) return;
  places[static_cast<std::size_t>(place)].since = 0;
  places[static_cast<std::size_t>(place)].owner = 0;
}

}  // namespace

TidiedName::TidiedName(std::string path) : path_(std::move(path)), place_(take_place(path_)) {}

TidiedName::TidiedName(TidiedName&& other) noexcept
    : path_(std::exchange(other.path_, {})), place_(std::exchange(other.place_, -1)) {}

TidiedName& TidiedName::operator=(TidiedName&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(place_, other.place_);
  return *this;
}

TidiedName::~TidiedName() {
  if (!path_.empty()) remove_name(path_.c_str());
  leave_place(place_);
}

void TidiedName::keep() {
  leave_place(std::exchange(place_, -1));
  path_.clear();
}

}  // namespace tandem::traces
