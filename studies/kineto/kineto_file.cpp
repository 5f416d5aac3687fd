#include "studies/kineto/kineto_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "runtime/base/input_error.h"
#include "runtime/base/lower_case.h"

namespace tandem::studies {
namespace {

namespace fs = std::filesystem;

constexpr const char* expected_trace = "expected a trace that torch.profiler exported as JSON, with its kernels";

[[noreturn]] void fail(const std::string& path, const std::string& sentence) { throw InputError({path, 0, 0}, sentence); }

/// zlib reads files that are not compressed as they are.
std::string inflated(const std::string& path) {
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (!file || fs::is_directory(path)) fail(path, std::string("cannot be read, ") + expected_trace);
  std::string text;
  std::vector<char> chunk(1 << 20);
  for (;;) {
    const int got = gzread(file.get(), chunk.data(), static_cast<unsigned>(chunk.size()));
    if (got < 0) fail(path, "is a damaged gzip file; expected all of what torch.profiler wrote");
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

/// In the year 2096, in microseconds: the sum of two is one of nanoseconds in 64 bits.
constexpr std::int64_t latest_us = 4'000'000'000'000'000;

/// Microseconds with as many digits as the file has: traces count them since 1970, which doubles hold to a quarter of one alone.
/// Throws std::invalid_argument or std::out_of_range.
std::int64_t nanoseconds(const std::string& text) {
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, whole);
  const bool has_exponent = error != std::errc() || (rest != end && *rest != '.');
  const double value = has_exponent ? std::stod(text) : static_cast<double>(whole);
  if (!(std::abs(value) <= static_cast<double>(latest_us))) throw std::out_of_range("a time");
  if (has_exponent) return static_cast<std::int64_t>(value * 1e3);
  std::int64_t fraction = 0, digits = 0;
  for (const char* at = rest == end ? end : rest + 1; digits < 3; ++digits)
    fraction = 10 * fraction + (at < end && std::isdigit(static_cast<unsigned char>(*at)) ? *at++ - '0' : 0);
  return 1000 * whole + (text.front() == '-' ? -fraction : fraction);
}

/// An event's members that a trace is read for; of its `args` by the names that Kineto gives them.
struct Event {
  std::map<std::string, std::string, std::less<>> members, args;

  std::string_view text(std::string_view name) const {
    const auto found = members.find(name);
    return found == members.end() ? std::string_view() : std::string_view(found->second);
  }
  std::string_view arg(std::string_view name) const {
    const auto found = args.find(name);
    return found == args.end() ? std::string_view() : std::string_view(found->second);
  }
  std::int64_t number(std::string_view name) const {
    std::int64_t value = 0;
    const std::string_view digits = arg(name);
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }
  std::int64_t start_ns() const { return nanoseconds(std::string(text("ts"))); }
  std::int64_t end_ns() const {
    const std::int64_t duration = text("dur").empty() ? 0 : nanoseconds(std::string(text("dur")));
    if (duration < 0) throw std::out_of_range("a duration below zero");
    return start_ns() + duration;
  }
};

/// Walks through a trace's JSON without keeping it: gives each event to `on_event`, and what stands beside the events to
/// `on_fact` by its path ("distributedInfo.rank").
class TraceReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  TraceReader(std::function<void(const Event&)> on_event, std::function<void(const std::string&, const std::string&)> on_fact)
      : on_event_(std::move(on_event)), on_fact_(std::move(on_fact)) {}

  std::string error;
  bool has_events = false;

  bool null() override { return value(""); }
  bool boolean(bool is) override { return value(is ? "true" : "false"); }
  bool number_integer(number_integer_t number) override { return value(std::to_string(number)); }
  bool number_unsigned(number_unsigned_t number) override { return value(std::to_string(number)); }
  bool number_float(number_float_t, const string_t& text) override { return value(text); }
  bool string(string_t& text) override { return value(std::move(text)); }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& name) override {
    path_.back() = std::move(name);
    return true;
  }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override {
    // Some tools write the events alone.
    if (path_.empty() || (path_.size() == 1 && path_.front() == "traceEvents")) {
      events_depth_ = path_.size() + 1;
      has_events = true;
    }
    return enter();
  }
  bool end_object() override { return leave(); }
  bool end_array() override {
    if (path_.size() == events_depth_) events_depth_ = 0;
    return leave();
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error = "is no JSON from byte " + std::to_string(position) + " on; " + expected_trace;
    return false;
  }

 private:
  std::function<void(const Event&)> on_event_;
  std::function<void(const std::string&, const std::string&)> on_fact_;
  std::vector<std::string> path_;  ///< keys; of arrays empty
  std::size_t events_depth_ = 0;   ///< of `path_` among the events; 0: not there
  Event event_;

