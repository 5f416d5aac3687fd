#include "runtime/cuda/module/nccl_world.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/module/nccl_call_on.h"
#include "runtime/cuda/module/nccl_library.h"
#include "runtime/cuda/split_rounds.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;
// Most calls are done at once. What takes longer takes long: then the core is left to NCCL's own threads.
constexpr std::chrono::microseconds ask_without_pause(50), ask_again_after(200);
// A call that is under way when the run fails may itself be stuck behind the kernels that the abort is to end.
constexpr std::chrono::seconds wait_for_a_call(2);

std::chrono::nanoseconds duration(Seconds seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<Seconds>(seconds));
}

void require_one_process_per_rank(const Launch& launch, const Dag& dag) {
  for (const Rank& rank : dag.ranks) {
    if (rank.count > 1) throw std::runtime_error("the DAG is folded: lower it for all ranks, to execute it");
  }
  if (dag.ranks.size() == launch.size) return;
  throw std::runtime_error("the DAG has " + std::to_string(dag.ranks.size()) + " ranks, but " + std::to_string(launch.size) +
                           (launch.size == 1 ? " process was" : " processes were") + " started: start one for each rank");
}

/// Throws for a collective that NCCL cannot do, before anything runs.
void require_possible(const Launch& launch, const Dag& dag) {
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].rank == launch.rank && is_communication(dag.tasks[id].op)) plan_call(dag, id);
}

class World final : public NcclWorld {
  class Memory final : public NcclMemory {
   public:
    explicit Memory(World& world) : world_(world) {}
    Memory(const Memory&) = delete;
    ~Memory() override { world_.release(*this); }
    std::byte* data() const override { return static_cast<std::byte*>(data_); }

   private:
    friend World;
    struct Registration {
      ncclComm_t* communicator = nullptr;  ///< none: it was refused
      void* handle = nullptr;              ///< NCCL may write it when the call has long returned
    };
    World& world_;
    void* data_ = nullptr;
    std::deque<Registration> registrations_;
  };

 public:
  World(ControlPlane& control, const Launch& launch, const Dag& dag, void* barrier_memory, const NcclWorldOptions& options)
      : control_(control), dag_(dag), barrier_memory_(barrier_memory), options_(options), of_(dag.communicators.size(), nullptr) {
    control_.on_failure([this](const std::string&) { abort(); });
    try {
      make_world(launch);
      for (const SplitRound& round : split_rounds(dag)) split(round, dag.ranks[launch.rank].world_rank);
    } catch (...) {
      abort();
      control_.on_failure({});
      throw;
    }
    watchdog_ = std::thread([this] { watch(); });
  }

  ~World() override {
    {
      const std::scoped_lock lock(mutex_);
      ending_ = true;
    }
    end_.notify_all();
    watchdog_.join();
    control_.on_failure({});
    abort();
  }

  void issue(TaskId task, const std::function<void*(BufferId)>& address, cudaStream_t stream) override {
    const NcclCall call = plan_call(dag_, task);
    const CommunicatorId id = dag_.groups[dag_.tasks[task].group].communicator;
    void* const send = call.own_memory ? barrier_memory_ : call.send == no_id ? nullptr : address(call.send);
    void* const receive = call.own_memory ? barrier_memory_ : call.receive == no_id ? nullptr : address(call.receive);
    const auto what = [&] {
      return std::string(operation(dag_.tasks[task].op).name) + " '" + std::string(dag_.name_of_task(task)) + "' on '" +
             dag_.communicators[id].name + "'";
    };
    if (of_[id] == nullptr) throw std::logic_error("this process is no member for " + what());
    begin(what, [&] { return call_on(nccl_, call, send, receive, *of_[id], stream); });
    wait_until_ready(*of_[id], what);
  }

