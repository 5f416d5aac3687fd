#include "runtime/cuda/module/nccl_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "runtime/cuda/emulation/nccl_functions.h"
#include "runtime/cuda/emulation/process_exchange.h"
#include "runtime/cuda/emulation/streams.h"
#include "runtime/cuda/module/number_types.h"
#include "runtime/cuda/nccl_call.h"

// The collectives of a DAG between forked processes, on emulated streams.

namespace tandem {
namespace {

using emulation::ProcessExchange;

/// Calls `visit` with a number of the type.
template <typename Visit>
void with_type(NcclType type, const Visit& visit) {
  switch (type) {
    case NcclType::f32:
      return visit(float{});
    case NcclType::bf16:
      return visit(Bf16{});
    case NcclType::f16:
      return visit(F16{});
    case NcclType::u8:
      return visit(std::uint8_t{});
    case NcclType::i32:
      return visit(std::int32_t{});
  }
}

template <typename Element>
float as_float(Element element) {
  if constexpr (std::is_integral_v<Element>)
    return static_cast<float>(element);
  else
    return to_float(element);
}

template <typename Element>
Element as_element(float number) {
  if constexpr (std::is_integral_v<Element>)
    return static_cast<Element>(number);
  else
    return from_float<Element>(number);
}

std::vector<float> read(NcclType type, const void* from, std::size_t elements) {
  std::vector<float> numbers(elements);
  with_type(type, [&]<typename Element>(Element) {
    std::ranges::transform(static_cast<const Element*>(from), static_cast<const Element*>(from) + elements, numbers.begin(),
                           as_float<Element>);
  });
  return numbers;
}

void write(NcclType type, const std::vector<float>& numbers, void* to) {
  with_type(type,
            [&]<typename Element>(Element) { std::ranges::transform(numbers, static_cast<Element*>(to), as_element<Element>); });
}

class EmulatedWorld final : public NcclWorld {
 public:
  EmulatedWorld(ControlPlane& control, const Launch& launch, const Dag& dag, void* barrier_memory)
      : control_(control),
        dag_(dag),
        world_rank_(dag.ranks[launch.rank].world_rank),
        barrier_memory_(barrier_memory),
        exchange_(ProcessExchange::current()),
        issued_on_(dag.communicators.size(), 0) {}

  ~EmulatedWorld() override {
    EXPECT_TRUE(registered_.empty()) << "memory outlives the communicators it is registered with";
    EXPECT_TRUE(is_closed_ || std::uncaught_exceptions() > 0 || control_.failure())
        << "communicators are aborted after a run that succeeded";
  }

  void issue(TaskId task, const std::function<void*(BufferId)>& address, cudaStream_t stream) override {
    const CommunicatorId communicator = dag_.groups[dag_.tasks[task].group].communicator;
    const std::vector<std::uint32_t>& members = dag_.communicators[communicator].members;
    const auto member = static_cast<std::size_t>(std::ranges::find(members, world_rank_) - members.begin());
    const NcclCall call = plan_call(dag_, task);
    const auto place = [&](BufferId id) {
      return call.own_memory ? barrier_memory_ : id == no_id ? nullptr : require_registered(address(id));
    };
    const Operation operation{.call = call,
                              .part = {communicator, member, issued_on_[communicator]++},
                              .turn = issued_++,
                              .send = place(call.send),
                              .elements = elements_read(call, member, members.size()),
                              .receive = place(call.receive)};
    emulation::put_until(stream, [this, operation, graph = graph_of(stream, communicator), held = issued_calls_](
                                     std::size_t launches) { return attempt(in_launch(operation, graph.get(), launches)); });
  }

  std::unique_ptr<NcclMemory> allocate(std::size_t bytes) override { return std::make_unique<Memory>(registered_, bytes); }
  void close() override {
    EXPECT_EQ(issued_calls_.use_count(), 1) << "a CUDA graph with collectives outlives its communicators, which wait for its end";
    is_closed_ = true;
  }

