// A library with the names of cuDNN's functions, and the version that FAKE_CUDNN_VERSION says.
#include <cstddef>
#include <cstdlib>

extern "C" {
std::size_t cudnnGetVersion() { return std::strtoul(std::getenv("FAKE_CUDNN_VERSION"), nullptr, 10); }
void cudnnGetErrorString() {}
void cudnnGetLastErrorString() {}
void cudnnCreate() {}
void cudnnSetStream() {}
void cudnnBackendCreateDescriptor() {}
void cudnnBackendDestroyDescriptor() {}
void cudnnBackendFinalize() {}
void cudnnBackendSetAttribute() {}
void cudnnBackendGetAttribute() {}
void cudnnBackendExecute() {}
}
