#include "runtime/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/large_pages.h"

namespace tandem {
namespace {

/// More would gain little, and each takes address space of its own, which a memory limit counts.
constexpr std::size_t worth_starting = 8;

std::size_t limit = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, worth_starting);

std::exception_ptr thrown_by(const std::function<void()>& work) {
  try {
    work();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

/// What `make_and_join` has made, and joins in order.
class JoinedWork {
 public:
  JoinedWork(std::size_t count, std::size_t places, const WorkAtPlace& make, const WorkAtPlace& join)
      : count_(count), make_(make), join_(join), free_(places) {
    std::iota(free_.rbegin(), free_.rend(), 0);
  }

  /// Work for one thread, which does what there is to do until nothing is left to be made.
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      place_is_free_.wait(lock, [this] { return is_over() || !free_.empty(); });
      if (is_over()) return;
      const std::size_t number = next_++, place = free_.back();
      free_.pop_back();
      lock.unlock();
      const std::exception_ptr error = thrown_by([&] { make_(number, place); });
      lock.lock();
      made_.emplace(number, Made{place, error});
      if (!joins_) join_what_can_be(lock);
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  struct Made {
    std::size_t place;
    std::exception_ptr error;
  };

  const std::size_t count_;
  const WorkAtPlace &make_, &join_;
  std::mutex mutex_;
  std::condition_variable place_is_free_;
  std::vector<std::size_t> free_;  ///< places
  std::map<std::size_t, Made> made_;
  std::size_t next_ = 0, joined_ = 0;  ///< numbers
  bool joins_ = false;                 ///< one of the threads
  std::exception_ptr error_;           ///< of the first number that has one

  bool is_over() const { return next_ == count_ || error_; }

  void join_what_can_be(std::unique_lock<std::mutex>& lock) {
    joins_ = true;
    for (auto next = made_.find(joined_); next != made_.end() && !error_; next = made_.find(joined_)) {
      Made made = std::move(next->second);
      made_.erase(next);
      const std::size_t number = joined_;
      lock.unlock();
      if (!made.error) made.error = thrown_by([&] { join_(number, made.place); });
      lock.lock();
      ++joined_;
      error_ = std::move(made.error);
      free_.push_back(made.place);
      place_is_free_.notify_all();
    }
    joins_ = false;
  }
};

/// Threads that wait for work, and do one piece of it at a time, each once.
class KeptThreads {
 public:
  explicit KeptThreads(std::size_t count) {
    try {
      while (threads_.size() < count) threads_.emplace_back([this] { wait_for_work(); });
    } catch (const std::system_error&) {
      // The system gives no more threads.
    }
  }
  ~KeptThreads() {
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
  }
  KeptThreads(const KeptThreads&) = delete;

  /// Has so many threads do the work. Returns false where there are not as many, or they do other work.
  bool begin(std::size_t count, const std::function<void()>& work) {
    {
      const std::scoped_lock lock(mutex_);
      if (work_ != nullptr || count > threads_.size()) return false;
      work_ = &work;
      wanted_ = count;
    }
    changed_.notify_all();
    return true;
  }

  /// Returns when no thread works any more. Those that have not begun need not.
  void finish() {
    std::unique_lock lock(mutex_);
    wanted_ = 0;
    changed_.wait(lock, [this] { return working_ == 0; });
    work_ = nullptr;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  std::size_t wanted_ = 0, working_ = 0;
  bool ends_ = false;
  std::vector<std::jthread> threads_;  ///< last: they use the others

  void wait_for_work() {
    prefer_large_pages_for_heap(small_pieces_of_most_steps);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || wanted_ > 0; });
      if (ends_) return;
      --wanted_;
      ++working_;
      const std::function<void()>& work = *work_;
      lock.unlock();
      work();
      lock.lock();
      --working_;
      changed_.notify_all();
    }
  }
};

std::unique_ptr<KeptThreads> kept_threads;

/// Has so many threads do the work, and this one.
void work_with(std::size_t others, const std::function<void()>& work) {
  if (kept_threads && kept_threads->begin(others, work)) {
    work();
    return kept_threads->finish();
  }
  std::vector<std::jthread> started;
  try {
    while (started.size() < others) started.emplace_back(work);
  } catch (const std::system_error&) {
    // The system gives no more threads: those that there are do the work.
  }
  work();
}

}  // namespace

void keep_threads() { kept_threads = std::make_unique<KeptThreads>(limit - 1); }

void end_kept_threads() { kept_threads.reset(); }

std::size_t most_threads() { return limit; }

void limit_threads(std::size_t most) { limit = std::max<std::size_t>(1, most); }

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> thrown(count);
  std::atomic<std::size_t> next = 0;
  const auto take_numbers = [&] {
    for (std::size_t number = next++; number < count; number = next++) {
      try {
        work(number);
      } catch (...) {
        thrown[number] = std::current_exception();
      }
    }
  };
  if (count > 0) work_with(std::min(count, limit) - 1, take_numbers);
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
}

void do_beside(const std::function<void()>& here, const std::function<void()>& beside) {
  const std::thread::id this_thread = std::this_thread::get_id();
  std::exception_ptr of_here, of_beside;
  std::atomic_flag is_begun;
  const auto begin_beside = [&] {
    if (!is_begun.test_and_set()) of_beside = thrown_by(beside);
  };
  work_with(limit > 1 ? 1 : 0, [&] {
    if (std::this_thread::get_id() == this_thread)
      of_here = thrown_by(here);
    else
      begin_beside();
  });
  begin_beside();
  for (const std::exception_ptr& error : {of_here, of_beside})
    if (error) std::rethrow_exception(error);
}

void make_and_join(std::size_t count, std::size_t places, const WorkAtPlace& make, const WorkAtPlace& join) {
  JoinedWork joined(count, places, make, join);
  in_parallel(std::min(count, places), [&](std::size_t) { joined.work(); });
  joined.rethrow();
}

}  // namespace tandem