  bool enter() {
    path_.emplace_back();
    return true;
  }
  bool leave() {
    path_.pop_back();
    if (events_depth_ > 0 && path_.size() == events_depth_) {
      on_event_(event_);
      event_ = {};
    }
    return true;
  }
  bool value(std::string text) {
    if (events_depth_ == 0) {
      std::string name;
      for (const std::string& part : path_) name += part.empty() ? "" : (name.empty() ? "" : ".") + part;
      on_fact_(name, text);
    } else if (path_.size() == events_depth_ + 1) {
      event_.members[path_.back()] = std::move(text);
    } else if (path_.size() == events_depth_ + 2 && path_[events_depth_] == "args") {
      event_.args[path_.back()] = std::move(text);
    }
    return true;
  }
};

/// "[0, 1, 2]", which Kineto shortens to "[0, 1, ..., 7]": then nothing.
std::vector<std::uint32_t> ranks_in(std::string_view list) {
  std::vector<std::uint32_t> ranks;
  if (list.find("...") != std::string_view::npos) return ranks;
  for (const char* at = list.data(); at < list.data() + list.size();) {
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(at, list.data() + list.size(), rank);
    if (error == std::errc()) ranks.push_back(rank);
    at = error == std::errc() ? end : at + 1;
  }
  return ranks;
}

/// Spans of one CPU thread in which it was about one thing.
class ThreadSpans {
 public:
  void add(std::string_view thread, std::int64_t start, std::int64_t end) {
    by_thread_[std::string(thread)].push_back({start, end});
  }
  bool contain(const std::string& thread, std::int64_t at) {
    const auto found = by_thread_.find(thread);
    if (found == by_thread_.end()) return false;
    std::vector<Span>& spans = found->second;
    if (!sorted_) sort_all();
    const auto after = std::ranges::upper_bound(spans, at, {}, &Span::start);
    return after != spans.begin() && at <= (after - 1)->end;
  }

 private:
  struct Span {
    std::int64_t start, end;
  };
  std::unordered_map<std::string, std::vector<Span>> by_thread_;
  bool sorted_ = false;

  /// Each then ends where the longest of those before it does.
  void sort_all() {
    for (auto& [thread, spans] : by_thread_) {
      std::ranges::sort(spans, {}, &Span::start);
      for (std::size_t i = 1; i < spans.size(); ++i) spans[i].end = std::max(spans[i].end, spans[i - 1].end);
    }
    sorted_ = true;
  }
};

class Collector {
 public:
  explicit Collector(std::string file) { trace_.file = std::move(file); }

  void add(const Event& event) {
    if (event.text("ph") != "X") return;
    const std::string category = lower_case(std::string(event.text("cat")));
    const std::string_view name = event.text("name");
    if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") return add_kernel(event, category);
    if (category == "cuda_runtime" || category == "cuda_driver") {
      launches_[std::string(event.arg("correlation"))] = {std::string(event.text("tid")), event.start_ns()};
    } else if (category == "cpu_op" && name.starts_with("autograd::engine::evaluate_function")) {
      backward_.add(event.text("tid"), event.start_ns(), event.end_ns());
    } else if (category == "user_annotation" && name.starts_with("Optimizer.step")) {
      optimizer_.add(event.text("tid"), event.start_ns(), event.end_ns());
    } else if (category == "user_annotation" && name.starts_with("ProfilerStep#")) {
      iterations_.push_back({std::string(name), event.start_ns(), event.end_ns()});
    }
  }
  void add_fact(const std::string& name, const std::string& value) {
    if (name == "distributedInfo.rank") trace_.rank = static_cast<std::uint32_t>(std::stoul(value));
    if (name == "distributedInfo.world_size") trace_.world_size = std::stoll(value);
    if (name == "deviceProperties.name" && trace_.device.empty()) trace_.device = value;
  }

  KinetoTrace take() && {
    if (kernels_.empty()) fail(trace_.file, "has no kernel of a GPU; expected a trace with ProfilerActivity.CUDA");
    std::int64_t first = kernels_.front().start;
    for (const Kernel& kernel : kernels_) first = std::min(first, kernel.start);
    for (const Span& iteration : iterations_) first = std::min(first, iteration.start);
    const auto seconds = [&](std::int64_t ns) { return static_cast<double>(ns - first) * 1e-9; };
    std::ranges::stable_sort(kernels_, {}, &Kernel::start);
    for (Kernel& kernel : kernels_) {
      kernel.record.start = seconds(kernel.start);
      kernel.record.end = seconds(kernel.end);
      if (const auto launch = launches_.find(kernel.correlation); launch != launches_.end() && !kernel.correlation.empty()) {
        const auto& [thread, at] = launch->second;
        kernel.record.launched = seconds(at);
        if (!kernel.record.phase)
          kernel.record.phase = optimizer_.contain(thread, at)  ? Phase::optimizer
                                : backward_.contain(thread, at) ? Phase::backward_input
                                                                : Phase::forward;
      }
      trace_.kernels.push_back(std::move(kernel.record));
    }
    std::ranges::stable_sort(iterations_, {}, &Span::start);
    for (Span& iteration : iterations_)
      trace_.iterations.push_back({std::move(iteration.name), seconds(iteration.start), seconds(iteration.end)});
    return std::move(trace_);
  }

