#include "studies/serve/http/newest.h"

#include <utility>

namespace tandem::studies {

Newest::Turn::Turn(Newest& owner, std::string name) : owner_(owner), name_(std::move(name)) {
  std::unique_lock lock(owner_.mutex_);
  State& state = owner_.states_[name_];
  ++state.users;
  const std::uint64_t number = ++state.newest;
  owner_.changed_.notify_all();  // whoever waits is not the newest any more
  owner_.changed_.wait(lock, [&] { return !state.is_taken || state.newest != number; });
  is_ours_ = state.newest == number;
  if (is_ours_) state.is_taken = true;
}

Newest::Turn::~Turn() {
  const std::lock_guard lock(owner_.mutex_);
  State& state = owner_.states_[name_];
  if (is_ours_) state.is_taken = false;
  if (--state.users == 0)
    owner_.states_.erase(name_);
  else
    owner_.changed_.notify_all();
}

}  // namespace tandem::studies
