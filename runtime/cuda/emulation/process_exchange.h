#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/cuda/nccl_call.h"

namespace tandem::emulation {

/// What the emulated GPUs of several processes pass to each other: memory that all share, with a box for each communicator of a
/// DAG and each of its members. Made before the processes are forked, one at a time; each process' NcclWorld finds it.
class ProcessExchange {
 public:
  explicit ProcessExchange(const Dag& dag);
  ~ProcessExchange();
  ProcessExchange(const ProcessExchange&) = delete;
  ProcessExchange& operator=(const ProcessExchange&) = delete;

  static ProcessExchange& current();

  /// What goes wrong in all operations; chosen before the processes are forked.
  enum class Fault : std::uint8_t {
    none,
    swapped,  ///< what the first two members send, where it is as much
    missing,  ///< what the last member sends arrives as zeros
  };
  void break_by(Fault fault) { fault_ = fault; }

  /// A member of a communicator, in one of the operations that all its members take part in, numbered from 0.
  struct Part {
    CommunicatorId communicator = 0;
    std::size_t member = 0;
    std::uint64_t operation = 0;
  };
  struct Contributions {
    std::vector<NcclCall> calls;           ///< by member
    std::vector<std::vector<float>> sent;  ///< by member
  };

  /// Puts what the member sends into its box, once. Returns false while not all have taken what the operation before brought.
  bool send(const Part& part, const NcclCall& call, const std::vector<float>& sent);
  /// Takes what all have sent, once; the boxes may then be filled again. Returns nothing until all have sent.
  std::optional<Contributions> take(const Part& part);

 private:
  struct Box;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  Fault fault_ = Fault::none;
  std::vector<std::vector<std::size_t>> places_;  ///< of a box in the memory, by communicator and member

  Box& box(CommunicatorId communicator, std::size_t member);
};

}  // namespace tandem::emulation
