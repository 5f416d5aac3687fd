#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace tandem::studies {

/// Lets one request at a time through of those with a name ("the steps of this page's left side"), and of those that come
/// meanwhile the newest alone. What is under way ends undisturbed: who moves a slider wants to see something before it stops.
class Newest {
 public:
  /// A request's turn, which lasts as long as this lives.
  class Turn {
   public:
    Turn(Newest& owner, std::string name);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    /// False where a newer request came; there was nothing to wait for then.
    explicit operator bool() const { return is_ours_; }

   private:
    Newest& owner_;
    std::string name_;
    bool is_ours_ = false;
  };

 private:
  struct State {
    bool is_taken = false;
    std::uint64_t newest = 0;
    std::size_t users = 0;  ///< the state goes with the last one
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, State> states_;
};

}  // namespace tandem::studies
