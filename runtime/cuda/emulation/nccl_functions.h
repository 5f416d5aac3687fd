#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "runtime/cuda/nccl_call.h"

namespace tandem {

// NCCL's functions as its header describes them. Ranks are those of one communicator, in their order.

/// Returns how many elements of its send buffer the call of `rank` reads.
inline std::size_t elements_read(const NcclCall& call, std::size_t rank, std::size_t ranks) {
  const bool root = static_cast<int>(rank) == call.peer;
  switch (call.function) {
    case NcclFunction::reduce_scatter:
    case NcclFunction::all_to_all:
      return call.count * ranks;
    case NcclFunction::scatter:
      return root ? call.count * ranks : 0;
    case NcclFunction::broadcast:
      return root ? call.count : 0;
    case NcclFunction::receive:
      return 0;
    default:
      return call.count;
  }
}

/// Returns whether all ranks call the same function with the same arguments, or are the two sides of a transfer.
inline bool belong_together(std::span<const NcclCall> calls) {
  const NcclCall& first = calls.front();
  const auto alike = [&](const NcclCall& call) {
    return call.count == first.count && call.type == first.type && call.reduction == first.reduction;
  };
  const auto same = [&](const NcclCall& call) { return call.function == first.function && call.peer == first.peer; };
  if (first.function != NcclFunction::send) return std::ranges::all_of(calls, alike) && std::ranges::all_of(calls, same);
  return calls.size() == 2 && alike(calls[1]) && calls[1].function == NcclFunction::receive;
}

/// Returns what the receive buffer of `rank` gets, from what all ranks have sent. Sums are taken in fp32, in the order of the
/// ranks.
inline std::vector<float> received(const NcclCall& call, const std::vector<std::vector<float>>& sent, std::size_t rank) {
  const std::size_t count = call.count;
  const auto root = static_cast<std::size_t>(call.peer);
  const auto from = [&](std::size_t source, std::size_t first) {
    const auto begin = sent.at(source).begin() + static_cast<std::ptrdiff_t>(first);
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  const auto from_all = [&](std::size_t first) {
    std::vector<float> all;
    for (std::size_t source = 0; source < sent.size(); ++source) {
      const std::vector<float> part = from(source, first);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  const auto reduced = [&](std::size_t first) {
    std::vector<float> result = from(0, first);
    for (std::size_t source = 1; source < sent.size(); ++source) {
      for (std::size_t e = 0; e < count; ++e) {
        const float next = sent[source][first + e];
        result[e] = call.reduction == Reduction::max ? std::max(result[e], next) : result[e] + next;
      }
    }
    if (call.reduction == Reduction::mean)
      for (float& element : result) element /= static_cast<float>(sent.size());
    return result;
  };
  switch (call.function) {
    case NcclFunction::all_reduce:
      return reduced(0);
    case NcclFunction::reduce:
      return rank == root ? reduced(0) : std::vector<float>();
    case NcclFunction::reduce_scatter:
      return reduced(rank * count);
    case NcclFunction::all_gather:
      return from_all(0);
    case NcclFunction::gather:
      return rank == root ? from_all(0) : std::vector<float>();
    case NcclFunction::all_to_all:
      return from_all(rank * count);
    case NcclFunction::scatter:
      return from(root, rank * count);
    case NcclFunction::broadcast:
    case NcclFunction::receive:
      return from(root, 0);
    case NcclFunction::send:
      return {};
  }
  return {};
}

}  // namespace tandem
