#include "runtime/cuda/emulation/process_exchange.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "runtime/base/divide_up.h"
#include "runtime/cuda/emulation/nccl_functions.h"

namespace tandem::emulation {
namespace {

ProcessExchange*& the_exchange() {
  static ProcessExchange* one = nullptr;
  return one;
}

/// Returns, by communicator, the most elements that a member sends at once.
std::vector<std::size_t> most_sent(const Dag& dag) {
  std::vector<std::size_t> most(dag.communicators.size(), 0);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (!is_communication(task.op)) continue;
    const CommunicatorId communicator = dag.groups[task.group].communicator;
    const std::vector<std::uint32_t>& members = dag.communicators[communicator].members;
    const auto member = std::ranges::find(members, dag.ranks[task.rank].world_rank) - members.begin();
    const std::size_t sent = elements_read(plan_call(dag, id), static_cast<std::size_t>(member), members.size());
    most[communicator] = std::max(most[communicator], sent);
  }
  return most;
}

}  // namespace

/// The head of a member's box; the elements lie behind it.
struct ProcessExchange::Box {
  std::atomic<std::uint64_t> sent = 0, taken = 0;  ///< operations
  NcclCall call = {};
  std::size_t elements = 0;

  float* data() { return reinterpret_cast<float*>(this + 1); }
};

ProcessExchange::ProcessExchange(const Dag& dag) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  const std::vector<std::size_t> most = most_sent(dag);
  for (CommunicatorId id = 0; id < dag.communicators.size(); ++id) {
    places_.emplace_back();
    for (std::size_t member = 0; member < dag.communicators[id].members.size(); ++member) {
      places_.back().push_back(bytes_);
      bytes_ = round_up(bytes_ + sizeof(Box) + most[id] * sizeof(float), alignof(Box));
    }
  }
  bytes_ = std::max<std::size_t>(bytes_, 1);
  void* const mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  memory_ = static_cast<std::byte*>(mapped);
  for (const std::vector<std::size_t>& boxes : places_)
    for (const std::size_t place : boxes) new (memory_ + place) Box;
  the_exchange() = this;
}

ProcessExchange::~ProcessExchange() {
  the_exchange() = nullptr;
  ::munmap(memory_, bytes_);
}

ProcessExchange& ProcessExchange::current() {
  if (the_exchange() == nullptr) throw std::logic_error("processes are to exchange, and there is no ProcessExchange");
  return *the_exchange();
}

ProcessExchange::Box& ProcessExchange::box(CommunicatorId communicator, std::size_t member) {
  return *reinterpret_cast<Box*>(memory_ + places_[communicator][member]);
}

bool ProcessExchange::send(const Part& part, const NcclCall& call, const std::vector<float>& sent) {
  Box& own = box(part.communicator, part.member);
  if (own.sent > part.operation) return true;
  for (std::size_t member = 0; member < places_[part.communicator].size(); ++member)
    if (box(part.communicator, member).taken < part.operation) return false;
  own.call = call;
  own.elements = sent.size();
  std::ranges::copy(sent, own.data());
  own.sent = part.operation + 1;
  return true;
}

std::optional<ProcessExchange::Contributions> ProcessExchange::take(const Part& part) {
  const std::size_t members = places_[part.communicator].size();
  for (std::size_t member = 0; member < members; ++member)
    if (box(part.communicator, member).sent <= part.operation) return std::nullopt;
  Contributions all;
  for (std::size_t member = 0; member < members; ++member) {
    Box& one = box(part.communicator, member);
    all.calls.push_back(one.call);
    all.sent.emplace_back(one.data(), one.data() + one.elements);
  }
  box(part.communicator, part.member).taken = part.operation + 1;
  if (fault_ == Fault::swapped && all.sent[0].size() == all.sent[1].size()) std::swap(all.sent[0], all.sent[1]);
  if (fault_ == Fault::missing) std::ranges::fill(all.sent.back(), 0.0F);
  return all;
}

}  // namespace tandem::emulation
