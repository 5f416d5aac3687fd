#pragma once

#include <cudnn_graph.h>

#include <memory>
#include <string>

namespace tandem {

// NOLINTNEXTLINE: the names are cuDNN's.
#define TANDEM_CUDNN_FUNCTIONS(function)                                                                          \
  function(cudnnGetVersion) function(cudnnGetErrorString) function(cudnnGetLastErrorString) function(cudnnCreate) \
      function(cudnnSetStream) function(cudnnBackendCreateDescriptor) function(cudnnBackendDestroyDescriptor)     \
          function(cudnnBackendFinalize) function(cudnnBackendSetAttribute) function(cudnnBackendGetAttribute)    \
              function(cudnnBackendExecute)

/// cuDNN, opened at run time where there is one. Its functions are members of the same names. It stays open until the process
/// ends.
class CudnnLibrary {
 public:
  /// `libcudnn.so.9` as the loader finds it; null where it is missing, or older than `oldest`, which is said once.
  /// TANDEM_CUDNN_LIBRARY names another file, which must then be there (std::runtime_error otherwise, one sentence), or is
  /// `none`: null.
  static std::unique_ptr<const CudnnLibrary> open();
  /// Throws std::runtime_error, one sentence, when the file is no such cuDNN.
  explicit CudnnLibrary(const std::string& file);

  /// Up to 9.15.0 the backward of attention is wrong where the keys are no multiple of 128, unless they are padded and masked,
  /// and 9.10.0 and 9.10.1 have errors of their own (cuDNN's release notes).
  static constexpr std::size_t oldest = 91501;

  std::string version_text() const;
  /// Throws std::runtime_error with cuDNN's own words.
  void check(cudnnStatus_t status, const char* call) const;

#define TANDEM_DECLARE(name) decltype(&::name) name = nullptr;
  TANDEM_CUDNN_FUNCTIONS(TANDEM_DECLARE)
#undef TANDEM_DECLARE

 private:
  std::size_t version_ = 0;
};

}  // namespace tandem
