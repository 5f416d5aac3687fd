#pragma once

#include "runtime/cuda/module/nccl_library.h"
#include "runtime/cuda/nccl_call.h"

namespace tandem {

/// Puts a planned call on a stream. `send` and `receive`: where the call's buffers lie.
ncclResult_t call_on(const NcclLibrary& nccl, const NcclCall& call, const void* send, void* receive, ncclComm_t communicator,
                     cudaStream_t stream);

}  // namespace tandem
