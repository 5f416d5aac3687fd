#include "runtime/cuda/emulation/streams.h"

#include <chrono>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::emulation {
namespace {

struct EmulatedEvent {
  int recorded = 0, happened = 0;  ///< how often
  double date = 0;                 ///< of the last time
};

struct Item {
  std::function<bool()> work = {};  ///< false: it must be tried again; or
  EmulatedEvent* record = nullptr;  ///< or
  EmulatedEvent* wait = nullptr;
  int times = 0;  ///< of the event
};

struct EmulatedStream {
  std::deque<Item> items;
};

struct EmulatedGraph {
  std::vector<std::pair<EmulatedStream*, std::deque<Item>>> streams;
};

struct Machine {
  std::set<EmulatedStream*> streams;
  std::mt19937 random{1};
  double clock = 0;
  bool captures = false;
};

Machine& machine() {
  static Machine one;
  return one;
}

EmulatedStream& of(cudaStream_t stream) { return *reinterpret_cast<EmulatedStream*>(stream); }
EmulatedEvent& of(cudaEvent_t event) { return *reinterpret_cast<EmulatedEvent*>(event); }

bool can_go_on(const EmulatedStream& stream) {
  if (stream.items.empty()) return false;
  const Item& item = stream.items.front();
  return item.wait == nullptr || item.wait->happened >= item.times;
}

/// Runs the first item of a stream that can go on; returns false where it waits for other processes.
bool run_first(EmulatedStream& stream) {
  Item item = std::move(stream.items.front());
  stream.items.pop_front();
  if (item.work && !item.work()) {
    stream.items.push_front(std::move(item));
    return false;
  }
  machine().clock += 1e-3;
  if (item.record != nullptr) {
    item.record->happened = item.times;
    item.record->date = machine().clock;
  }
  return true;
}

enum class Progress {
  ran,    ///< an item
  waits,  ///< for other processes
  ended,  ///< nothing is left
};

/// Runs an item of a stream that is drawn at random from those that can go on.
Progress run_one() {
  Machine& all = machine();
  std::vector<EmulatedStream*> ready;
  bool left = false;
  for (EmulatedStream* stream : all.streams) {
    if (can_go_on(*stream)) ready.push_back(stream);
    left = left || !stream->items.empty();
  }
  if (ready.empty() && left) throw std::runtime_error("the streams wait for each other");
  if (ready.empty()) return Progress::ended;
  const std::size_t drawn = all.random() % ready.size();
  for (std::size_t i = 0; i < ready.size(); ++i)
    if (run_first(*ready[(drawn + i) % ready.size()])) return Progress::ran;
  return Progress::waits;
}

void give_way() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

void run_all() {
  for (Progress progress = run_one(); progress != Progress::ended; progress = run_one())
    if (progress == Progress::waits) give_way();
}

}  // namespace

void put(cudaStream_t stream, std::function<void()> work) {
  if (stream == nullptr) return work();
  put_until(stream, [work = std::move(work)] {
    work();
    return true;
  });
}

void put_until(cudaStream_t stream, std::function<bool()> attempt) { of(stream).items.push_back({.work = std::move(attempt)}); }

void seed_streams(unsigned seed) { machine().random.seed(seed); }

}  // namespace tandem::emulation

using namespace tandem::emulation;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  auto* made = new EmulatedStream;
  machine().streams.insert(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  machine().streams.erase(&of(stream));
  delete &of(stream);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new EmulatedEvent);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &of(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  of(stream).items.push_back({.record = &of(event), .times = ++of(event).recorded});
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  of(stream).items.push_back({.wait = &of(event), .times = of(event).recorded});
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = static_cast<float>(of(end).date - of(begin).date);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return of(event).happened == of(event).recorded ? cudaSuccess : cudaErrorNotReady;
}

/// Lets the streams run, as far as they come without long waits for other processes.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (machine().captures) return cudaErrorStreamCaptureUnsupported;
  constexpr int longest_wait = 200;
  for (int waited = 0; waited < longest_wait;) {
    const Progress progress = run_one();
    if (progress == Progress::ended) break;
    if (progress == Progress::ran) continue;
    ++waited;
    give_way();
  }
  return of(stream).items.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
  if (machine().captures) return cudaErrorStreamCaptureUnsupported;
  run_all();
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return cudaStreamSynchronize(nullptr); }

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  run_all();
  machine().captures = true;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  auto made = std::make_unique<EmulatedGraph>();
  for (EmulatedStream* stream : machine().streams) made->streams.emplace_back(stream, std::exchange(stream->items, {}));
  machine().captures = false;
  *graph = reinterpret_cast<cudaGraph_t>(made.release());
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = reinterpret_cast<cudaGraphExec_t>(new EmulatedGraph(*reinterpret_cast<EmulatedGraph*>(graph)));
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<EmulatedGraph*>(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete reinterpret_cast<EmulatedGraph*>(executable);
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

/// A capture is launched once, because its events count on.
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  for (const auto& [stream, items] : reinterpret_cast<EmulatedGraph*>(executable)->streams)
    stream->items.insert(stream->items.end(), items.begin(), items.end());
  return cudaSuccess;
}
}
