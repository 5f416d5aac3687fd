#include "sim/node_ring.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

namespace tandem::sim {
namespace {

constexpr Seconds infinite = std::numeric_limits<Seconds>::infinity();
constexpr std::uint32_t rounds_played = 8;

class Play {
 public:
  explicit Play(const NodeRing& ring, std::uint32_t messages) : ring_(ring), messages_(messages), hops_(ring.hops) {
    for (std::uint32_t h = 0; h < ring.hops; ++h) start_if_ready(h);
  }

  /// Returns, by message, when its last copy arrived.
  std::vector<Seconds> arrivals() {
    while (true) {
      const Seconds step = time_to_next();
      if (step == infinite) return last_arrival_;
      advance(step);
    }
  }

 private:
  struct HopState {
    std::uint32_t left = 0;      ///< messages that have left
    std::uint32_t received = 0;  ///< by the member that sends over this hop
    bool busy = false;
    double to_do = 0;              ///< share of the message under way that has not left
    std::deque<Seconds> arriving;  ///< dates, of messages that left
  };
  const NodeRing& ring_;
  const std::uint32_t messages_;
  std::vector<HopState> hops_;
  std::vector<Seconds> last_arrival_ = std::vector<Seconds>(messages_, 0);
  std::uint32_t inside_ = 0;  ///< messages under way inside the node
  Seconds now_ = 0;

  Seconds latency(std::uint32_t hop) const { return hop == 0 ? ring_.inter_latency : ring_.intra_latency; }
  Seconds transfer(std::uint32_t hop) const { return hop == 0 ? ring_.over_nodes : std::max(ring_.least, inside_ * ring_.alone); }

  void start_if_ready(std::uint32_t h) {
    HopState& hop = hops_[h];
    if (hop.busy || hop.left == messages_ || hop.received < hop.left) return;
    hop.busy = true;
    hop.to_do = 1;
    if (h > 0) ++inside_;
  }

  Seconds time_to_next() const {
    Seconds least = infinite;
    for (std::uint32_t h = 0; h < hops_.size(); ++h) {
      if (hops_[h].busy) least = std::min(least, hops_[h].to_do * transfer(h));
      if (!hops_[h].arriving.empty()) least = std::min(least, hops_[h].arriving.front() - now_);
    }
    return least == infinite ? infinite : std::max(0.0, least);
  }

  void advance(Seconds step) {
    constexpr double rounding = 1e-9;
    const Seconds in_node = transfer(1);  // before any of them leaves
    now_ += step;
    for (std::uint32_t h = 0; h < hops_.size(); ++h) {
      HopState& hop = hops_[h];
      if (hop.busy) {
        const Seconds whole = h == 0 ? ring_.over_nodes : in_node;
        hop.to_do = whole > 0 ? hop.to_do - step / whole : 0;
        if (hop.to_do > rounding) continue;
        hop.busy = false;
        if (h > 0) --inside_;
        hop.arriving.push_back(now_ + latency(h));
        ++hop.left;
      }
    }
    for (std::uint32_t h = 0; h < hops_.size(); ++h) {
      HopState& hop = hops_[h];
      while (!hop.arriving.empty() && hop.arriving.front() <= now_ * (1 + rounding)) {
        const std::uint32_t message = hop.left - static_cast<std::uint32_t>(hop.arriving.size());
        last_arrival_[message] = std::max(last_arrival_[message], now_);
        hop.arriving.pop_front();
        ++hops_[(h + 1) % hops_.size()].received;
      }
    }
    for (std::uint32_t h = 0; h < hops_.size(); ++h) start_if_ready(h);
  }
};

Seconds play(const NodeRing& ring) {
  const std::uint32_t rounds = ring.messages / ring.hops;
  const std::uint32_t left_out = rounds > rounds_played ? rounds - rounds_played : 0;
  const std::uint32_t played = ring.messages - left_out * ring.hops;
  const std::vector<Seconds> arrivals = Play(ring, played).arrivals();
  return arrivals.back() + (left_out == 0 ? 0 : left_out * (arrivals.back() - arrivals[played - 1 - ring.hops]));
}

}  // namespace

Seconds play_node_ring(const NodeRing& ring) {
  constexpr std::size_t most_kept = 10'000;
  static std::mutex mutex;
  static std::map<NodeRing, Seconds> known;
  {
    const std::scoped_lock lock(mutex);
    if (const auto found = known.find(ring); found != known.end()) return found->second;
  }
  const Seconds time = play(ring);
  const std::scoped_lock lock(mutex);
  if (known.size() == most_kept) known.clear();
  known.emplace(ring, time);
  return time;
}

}  // namespace tandem::sim
