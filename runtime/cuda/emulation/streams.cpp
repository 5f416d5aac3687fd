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

struct EmulatedGraph;

struct EmulatedEvent {
  int recorded = 0, happened = 0;   ///< how often, outside of graphs
  double date = 0;                  ///< of the last time; 0: it never happened
  EmulatedGraph* within = nullptr;  ///< recorded last while this was captured, as its `mark`
  std::size_t mark = 0;
};

using Marks = std::vector<bool>;

struct Item {
  std::function<bool(std::size_t launches)> work = {};  ///< false: it must be tried again; or
  EmulatedEvent* record = nullptr;                      ///< or
  EmulatedEvent* wait = nullptr;
  int times = 0;                      ///< of the event; 0: it is recorded by a graph
  std::shared_ptr<Marks> marks = {};  ///< of a launched graph, of which this
  std::size_t launches = 0;           ///< of that graph before
  std::size_t sets = 0, needs = 0;    ///< sets one or needs one, counted from 1
};

struct EmulatedStream {
  std::deque<Item> items;
  EmulatedGraph* capture = nullptr;
  int priority = 0;
};

/// What was captured, by stream. Dependencies between the streams are marks, which are cleared by every launch.
struct EmulatedGraph {
  std::vector<std::pair<EmulatedStream*, std::deque<Item>>> streams;
  std::size_t marks = 0;
  EmulatedStream* origin = nullptr;
  std::size_t number = 0;    ///< of the capture
  std::size_t launches = 0;  ///< so far

  std::deque<Item>& items_of(EmulatedStream& stream) {
    for (auto& [captured, items] : streams)
      if (captured == &stream) return items;
    return streams.emplace_back(&stream, std::deque<Item>()).second;
  }
};

struct Machine {
  std::set<EmulatedStream*> streams;
  std::mt19937 random{1};
  double clock = 0;
  std::set<EmulatedGraph*> captures;  ///< that have not ended
  std::size_t captures_begun = 0;
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
  if (item.needs > 0) return (*item.marks)[item.needs - 1];
  return item.wait == nullptr || item.wait->happened >= item.times;
}

/// Runs the first item of a stream that can go on; returns false where it waits for other processes.
bool run_first(EmulatedStream& stream) {
  Item item = std::move(stream.items.front());
  stream.items.pop_front();
  if (item.work && !item.work(item.launches)) {
    stream.items.push_front(std::move(item));
    return false;
  }
  machine().clock += 1e-3;
  if (item.sets > 0) (*item.marks)[item.sets - 1] = true;
  if (item.record != nullptr) {
    if (item.times > 0) item.record->happened = item.times;
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

/// Puts an item into a stream, or into the graph that is captured from it.
void add(EmulatedStream& stream, Item item) {
  (stream.capture != nullptr ? stream.capture->items_of(stream) : stream.items).push_back(std::move(item));
}

void give_way() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

void run_all() {
  for (Progress progress = run_one(); progress != Progress::ended; progress = run_one())
    if (progress == Progress::waits) give_way();
}

}  // namespace

void put(cudaStream_t stream, std::function<void()> work) {
  if (stream == nullptr) return work();
  put_until(stream, [work = std::move(work)](std::size_t) {
    work();
    return true;
  });
}

void put_until(cudaStream_t stream, std::function<bool(std::size_t launches)> attempt) {
  add(of(stream), {.work = std::move(attempt)});
}

std::size_t capture_of(cudaStream_t stream) {
  const EmulatedGraph* const capture = of(stream).capture;
  return capture == nullptr ? 0 : capture->number;
}

cudaError_t& last_error() {
  static cudaError_t error = cudaSuccess;
  return error;
}

int priority_of(cudaStream_t stream) { return of(stream).priority; }

void seed_streams(unsigned seed) { machine().random.seed(seed); }

}  // namespace tandem::emulation

using namespace tandem::emulation;

extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  auto* made = new EmulatedStream;
  made->priority = priority;
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

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  EmulatedGraph* const capture = of(stream).capture;
  if (capture == nullptr) {
    of(event).within = nullptr;
    add(of(stream), {.record = &of(event), .times = ++of(event).recorded});
  } else if (flags == cudaEventRecordExternal) {
    add(of(stream), {.record = &of(event)});
  } else {
    of(event).within = capture;
    of(event).mark = ++capture->marks;
    add(of(stream), {.sets = capture->marks});
  }
  return cudaSuccess;
}

/// A stream that waits for what is captured is captured, too.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  EmulatedGraph* const capture = of(event).within;
  if (of(stream).capture != nullptr && of(stream).capture != capture) return cudaErrorStreamCaptureIsolation;
  if (capture == nullptr) {
    add(of(stream), {.wait = &of(event), .times = of(event).recorded});
    return cudaSuccess;
  }
  if (!machine().captures.contains(capture)) return cudaErrorCapturedEvent;
  of(stream).capture = capture;
  add(of(stream), {.needs = of(event).mark});
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (of(begin).date == 0 || of(end).date == 0) return last_error() = cudaErrorInvalidResourceHandle;
  *milliseconds = static_cast<float>(of(end).date - of(begin).date);
  return cudaSuccess;
}

/// What a graph records counts for nothing until it happens.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return of(event).happened == of(event).recorded ? cudaSuccess : cudaErrorNotReady;
}

/// Lets the streams run, as far as they come without long waits for other processes.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (!machine().captures.empty()) return cudaErrorStreamCaptureUnsupported;
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
  if (!machine().captures.empty()) return cudaErrorStreamCaptureUnsupported;
  run_all();
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return cudaStreamSynchronize(nullptr); }

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (of(stream).capture != nullptr) return cudaErrorStreamCaptureUnsupported;
  auto* const graph = new EmulatedGraph;
  graph->origin = &of(stream);
  of(stream).capture = graph;
  graph->number = ++machine().captures_begun;
  machine().captures.insert(graph);
  return cudaSuccess;
}

/// Every other stream must have been joined: what it recorded last, the origin waits for.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  EmulatedGraph* const made = of(stream).capture;
  if (made == nullptr || made->origin != &of(stream)) return cudaErrorStreamCaptureUnmatched;
  machine().captures.erase(made);
  std::set<std::size_t> joined;
  for (const Item& item : made->items_of(of(stream))) joined.insert(item.needs);
  bool all_joined = true;
  for (auto& [captured, items] : made->streams) {
    captured->capture = nullptr;
    if (captured != made->origin)
      all_joined = all_joined && !items.empty() && items.back().sets > 0 && joined.contains(items.back().sets);
  }
  of(stream).capture = nullptr;
  *graph = reinterpret_cast<cudaGraph_t>(made);
  return all_joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, std::size_t* count) {
  *count = 0;
  for (const auto& [stream, items] : reinterpret_cast<EmulatedGraph*>(graph)->streams)
    for (const Item& item : items) *count += item.work || item.record != nullptr ? 1 : 0;
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

/// A graph begins when all before it in the stream has ended, and what comes after it waits for all of it. Its kernels run as in
/// streams of their own.
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  EmulatedGraph& graph = *reinterpret_cast<EmulatedGraph*>(executable);
  const auto marks = std::make_shared<Marks>(graph.marks + 1 + graph.streams.size(), false);
  std::size_t mark = graph.marks;
  const std::size_t begins = ++mark;
  of(stream).items.push_back({.marks = marks, .sets = begins});
  std::vector<std::size_t> ends;
  for (const auto& [captured, items] : graph.streams) {
    EmulatedStream& to = captured == graph.origin ? of(stream) : *captured;
    to.items.push_back({.marks = marks, .needs = begins});
    for (Item item : items) {
      item.marks = marks;
      item.launches = graph.launches;
      to.items.push_back(std::move(item));
    }
    to.items.push_back({.marks = marks, .sets = ++mark});
    ends.push_back(mark);
  }
  for (const std::size_t end : ends) of(stream).items.push_back({.marks = marks, .needs = end});
  ++graph.launches;
  return cudaSuccess;
}
}
