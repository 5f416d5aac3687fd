// A library with NCCL's functions that moves no data: it records what it is asked, one line per call, and makes communicators as
// NCCL makes non-blocking ones, on a thread of its own that writes the handle when it is done.
// FAKE_NCCL=old: an old version; hang: no communicator gets ready; ill: each gets an error of its own once it has been used;
// full: there is no memory; refuse: memory cannot be registered with "dp".
// A collective is under way when its call returns, or done, as it happens.
#include <nccl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>

struct ncclComm {
  std::string name;
  std::atomic<ncclResult_t> state = ncclInProgress;
};

namespace {

constexpr std::chrono::milliseconds made_after(5);
constexpr std::chrono::microseconds used_after(300);

std::mutex mutex;
std::string log_text;

void record(const std::string& line) {
  const std::scoped_lock lock(mutex);
  log_text += line + "\n";
}

bool behaves(const std::string& how) {
  const char* const mode = std::getenv("FAKE_NCCL");
  return mode != nullptr && mode == how;
}

/// Two calls in three, drawn anew in each process.
bool falls_behind() {
  static std::mt19937 random(static_cast<unsigned>(::getpid()));
  const std::scoped_lock lock(mutex);
  return random() % 3 != 0;
}

void make(std::atomic<ncclResult_t>* parent, ncclComm_t* handle, const std::string& name) {
  if (behaves("hang")) {
    if (parent != nullptr) *parent = ncclInProgress;
    return;
  }
  if (parent != nullptr) *parent = ncclInProgress;
  std::thread([=] {
    std::this_thread::sleep_for(made_after);
    if (handle != nullptr) {
      auto* const communicator = new ncclComm{.name = name};
      communicator->state = ncclSuccess;
      std::atomic_ref(*handle).store(communicator);
    }
    if (parent != nullptr) *parent = ncclSuccess;
  }).detach();
}

ncclResult_t use(ncclComm_t communicator, const std::string& what) {
  record(what + " on " + communicator->name);
  if (communicator->state == ncclInProgress) return ncclInvalidUsage;  // the call before has not ended
  if (behaves("ill")) communicator->state = ncclRemoteError;
  if (behaves("ill") || !falls_behind()) return ncclSuccess;
  communicator->state = ncclInProgress;
  std::thread([communicator] {
    std::this_thread::sleep_for(used_after);
    communicator->state = ncclSuccess;
  }).detach();
  return ncclInProgress;
}

template <typename... Values>
std::string line(const Values&... values) {
  std::ostringstream text;
  ((text << values << ' '), ...);
  std::string made = text.str();
  made.pop_back();
  return made;
}

std::string type_name(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return "f32";
    case ncclBfloat16:
      return "bf16";
    case ncclFloat16:
      return "f16";
    case ncclUint8:
      return "u8";
    case ncclInt32:
      return "i32";
    default:
      return "another type";
  }
}

std::string reduction_name(ncclRedOp_t operation) {
  return operation == ncclSum ? "sum" : operation == ncclMax ? "max" : operation == ncclAvg ? "avg" : "another reduction";
}

}  // namespace

extern "C" {

const char* fake_nccl_log() {
  static thread_local std::string copy;
  const std::scoped_lock lock(mutex);
  copy = log_text;
  return copy.c_str();
}

ncclResult_t ncclGetVersion(int* version) {
  *version = behaves("old") ? NCCL_VERSION(2, 27, 7) : NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "remote error"; }
const char* ncclGetLastError(ncclComm_t) { return "a cable broke"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  for (std::size_t i = 0; i < sizeof id->internal; ++i) id->internal[i] = static_cast<char>(i);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  bool known = true;
  for (std::size_t i = 0; i < sizeof id.internal; ++i) known = known && id.internal[i] == static_cast<char>(i);
  record(line("init", rank, "of", ranks, known ? "by rank 0's id" : "by an unknown id", config->blocking == 0 ? "" : "blocking"));
  make(nullptr, handle, config->commName);
  return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int colour, int key, ncclComm_t* handle, ncclConfig_t* config) {
  const bool shares = config->splitShare == 1 || config->splitShare == NCCL_CONFIG_UNDEF_INT;
  record(line("split", config->commName, colour, key, shares ? "sharing" : "apart", config->blocking == 0 ? "" : "blocking"));
  make(&parent->state, colour == NCCL_SPLIT_NOCOLOR ? nullptr : handle, config->commName);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  *state = communicator->state;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  record("finalize " + communicator->name);
  make(&communicator->state, nullptr, "");
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  record("destroy " + communicator->name);
  delete communicator;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  if (communicator != nullptr) record("abort " + communicator->name);
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** memory, size_t bytes) {
  record(line("allocate", bytes));
  if (behaves("full")) return ncclUnhandledCudaError;
  *memory = std::malloc(bytes);
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void* memory) {
  record("free");
  std::free(memory);
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(ncclComm_t communicator, void* memory, size_t bytes, void** handle) {
  record(line("register", bytes, memory != nullptr ? "with" : "of nothing with", communicator->name));
  if (behaves("refuse") && communicator->name == "dp") return ncclInvalidUsage;
  *handle = communicator;
  make(&communicator->state, nullptr, "");
  return ncclInProgress;
}
ncclResult_t ncclCommDeregister(ncclComm_t communicator, void* handle) {
  record(line("deregister", handle == communicator ? "from" : "by an unknown handle from", communicator->name));
  make(&communicator->state, nullptr, "");
  return ncclInProgress;
}

ncclResult_t ncclGroupStart() {
  record("group start");
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  record("group end");
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t) {
  return use(communicator,
             line("all-reduce", send == receive ? "in place" : "apart", count, type_name(type), reduction_name(operation)));
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t) {
  return use(communicator, line("all-gather", send, receive, count, type_name(type)));
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                               ncclComm_t communicator, cudaStream_t) {
  return use(communicator, line("reduce-scatter", send, receive, count, type_name(type), reduction_name(operation)));
}
ncclResult_t ncclAlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t communicator,
                          cudaStream_t) {
  return use(communicator, line("all-to-all", send, receive, count, type_name(type)));
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t communicator,
                           cudaStream_t) {
  return use(communicator, line("broadcast", send, receive, count, type_name(type), "root", root));
}
ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t operation, int root,
                        ncclComm_t communicator, cudaStream_t) {
  return use(communicator, line("reduce", send, receive, count, type_name(type), reduction_name(operation), "root", root));
}
ncclResult_t ncclGather(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t communicator,
                        cudaStream_t) {
  return use(communicator, line("gather", send, receive, count, type_name(type), "root", root));
}
ncclResult_t ncclScatter(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t communicator,
                         cudaStream_t) {
  return use(communicator, line("scatter", send, receive, count, type_name(type), "root", root));
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator, cudaStream_t) {
  return use(communicator, line("send", send, count, type_name(type), "to", peer));
}
ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator, cudaStream_t) {
  return use(communicator, line("receive", receive, count, type_name(type), "from", peer));
}

}  // extern "C"