 private:
  struct Kernel {
    RecordedKernel record;
    std::int64_t start, end;
    std::string correlation;
  };
  struct Span {
    std::string name;
    std::int64_t start, end;
  };
  KinetoTrace trace_;
  std::vector<Kernel> kernels_;
  std::vector<Span> iterations_;
  std::unordered_map<std::string, std::pair<std::string, std::int64_t>> launches_;  ///< by correlation: thread and time
  ThreadSpans backward_, optimizer_;

  void add_kernel(const Event& event, const std::string& category) {
    Kernel kernel{
        .record = {}, .start = event.start_ns(), .end = event.end_ns(), .correlation = std::string(event.arg("correlation"))};
    kernel.record.name = event.text("name");
    kernel.record.operation = event.arg("op");
    if (category == "gpu_memcpy") kernel.record.kind = RecordedKernel::Kind::copy;
    if (category == "gpu_memset") kernel.record.kind = RecordedKernel::Kind::fill;
    kernel.record.stream = event.number("stream");
    if (const std::string_view phase = event.arg("phase"); !phase.empty()) kernel.record.phase = own_phase(phase);
    if (!event.arg("Collective name").empty())
      kernel.record.collective = {.name = std::string(event.arg("Collective name")),
                                  .in_elements = event.number("In msg nelems"),
                                  .out_elements = event.number("Out msg nelems"),
                                  .dtype = std::string(event.arg("dtype")),
                                  .group_size = event.number("Group size"),
                                  .ranks = ranks_in(event.arg("Process Group Ranks"))};
    kernels_.push_back(std::move(kernel));
  }
  /// Traces that Tandem wrote name it.
  static std::optional<Phase> own_phase(std::string_view name) {
    for (const Phase phase : {Phase::forward, Phase::backward_input, Phase::backward_weight, Phase::recompute, Phase::optimizer})
      if (name_of(phase) == name) return phase;
    return std::nullopt;
  }
};

bool is_trace_file(const fs::path& path) {
  const std::string name = path.filename();
  return name.ends_with(".json") || name.ends_with(".json.gz");
}

}  // namespace

bool are_kineto_traces(const std::string& path) { return !path.empty() && (fs::is_directory(path) || is_trace_file(path)); }

KinetoTrace read_kineto(const std::string& path) {
  const std::string text = inflated(path);
  Collector collector(path);
  TraceReader reader([&](const Event& event) { collector.add(event); },
                     [&](const std::string& name, const std::string& value) { collector.add_fact(name, value); });
  try {
    const bool read = nlohmann::json::sax_parse(text, &reader);
    if (!read || !reader.error.empty()) fail(path, reader.error);
  } catch (const std::invalid_argument&) {
    fail(path, std::string("has a time or rank that is no number; ") + expected_trace);
  } catch (const std::out_of_range&) {
    fail(path, std::string("has a time or rank beyond all bounds; ") + expected_trace);
  }
  if (!reader.has_events) fail(path, std::string("has no traceEvents; ") + expected_trace);
  return std::move(collector).take();
}

std::vector<KinetoTrace> read_kineto_traces(const std::string& path) {
  if (!fs::is_directory(path)) {
    std::vector<KinetoTrace> one;
    one.push_back(read_kineto(path));
    return one;
  }
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (is_trace_file(entry.path()) && !entry.is_directory()) files.push_back(entry.path());
  if (files.empty()) fail(path, "holds no *.json and no *.json.gz; expected traces that torch.profiler exported");
  std::ranges::sort(files);
  std::vector<KinetoTrace> traces;
  for (const std::string& file : files) {
    KinetoTrace trace = read_kineto(file);
    if (files.size() > 1 && !trace.rank)
      fail(file, "does not tell its rank (distributedInfo.rank); expected it of each trace in a folder");
    for (const KinetoTrace& other : traces) {
      if (other.rank == trace.rank)
        fail(file,
             "is of rank " + std::to_string(*trace.rank) + ", and so is " + other.file + "; expected one trace of each rank");
      if (other.world_size != trace.world_size)
        fail(file, "is of a world of " + std::to_string(trace.world_size) + " ranks, and " + other.file + " of one of " +
                       std::to_string(other.world_size) + "; expected traces of one run");
    }
    traces.push_back(std::move(trace));
  }
  std::ranges::sort(traces, {}, &KinetoTrace::rank);
  return traces;
}

}  // namespace tandem::studies
