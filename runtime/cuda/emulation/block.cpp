#include "runtime/cuda/emulation/block.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "runtime/cuda/emulation/device.h"

namespace tandem::emulation {
namespace {

constexpr std::size_t most_shared_bytes = 227 << 10;  // of a block on compute capability 9.0 and 10.0
constexpr std::size_t most_static_bytes = 48 << 10;   // of which kernels declare themselves
constexpr int not_a_number = 0xFF;                    // bytes that are NaN in every floating-point type but e4m3, where one is

std::unique_ptr<std::byte[]> shared_memory(std::size_t bytes) {
  auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::memset(memory.get(), not_a_number, bytes);
  return memory;
}

std::string text_of(const std::source_location& place) {
  const std::string file = place.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(place.line());
}

}  // namespace

void Block::shape(dim3 threads, std::size_t dynamic_shared_bytes) {
  size_ = threads;
  dynamic_bytes_ = dynamic_shared_bytes;
}

void Block::clear_shared() {
  arrays_.clear();
  static_bytes_ = 0;
  dynamic_ = shared_memory(dynamic_bytes_);
}

void* Block::shared_bytes_of(const void* site, std::size_t bytes) {
  auto& array = arrays_[site];
  if (!array.data) {
    array = {shared_memory(bytes), bytes};
    static_bytes_ += bytes;
    if (static_bytes_ > most_static_bytes || static_bytes_ + dynamic_bytes_ > most_shared_bytes)
      throw std::runtime_error("more shared memory than a block has");
  }
  return array.data.get();
}

bool Block::is_shared(const void* address) const {
  const auto lies_in = [at = static_cast<const std::byte*>(address)](const std::byte* data, std::size_t bytes) {
    return std::less_equal<>()(data, at) && std::less<>()(at, data + bytes);
  };
  return lies_in(dynamic_.get(), dynamic_bytes_) || std::any_of(arrays_.begin(), arrays_.end(), [&](const auto& array) {
           return lies_in(array.second.data.get(), array.second.bytes);
         });
}

void Block::wait(State state, std::source_location place) {
  threads_[now_].state = state;
  threads_[now_].place = place;
  threads_[now_].fiber.suspend();
}

void Block::wait_for_block(std::source_location place) { wait(State::waits_for_block, place); }

bool Block::all_wait_in(unsigned first, unsigned mask, std::size_t bytes) {
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    if (first + lane >= threads_.size()) return false;
    const Thread& thread = threads_[first + lane];
    if (thread.state != State::waits_for_warp || thread.mask != mask || thread.bytes != bytes) return false;
  }
  return true;
}

void Block::exchange(unsigned mask, const void* mine, void* of_all, std::size_t bytes, std::source_location place) {
  const unsigned first = now_ / warp_size * warp_size;
  if ((mask >> (now_ - first) & 1U) == 0) throw std::runtime_error("a lane is not in its own mask at " + text_of(place));
  Thread& self = threads_[now_];
  self.mask = mask;
  self.mine = mine;
  self.of_all = of_all;
  self.bytes = bytes;
  self.state = State::waits_for_warp;
  if (!all_wait_in(first, mask, bytes)) {
    wait(State::waits_for_warp, place);
    return;
  }
  exchanged_.assign(warp_size * bytes, std::byte{0});
  const auto for_each_lane = [&](auto use) {
    for (unsigned lane = 0; lane < warp_size; ++lane)
      if ((mask >> lane & 1U) != 0) use(lane, threads_[first + lane]);
  };
  for_each_lane([&](unsigned lane, const Thread& thread) { std::memcpy(exchanged_.data() + lane * bytes, thread.mine, bytes); });
  for_each_lane([&](unsigned, Thread& thread) {
    std::memcpy(thread.of_all, exchanged_.data(), exchanged_.size());
    thread.state = State::ready;
  });
}

void Block::run(const std::function<void()>& body, const std::vector<unsigned>& order) {
  clear_shared();
  error_ = nullptr;
  const std::function<void()> guarded = [&] {
    try {
      body();
    } catch (...) {
      error_ = std::current_exception();
    }
    threads_[now_].state = State::ended;
  };
  for (Thread& thread : threads_) {
    thread.fiber.start(guarded);
    thread.state = State::ready;
    thread.copies.assign(1, {});
  }
  while (resume_ready(order)) {
    if (error_) std::rethrow_exception(error_);
    release_block();
  }
  if (!std::ranges::all_of(threads_, [](const Thread& thread) { return thread.state == State::ended; })) report_deadlock();
}

void Block::wait_for_copies(std::size_t in_flight) {
  std::deque<std::vector<Copy>>& groups = threads_[now_].copies;
  for (; groups.size() > in_flight + 1; groups.pop_front())
    for (const Copy& copy : groups.front()) std::memcpy(copy.to, copy.from, copy.bytes);
}

bool Block::resume_ready(const std::vector<unsigned>& order) {
  bool any = false;
  for (const unsigned i : order) {
    if (threads_[i].state != State::ready) continue;
    any = true;
    now_ = i;
    threadIdx = {i % size_.x, i / size_.x % size_.y, i / size_.x / size_.y};
    threads_[i].fiber.resume();
    if (error_) break;
  }
  return any;
}

void Block::release_block() {
  const auto same_place = [&](const Thread& thread) {
    return thread.state == State::waits_for_block && thread.place.line() == threads_.front().place.line() &&
           thread.place.file_name() == std::string_view(threads_.front().place.file_name());
  };
  if (!std::ranges::all_of(threads_, same_place)) return;
  for (Thread& thread : threads_) thread.state = State::ready;
}

void Block::report_deadlock() const {
  std::map<std::string, unsigned> counts;
  for (const Thread& thread : threads_) {
    if (thread.state == State::ended) ++counts["ended"];
    if (thread.state == State::waits_for_block) ++counts["wait in __syncthreads at " + text_of(thread.place)];
    if (thread.state == State::waits_for_warp) ++counts["wait for lanes of their warp at " + text_of(thread.place)];
  }
  std::string message = "threads wait for each other in vain:";
  for (const auto& [what, count] : counts) message += " " + std::to_string(count) + " " + what + ";";
  message.pop_back();
  throw std::runtime_error(message);
}

}  // namespace tandem::emulation