  std::unique_ptr<NcclMemory> allocate(std::size_t bytes) override {
    auto memory = std::make_unique<Memory>(*this);
    if (bytes == 0) return memory;
    begin([&] { return "ncclMemAlloc of " + std::to_string(bytes >> 20) + " MiB"; },
          [&] { return nccl_.ncclMemAlloc(&memory->data_, bytes); });
    for (CommunicatorId id = 0; id < of_.size(); ++id) {
      if (of_[id] == nullptr) continue;
      const auto what = [&] { return "the registration of memory with '" + dag_.communicators[id].name + "'"; };
      Memory::Registration& registration = memory->registrations_.emplace_back();
      begin(what, [&] { return nccl_.ncclCommRegister(*of_[id], memory->data_, bytes, &registration.handle); });
      registration.communicator = of_[id];
      wait_until_ready(*of_[id], what);
    }
    return memory;
  }

  void close() override {
    const auto what = [] { return "the end of a communicator"; };
    for (std::size_t i = handles_.size(); i-- > 0;) {
      begin(what, [&] { return nccl_.ncclCommFinalize(handles_[i]); });
      wait_until_ready(handles_[i], what);
    }
    const std::scoped_lock lock(mutex_);
    require_not_aborted();
    for (std::size_t i = handles_.size(); i-- > 0;) nccl_.ncclCommDestroy(handles_[i]);
    closed_ = true;
    delete &handles_;
  }

 private:
  NcclLibrary nccl_;
  ControlPlane& control_;
  const Dag& dag_;
  void* barrier_memory_;
  NcclWorldOptions options_;

  std::mutex mutex_;  ///< NCCL is called by one thread at a time, and not with what another has aborted
  std::condition_variable end_;
  /// The communicators in the order they were made, the world first. NCCL's own thread writes a handle when the communicator is
  /// ready, perhaps when this process has long given up, so after a failure handles are never freed.
  std::deque<ncclComm_t>& handles_ = *new std::deque<ncclComm_t>;
  std::vector<ncclComm_t*> of_;   ///< by CommunicatorId; null where this rank is no member
  ncclComm_t nobodys_ = nullptr;  ///< where a split without colour would put its communicator
  bool aborted_ = false, closed_ = false, ending_ = false;
  std::thread watchdog_;

  ncclConfig_t config(const char* name) const {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.splitShare = 0;
    config.commName = name;
    return config;
  }

  void make_world(const Launch& launch) {
    std::string bytes(sizeof(ncclUniqueId), '\0');
    ncclUniqueId id{};
    if (launch.rank == 0) {
      const ncclResult_t result = nccl_.ncclGetUniqueId(&id);
      if (result != ncclSuccess) throw std::runtime_error("NCCL makes no id: " + nccl_.what_is(result));
      std::memcpy(bytes.data(), &id, sizeof id);
    }
    bytes = control_.broadcast(bytes);
    if (bytes.size() != sizeof id) throw std::runtime_error("rank 0 has another NCCL: use one version on all machines");
    std::memcpy(&id, bytes.data(), sizeof id);

    const auto what = [] { return "the communicator of all ranks"; };
    ncclConfig_t settings = config("world");
    ncclComm_t& world = add_handle();
    begin(what, [&] {
      return nccl_.ncclCommInitRankConfig(&world, static_cast<int>(launch.size), id, static_cast<int>(launch.rank), &settings);
    });
    wait_until_ready(world, what);
  }

  void split(const SplitRound& round, std::uint32_t world_rank) {
    const SplitPlace place = place_in(dag_, round, world_rank);
    const bool member = place.communicator != no_id;
    const std::string& name = dag_.communicators[round.communicators.front()].name;
    const auto what = [&] { return "the split of '" + name + "'"; };
    ncclConfig_t settings = config(name.c_str());
    ncclComm_t& part = member ? add_handle() : nobodys_;
    begin(what, [&] {
      return nccl_.ncclCommSplit(handles_.front(), member ? place.colour : NCCL_SPLIT_NOCOLOR, place.key, &part, &settings);
    });
    wait_until_ready(handles_.front(), what);
    if (!member) return;
    wait_until_ready(part, what);
    of_[place.communicator] = &part;
  }

  ncclComm_t& add_handle() {
    const std::scoped_lock lock(mutex_);
    return handles_.emplace_back(nullptr);
  }

