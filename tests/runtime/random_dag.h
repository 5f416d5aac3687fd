#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "runtime/dag/dag_builder.h"

namespace tandem {

/// Seeded random steps: kernels on the compute streams, collectives and transfers on streams of their own, all touching
/// overlapping views of a few buffers. Lowered in one order for all ranks, so that they can always finish.
class RandomDag {
 public:
  explicit RandomDag(std::uint32_t seed) : random_(seed) {
    add_device();
    add_links();
    ranks_ = static_cast<RankIndex>(between(1, 5));
    for (RankIndex rank = 0; rank < ranks_; ++rank) add_rank();
    for (int i = 0; ranks_ > 1 && i < 4; ++i) add_communicator(i % 2 == 0);
  }

  Dag build(int events = 80) {
    for (int event = 0; event < events; ++event) {
      const std::int64_t kind = communicators_.empty() ? 0 : between(0, 9);
      if (kind < 7)
        add_kernel();
      else
        add_communication(communicators_[static_cast<std::size_t>(between(0, 3))]);
    }
    return builder_.finish();
  }

 private:
  static constexpr std::int64_t buffer_elements = 100'000;
  static constexpr std::int64_t buffers_per_rank = 4;
  struct Members {
    CommunicatorId id;
    bool pair;
    std::vector<RankIndex> ranks;
  };
  std::mt19937 random_;
  DagBuilder builder_;
  RankIndex ranks_ = 0;
  std::vector<std::vector<BufferId>> buffers_;  ///< by rank
  std::vector<Members> communicators_;

  std::int64_t between(std::int64_t low, std::int64_t high) { return std::uniform_int_distribution(low, high)(random_); }

  void add_device() {
    Device device;
    device.name = "memory alone";
    device.memory_bandwidth = 1e9;
    device.efficiency.memory = 0.8;
    device.efficiency.launch = 2e-6;
    builder_.dag().devices = {device, device};
    builder_.dag().devices[1].speed = 0.7;
  }

  void add_links() {
    for (int i = 0; i < 3; ++i) {
      builder_.dag().links.push_back({.name = "link " + std::to_string(i), .capacity = 1e9 * static_cast<double>(between(1, 4))});
    }
  }

  void add_rank() {
    const auto number = static_cast<std::uint32_t>(buffers_.size());
    const RankIndex rank = builder_.add_rank({.world_rank = number, .device = static_cast<std::uint32_t>(between(0, 1))});
    buffers_.emplace_back();
    for (std::int64_t i = 0; i < buffers_per_rank; ++i) {
      buffers_.back().push_back(builder_.buffer(rank, BufferKind::activation, DType::f32, Shape(buffer_elements)));
    }
  }

  void add_communicator(bool pair) {
    std::vector<RankIndex> ranks(ranks_);
    std::iota(ranks.begin(), ranks.end(), 0U);
    std::shuffle(ranks.begin(), ranks.end(), random_);
    ranks.resize(pair ? 2 : static_cast<std::size_t>(between(2, ranks_)));
    Layout layout{.intra_latency = 1e-6};
    for (LinkId link = 0; link < 3; ++link) {
      const std::int64_t times = between(0, 2);
      if (times > 0) layout.paths.front().crossings.push_back({link, static_cast<std::uint32_t>(times)});
    }
    const Axis axis = pair ? Axis::pp : communicators_.size() % 4 == 1 ? Axis::tp : Axis::dp;
    const CommunicatorId id =
        builder_.add_communicator({.name = "c", .axis = axis, .members = ranks, .layout = std::move(layout)});
    communicators_.push_back({id, pair, std::move(ranks)});
  }

  BufferId some_view(RankIndex rank, std::int64_t elements) {
    const BufferId base = buffers_[rank][static_cast<std::size_t>(between(0, buffers_per_rank - 1))];
    return builder_.view(base, between(0, buffer_elements - elements), Shape(elements));
  }

  void add_kernel() {
    const auto rank = static_cast<RankIndex>(between(0, ranks_ - 1));
    const std::int64_t elements = between(1, buffer_elements / 3);
    const std::array in{some_view(rank, elements)};
    const std::array out{some_view(rank, elements)};
    const TaskLabels labels{.name = "kernel", .phase = between(0, 3) == 0 ? Phase::optimizer : Phase::forward};
    if (between(0, 1) == 0) {
      builder_.kernel(OpKind::scale, ScaleAttributes{}, labels, in, out);
    } else {
      builder_.kernel(OpKind::scale, ScaleAttributes{}, labels, in, {}, out);
    }
  }

  void add_communication(const Members& members) {
    const std::int64_t elements = between(1, buffer_elements / 3);
    if (members.pair) {
      builder_.collective(OpKind::send, members.id, {.name = "send", .stream = Stream::pp_send_forward},
                          some_view(members.ranks[0], elements), no_id);
      builder_.collective(OpKind::receive, members.id, {.name = "receive", .stream = Stream::pp_receive_forward}, no_id,
                          some_view(members.ranks[1], elements));
      return;
    }
    const Stream stream = builder_.dag().communicators[members.id].axis == Axis::tp ? Stream::tp : Stream::dp;
    for (const RankIndex rank : members.ranks) {
      const BufferId data = some_view(rank, elements);
      builder_.collective(OpKind::all_reduce, members.id, {.name = "all-reduce", .stream = stream}, data, data);
    }
  }
};

inline Dag random_dag(std::uint32_t seed) { return RandomDag(seed).build(); }

}  // namespace tandem
