#include "runtime/cuda/module/nccl_call_on.h"

#include <array>

namespace tandem {
namespace {

ncclDataType_t data_type(NcclType type) {
  constexpr std::array types{ncclFloat32, ncclBfloat16, ncclFloat16, ncclUint8, ncclInt32};
  return types.at(static_cast<std::size_t>(type));
}

ncclRedOp_t reduction_of(Reduction reduction) {
  constexpr std::array operations{ncclSum, ncclMax, ncclAvg};
  return operations.at(static_cast<std::size_t>(reduction));
}

}  // namespace

ncclResult_t call_on(const NcclLibrary& nccl, const NcclCall& call, const void* send, void* receive, ncclComm_t communicator,
                     cudaStream_t stream) {
  const ncclDataType_t type = data_type(call.type);
  const ncclRedOp_t reduction = reduction_of(call.reduction);
  switch (call.function) {
    case NcclFunction::all_reduce:
      return nccl.ncclAllReduce(send, receive, call.count, type, reduction, communicator, stream);
    case NcclFunction::all_gather:
      return nccl.ncclAllGather(send, receive, call.count, type, communicator, stream);
    case NcclFunction::reduce_scatter:
      return nccl.ncclReduceScatter(send, receive, call.count, type, reduction, communicator, stream);
    case NcclFunction::all_to_all:
      return nccl.ncclAlltoAll(send, receive, call.count, type, communicator, stream);
    case NcclFunction::broadcast:
      return nccl.ncclBroadcast(send, receive, call.count, type, call.peer, communicator, stream);
    case NcclFunction::reduce:
      return nccl.ncclReduce(send, receive, call.count, type, reduction, call.peer, communicator, stream);
    case NcclFunction::gather:
      return nccl.ncclGather(send, receive, call.count, type, call.peer, communicator, stream);
    case NcclFunction::scatter:
      return nccl.ncclScatter(send, receive, call.count, type, call.peer, communicator, stream);
    case NcclFunction::send:
      return nccl.ncclSend(send, call.count, type, call.peer, communicator, stream);
    case NcclFunction::receive:
      return nccl.ncclRecv(receive, call.count, type, call.peer, communicator, stream);
  }
  return ncclInvalidArgument;
}

}  // namespace tandem
