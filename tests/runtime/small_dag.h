#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dag/dag_builder.h"

namespace tandem {

/// Hand-made DAGs on a device that writes one element a nanosecond and knows no launch cost.
class SmallDag {
 public:
  /// Of a known architecture, collectives run as NCCL chooses.
  explicit SmallDag(Architecture architecture = Architecture::unknown) {
    Device device;
    device.architecture = architecture;
    device.name = "one element a nanosecond";
    device.memory_bandwidth = 4e9;  // of fp32
    device.efficiency.memory = 1;
    builder_.dag().devices.push_back(device);
  }

  RankIndex rank() {
    const auto world_rank = static_cast<std::uint32_t>(builder_.dag().ranks.size());
    return builder_.add_rank({.world_rank = world_rank});
  }

  TaskId kernel(RankIndex rank, std::int64_t nanoseconds, Stream stream = Stream::compute) {
    const BufferId buffer = builder_.buffer(rank, BufferKind::activation, DType::f32, Shape(nanoseconds));
    return builder_.kernel(OpKind::fill, ScaleAttributes{}, {.name = "kernel", .stream = stream}, {}, {{buffer}});
  }

  /// Casts so many elements, which lie in `tensors` of equal size: 1.5 nanoseconds for each.
  TaskId cast(RankIndex rank, std::int64_t elements, std::int32_t tensors) {
    const BufferId x = builder_.buffer(rank, BufferKind::activation, DType::f32, Shape(elements));
    const BufferId y = builder_.buffer(rank, BufferKind::activation, DType::bf16, Shape(elements));
    return builder_.kernel(OpKind::cast, CastAttributes{.rows = std::vector<std::int32_t>(static_cast<std::size_t>(tensors), 1)},
                           {.name = "cast"}, {{x}}, {{y}});
  }

  /// A product of matrices, which is `microseconds` of arithmetic at 1 TFLOP/s and moves next to nothing.
  TaskId product(RankIndex rank, std::int64_t microseconds) {
    const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
      return builder_.buffer(rank, BufferKind::activation, DType::f32, Shape(rows, columns));
    };
    const std::array operands{matrix(1000, microseconds), matrix(500, microseconds)};
    return builder_.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true}, {.name = "product"}, operands,
                           {{matrix(1000, 500)}});
  }

  LinkId link(BytesPerSecond capacity) {
    std::vector<Link>& links = builder_.dag().links;
    links.push_back({.name = "link " + std::to_string(links.size()), .capacity = capacity});
    return static_cast<LinkId>(links.size() - 1);
  }

  void links(const std::vector<Link>& all) { builder_.dag().links = all; }

  CommunicatorId communicator(std::uint32_t members, const Layout& layout) {
    Communicator communicator{.name = "members", .axis = Axis::dp, .members = {}, .layout = layout};
    for (std::uint32_t member = 0; member < members; ++member) communicator.members.push_back(member);
    return builder_.add_communicator(std::move(communicator));
  }

  TaskId all_reduce(RankIndex rank, CommunicatorId communicator, Bytes bytes, Stream stream = Stream::dp) {
    const BufferId buffer = bytes_of(rank, bytes);
    return builder_.collective(OpKind::all_reduce, communicator, {.name = "all-reduce", .stream = stream}, buffer, buffer);
  }

  /// Of `bytes` in all, by two ranks.
  TaskId all_gather(RankIndex rank, CommunicatorId communicator, Bytes bytes, Stream stream = Stream::dp) {
    return builder_.collective(OpKind::all_gather, communicator, {.name = "all-gather", .stream = stream},
                               bytes_of(rank, bytes / 2), bytes_of(rank, bytes));
  }
  TaskId reduce_scatter(RankIndex rank, CommunicatorId communicator, Bytes bytes) {
    return builder_.collective(OpKind::reduce_scatter, communicator, {.name = "reduce-scatter", .stream = Stream::dp},
                               bytes_of(rank, bytes), bytes_of(rank, bytes / 2));
  }

  /// Between two ranks, of which each calls its own.
  TaskId send(RankIndex rank, CommunicatorId pair, Bytes bytes) {
    return builder_.collective(OpKind::send, pair, {.name = "send", .stream = Stream::pp_send_forward}, bytes_of(rank, bytes),
                               no_id);
  }
  TaskId receive(RankIndex rank, CommunicatorId pair, Bytes bytes) {
    return builder_.collective(OpKind::receive, pair, {.name = "receive", .stream = Stream::pp_receive_forward}, no_id,
                               bytes_of(rank, bytes));
  }

  /// A flow of `bytes` after `latency` over `crossings`, which a rank of its own sends when it has computed for `after_ns`.
  TaskId flow(Bytes bytes, std::vector<Crossing> crossings, Seconds latency = 0, std::int64_t after_ns = 0) {
    const RankIndex sender = rank();
    if (after_ns > 0) kernel(sender, after_ns, Stream::pp_send_forward);
    const CommunicatorId pair = communicator(2, {.intra_latency = latency, .paths = {{.crossings = std::move(crossings)}}});
    return send(sender, pair, bytes);
  }

  void depend(TaskId before, TaskId after) { builder_.depend(before, after); }

  Dag finish() { return builder_.finish(); }

 private:
  DagBuilder builder_;

  BufferId bytes_of(RankIndex rank, Bytes bytes) {
    return builder_.buffer(rank, BufferKind::communication, DType::f8, Shape(bytes));
  }
};

}  // namespace tandem
