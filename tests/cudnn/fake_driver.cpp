// A driver without a GPU: what cuDNN asks of libcuda.so.1 while it compiles a kernel for a GPU that is only described. To load
// the compiled kernel succeeds, and nothing more happens. Without cuda.h, which gives some of these functions other names.

namespace {

constexpr int success = 0, stub_library = 34, not_supported = 801;
int something = 0;

int hand_out(void** handle) {
  *handle = &something;
  return success;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return stub_library; }  // what NVRTC and cuDNN go on without a GPU for
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return success;
}
int cuGetErrorString(int, const char** text) {
  *text = "no driver, but a fake one";
  return success;
}
int cuGetErrorName(int error, const char** text) { return cuGetErrorString(error, text); }

int cuDeviceGetCount(int* count) {
  *count = 1;
  return success;
}
int cuDeviceGet(int* device, int) {
  *device = 0;
  return success;
}
int cuCtxGetCurrent(void** context) { return hand_out(context); }
int cuCtxPushCurrent(void*) { return success; }
int cuCtxPopCurrent(void** context) { return hand_out(context); }

int cuLibraryLoadData(void** library, const void*, void*, void**, unsigned, void*, void**, unsigned) { return hand_out(library); }
int cuLibraryUnload(void*) { return success; }
int cuLibraryGetKernel(void** kernel, void*, const char*) { return hand_out(kernel); }
int cuKernelGetAttribute(int* value, int, void*, int) {
  *value = 0;
  return success;
}
int cuKernelSetAttribute(int, int, void*, int) { return success; }

// Looked up, never called.
#define TANDEM_MISSING(name) \
  int name() { return not_supported; }
TANDEM_MISSING(cuCtxGetLimit)
TANDEM_MISSING(cuStreamGetCtx)
TANDEM_MISSING(cuLibraryLoadFromFile)
TANDEM_MISSING(cuLinkCreate)
TANDEM_MISSING(cuLinkAddData)
TANDEM_MISSING(cuLinkComplete)
TANDEM_MISSING(cuLinkDestroy)
TANDEM_MISSING(cuLaunchKernel)
TANDEM_MISSING(cuLaunchKernelEx)
TANDEM_MISSING(cuLaunchCooperativeKernel)
TANDEM_MISSING(cuOccupancyMaxPotentialClusterSize)

}  // extern "C"
