#pragma once

#include <nccl.h>

#include <string>

namespace tandem {

// NOLINTNEXTLINE: the names are NCCL's.
#define TANDEM_NCCL_FUNCTIONS(function)                                                                                          \
  function(ncclGetVersion) function(ncclGetErrorString) function(ncclGetLastError) function(ncclGetUniqueId)                     \
      function(ncclCommInitRankConfig) function(ncclCommSplit) function(ncclCommGetAsyncError) function(ncclCommFinalize)        \
          function(ncclCommDestroy) function(ncclCommAbort) function(ncclMemAlloc) function(ncclMemFree)                         \
              function(ncclCommRegister) function(ncclCommDeregister) function(ncclGroupStart) function(ncclGroupEnd)            \
                  function(ncclAllReduce) function(ncclAllGather) function(ncclReduceScatter) function(ncclAlltoAll)             \
                      function(ncclBroadcast) function(ncclReduce) function(ncclGather) function(ncclScatter) function(ncclSend) \
                          function(ncclRecv)

/// NCCL, opened at run time: `libnccl.so.2` as the loader finds it, or the file that TANDEM_NCCL_LIBRARY names. Its functions are
/// members of the same names. It stays open until the process ends.
class NcclLibrary {
 public:
  /// Throws std::runtime_error, one sentence with the remedy, when it cannot be opened, or is older than `oldest`.
  NcclLibrary();

  /// The first with ncclAlltoAll, ncclGather and ncclScatter.
  static constexpr int oldest = NCCL_VERSION(2, 28, 0);

  int version() const { return version_; }
  /// Returns what NCCL says of a result, with its last warning where there is one.
  std::string what_is(ncclResult_t result) const;

#define TANDEM_DECLARE(name) decltype(&::name) name = nullptr;
  TANDEM_NCCL_FUNCTIONS(TANDEM_DECLARE)
#undef TANDEM_DECLARE

 private:
  int version_ = 0;
};

}  // namespace tandem