 private:
  /// All of a process's registered memory; there is one at a time.
  class Memory final : public NcclMemory {
   public:
    Memory(std::span<std::byte>& registered, std::size_t bytes) : registered_(registered), bytes_(bytes) { registered_ = bytes_; }
    ~Memory() override { registered_ = {}; }
    std::byte* data() const override { return registered_.data(); }

   private:
    std::span<std::byte>& registered_;
    std::vector<std::byte> bytes_;
  };

  struct Operation {
    NcclCall call;
    ProcessExchange::Part part;
    std::uint64_t turn = 0;  ///< among all that this process issues
    const void* send = nullptr;
    std::size_t elements = 0;  ///< that are sent
    void* receive = nullptr;
  };

  /// What one graph has captured, all of which every launch of it issues again.
  struct CapturedCalls {
    std::size_t capture = 0, launches = 0;  ///< launches: after the first
    std::uint64_t all = 0;
    std::map<CommunicatorId, std::uint64_t> on;
  };

  ControlPlane& control_;
  const Dag& dag_;
  std::uint32_t world_rank_;
  std::shared_ptr<CapturedCalls> captured_;  ///< last
  void* barrier_memory_;
  ProcessExchange& exchange_;
  std::vector<std::uint64_t> issued_on_;  ///< by communicator
  std::uint64_t issued_ = 0, ended_ = 0;
  std::shared_ptr<int> issued_calls_ = std::make_shared<int>();  ///< held by each that has not ended, or is part of a graph
  std::span<std::byte> registered_;
  bool is_closed_ = false;

  void* require_registered(void* address) const {
    const auto* const byte = static_cast<const std::byte*>(address);
    EXPECT_TRUE(registered_.data() <= byte && byte < registered_.data() + registered_.size())
        << "a buffer that NCCL did not allocate";
    return address;
  }

  /// Counts a call to the graph that is captured, if one is.
  std::shared_ptr<CapturedCalls> graph_of(cudaStream_t stream, CommunicatorId communicator) {
    const std::size_t capture = emulation::capture_of(stream);
    if (capture == 0) return nullptr;
    if (!captured_ || captured_->capture != capture) {
      captured_ = std::make_shared<CapturedCalls>();
      captured_->capture = capture;
    }
    ++captured_->all;
    ++captured_->on[communicator];
    return captured_;
  }

  /// The first of a graph's calls that a launch attempts issues them all.
  Operation in_launch(Operation operation, CapturedCalls* graph, std::size_t launches) {
    if (launches == 0) return operation;
    if (launches > graph->launches) {
      graph->launches = launches;
      issued_ += graph->all;
      for (const auto& [communicator, calls] : graph->on) issued_on_[communicator] += calls;
    }
    operation.turn += launches * graph->all;
    operation.part.operation += launches * graph->on.at(operation.part.communicator);
    return operation;
  }

  /// Runs the operations one after the other in the order of the calls, as if each filled the GPU (NCCL_LAUNCH_ORDER_IMPLICIT=1).
  /// When the run has failed they end at once, as when they are aborted.
  bool attempt(const Operation& operation) {
    if (control_.failure()) return true;
    if (operation.turn != ended_) return false;
    if (!exchange_.send(operation.part, operation.call, read(operation.call.type, operation.send, operation.elements)))
      return false;
    const std::optional<ProcessExchange::Contributions> all = exchange_.take(operation.part);
    if (!all) return false;
    ++ended_;
    if (belong_together(all->calls))
      write(operation.call.type, received(operation.call, all->sent, operation.part.member), operation.receive);
    else
      control_.fail("the members of '" + dag_.communicators[operation.part.communicator].name + "' call different functions");
    return true;
  }
};

}  // namespace

std::unique_ptr<NcclWorld> make_nccl_world(ControlPlane& control, const Launch& launch, const Dag& dag, void* barrier_memory,
                                           const NcclWorldOptions&) {
  return std::make_unique<EmulatedWorld>(control, launch, dag, barrier_memory);
}

}  // namespace tandem