  /// Deregisters and frees the memory. Throws nothing: after a failure the memory is freed all the same.
  void release(const Memory& memory) {
    const auto what = [] { return "the end of a registration"; };
    try {
      for (auto last = memory.registrations_.rbegin(); last != memory.registrations_.rend(); ++last) {
        if (last->communicator == nullptr) continue;
        begin(what, [&] { return nccl_.ncclCommDeregister(*last->communicator, last->handle); });
        wait_until_ready(*last->communicator, what);
      }
    } catch (const std::runtime_error&) {  // what is still registered ends with its communicator
    }
    if (memory.data_ != nullptr) nccl_.ncclMemFree(memory.data_);
  }

  /// Makes one call of NCCL, which may return before what it does has ended.
  template <typename What, typename Call>
  void begin(const What& what, const Call& call) {
    const std::scoped_lock lock(mutex_);
    require_not_aborted();
    const ncclResult_t result = call();
    if (result != ncclSuccess && result != ncclInProgress) throw std::runtime_error(complaint(what(), result));
  }

  template <typename What>
  void wait_until_ready(ncclComm_t& handle, const What& what) {
    const Clock::time_point begin = Clock::now(), deadline = begin + duration(options_.timeout);
    while (state_of(handle, what) == ncclInProgress) {
      if (Clock::now() - begin < ask_without_pause) continue;
      if (Clock::now() > deadline) {
        throw std::runtime_error("NCCL: " + std::string(what()) + " was not ready within " +
                                 std::to_string(static_cast<long>(options_.timeout)) + " s");
      }
      std::this_thread::sleep_for(ask_again_after);
    }
  }

  template <typename What>
  ncclResult_t state_of(ncclComm_t& handle, const What& what) {
    const std::scoped_lock lock(mutex_);
    require_not_aborted();
    const ncclResult_t state = state_of(handle);
    if (state != ncclSuccess && state != ncclInProgress) throw std::runtime_error(complaint(what(), state));
    return state;
  }

  ncclResult_t state_of(ncclComm_t& handle) const {
    ncclComm_t const communicator = std::atomic_ref(handle).load();
    if (communicator == nullptr) return ncclInProgress;
    ncclResult_t state = ncclSuccess;
    const ncclResult_t result = nccl_.ncclCommGetAsyncError(communicator, &state);
    return result == ncclSuccess ? state : result;
  }

  void require_not_aborted() const {
    if (aborted_) throw std::runtime_error(control_.failure().value_or("NCCL was aborted"));
  }

  std::string complaint(const std::string& what, ncclResult_t result) const {
    return "NCCL: " + what + ": " + nccl_.what_is(result);
  }

  /// Aborts all communicators inside a group, so that all are told to stop before the first is freed: freeing one may wait for
  /// the kernels of all.
  void abort() {
    // Not try_lock_for: GCC's thread sanitizer does not see it.
    std::unique_lock lock(mutex_, std::try_to_lock);
    for (const auto limit = Clock::now() + wait_for_a_call; !lock && Clock::now() < limit && !lock.try_lock();)
      std::this_thread::sleep_for(ask_again_after);
    if (aborted_ || closed_) return;
    aborted_ = true;
    nccl_.ncclGroupStart();
    for (ncclComm_t& handle : handles_) nccl_.ncclCommAbort(std::atomic_ref(handle).load());
    nccl_.ncclGroupEnd();
  }

  void watch() {
    std::string complaint_found;
    while (complaint_found.empty()) {
      std::unique_lock lock(mutex_);
      if (end_.wait_for(lock, duration(options_.watch_every), [this] { return ending_ || aborted_ || closed_; })) return;
      for (ncclComm_t& handle : handles_) {
        const ncclResult_t state = state_of(handle);
        if (state != ncclSuccess && state != ncclInProgress) complaint_found = complaint("an error of its own", state);
      }
    }
    control_.fail(complaint_found);
  }
};

}  // namespace

std::unique_ptr<NcclWorld> make_nccl_world(ControlPlane& control, const Launch& launch, const Dag& dag, void* barrier_memory,
                                           const NcclWorldOptions& options) {
  require_one_process_per_rank(launch, dag);
  require_possible(launch, dag);
  ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
  return std::make_unique<World>(control, launch, dag, barrier_memory, options);
}

}  // namespace tandem
