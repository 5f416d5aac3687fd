#include "runtime/cuda/nccl_call.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace tandem {
namespace {

NcclFunction function_of(OpKind op) {
  switch (op) {
    case OpKind::all_reduce:
    case OpKind::barrier:
      return NcclFunction::all_reduce;
    case OpKind::all_gather:
      return NcclFunction::all_gather;
    case OpKind::reduce_scatter:
      return NcclFunction::reduce_scatter;
    case OpKind::all_to_all:
      return NcclFunction::all_to_all;
    case OpKind::broadcast:
      return NcclFunction::broadcast;
    case OpKind::reduce:
      return NcclFunction::reduce;
    case OpKind::gather:
      return NcclFunction::gather;
    case OpKind::scatter:
      return NcclFunction::scatter;
    case OpKind::send:
      return NcclFunction::send;
    case OpKind::receive:
      return NcclFunction::receive;
    default:
      throw std::logic_error(std::string(operation(op).name) + " is no communication");
  }
}

NcclType type_of(DType type) {
  switch (type) {
    case DType::f32:
      return NcclType::f32;
    case DType::bf16:
      return NcclType::bf16;
    case DType::f16:
      return NcclType::f16;
    case DType::f8:
    case DType::u8:
      return NcclType::u8;
    case DType::i32:
      return NcclType::i32;
    case DType::f4:  // half a byte: NCCL counts whole ones
      break;
  }
  throw std::logic_error("a type that NCCL does not know");
}

/// The operands of one member: the buffer that it sends from and the one that it receives into.
class Operands {
 public:
  Operands(const Dag& dag, TaskId id) : dag_(dag), op_(dag.tasks[id].op) {
    for (const Operand& operand : dag.operands_of(id)) {
      if (operand.access() != Access::write) send_ = operand.buffer;
      if (operand.access() != Access::read) receive_ = operand.buffer;
    }
  }

  BufferId send() const { return send_; }
  BufferId receive() const { return receive_; }
  std::size_t sent() const { return elements(send_); }
  std::size_t received() const { return elements(receive_); }
  DType type() const { return dag_.buffers[send_ == no_id ? receive_ : send_].dtype; }

  void require(bool held) const {
    if (!held) throw std::logic_error(std::string(operation(op_).name) + ": the operands do not fit together");
  }

 private:
  const Dag& dag_;
  OpKind op_;
  BufferId send_ = no_id, receive_ = no_id;

  std::size_t elements(BufferId id) const {
    require(id != no_id);
    return static_cast<std::size_t>(dag_.buffers[id].shape.elements());
  }
};

std::size_t count_of(OpKind op, const Operands& operands, std::size_t members, bool root) {
  const bool only_sends = operands.receive() == no_id;
  const bool only_receives = operands.send() == no_id;
  switch (op) {
    case OpKind::all_reduce:
      operands.require(operands.send() == operands.receive());
      return operands.sent();
    case OpKind::all_gather:
      operands.require(operands.received() == members * operands.sent());
      return operands.sent();
    case OpKind::reduce_scatter:
      operands.require(operands.sent() == members * operands.received());
      return operands.received();
    case OpKind::all_to_all:
      operands.require(operands.sent() == operands.received() && operands.sent() % members == 0);
      return operands.sent() / members;
    case OpKind::broadcast:
      operands.require(root ? only_sends : only_receives);
      return root ? operands.sent() : operands.received();
    case OpKind::reduce:
      operands.require(root ? operands.send() == operands.receive() : only_sends);
      return operands.sent();
    case OpKind::gather:
      operands.require(root ? operands.received() == members * operands.sent() : only_sends);
      return operands.sent();
    case OpKind::scatter:
      operands.require(root ? operands.sent() == members * operands.received() : only_receives);
      return operands.received();
    case OpKind::send:
      operands.require(members == 2 && only_sends);
      return operands.sent();
    default:
      operands.require(members == 2 && only_receives);
      return operands.received();
  }
}

bool reduces(NcclFunction function) {
  return function == NcclFunction::all_reduce || function == NcclFunction::reduce_scatter || function == NcclFunction::reduce;
}

}  // namespace

NcclCall plan_call(const Dag& dag, TaskId id) {
  const Task& task = dag.tasks[id];
  NcclCall call{.function = function_of(task.op)};
  if (task.op == OpKind::barrier) {
    call.count = 1;
    call.own_memory = true;
    return call;
  }
  const std::vector<std::uint32_t>& members = dag.communicator_of(task).members;
  const auto own = std::ranges::find(members, dag.ranks[task.rank].world_rank) - members.begin();
  if (const auto* attributes = std::get_if<ReductionAttributes>(&dag.attributes[task.attributes])) {
    call.reduction = attributes->reduction;
    call.peer = attributes->root;
  }
  // The members of a pair are the source and the destination.
  if (task.op == OpKind::send) call.peer = 1;
  if (task.op == OpKind::receive) call.peer = 0;

  const Operands operands(dag, id);
  call.count = count_of(task.op, operands, members.size(), own == call.peer);
  call.send = operands.send();
  call.receive = operands.receive();
  // In place on the root; elsewhere what is sent is not looked at.
  if (task.op == OpKind::broadcast) call.send = call.receive = call.send == no_id ? call.receive : call.send;
  call.type = type_of(operands.type());
  if (call.type == NcclType::u8 && reduces(call.function)) {
    throw std::runtime_error(std::string(operation(task.op).name) + " '" + std::string(dag.name_of_task(id)) +
                             "': fp8 is moved between GPUs, not added up; reduce gradients in bf16 or fp32 (grad_compression)");
  }
  return call;
}

}  // namespace tandem
