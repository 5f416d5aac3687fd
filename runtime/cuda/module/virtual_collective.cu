#include <algorithm>
#include <stdexcept>

#include "runtime/cuda/gpu.h"
#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/virtual_collective.h"

namespace tandem {
namespace {

struct Members {
  std::uint32_t count = 0, root = 0;
  const void* in[most_virtual_ranks] = {};
  void* out[most_virtual_ranks] = {};
};

/// Whoever has an output gets element i of the sum, all of it or its part.
template <typename Element>
struct Reduce {
  static constexpr int vector = widest_access / static_cast<int>(sizeof(Element));
  Members members;
  Reduction reduction;
  std::int64_t part;  ///< elements of a member's output where each gets a part; 0: all get all

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    float sum[n];
    load(static_cast<const Element*>(members.in[0]) + i, sum);
    for (std::uint32_t m = 1; m < members.count; ++m) {
      float addend[n];
      load(static_cast<const Element*>(members.in[m]) + i, addend);
      for (int e = 0; e < n; ++e) {
        if (reduction == Reduction::max)
          sum[e] = sum[e] > addend[e] || sum[e] != sum[e] ? sum[e] : addend[e];  // of a number and NaN, NaN
        else
          sum[e] += addend[e];
      }
    }
    if (reduction == Reduction::mean)
      for (int e = 0; e < n; ++e) sum[e] /= static_cast<float>(members.count);
    if (part > 0) {
      store(static_cast<Element*>(members.out[i / part]) + i % part, sum);
      return;
    }
    for (std::uint32_t m = 0; m < members.count; ++m)
      if (members.out[m] != nullptr) store(static_cast<Element*>(members.out[m]) + i, sum);
  }
};

/// What moves bytes alone: element i of the whole vector, which in an all-to-all is what all members send one after the other.
template <int bytes>
struct Move {
  static constexpr int vector = 1;
  struct Word {
    unsigned char raw[bytes];
  };
  Members members;
  OpKind op;
  std::int64_t part;   ///< words of a member's part
  std::int64_t whole;  ///< words of an all-to-all's operand

  TANDEM_DEVICE static void copy(const void* from, std::int64_t i, void* to, std::int64_t j) {
    copy_aligned<bytes>(static_cast<Word*>(to) + j, static_cast<const Word*>(from) + i);
  }

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    static_assert(n == 1);
    switch (op) {
      case OpKind::all_to_all: {
        const std::int64_t source = i / whole, within = i % whole;
        copy(members.in[source], within, members.out[within / part], source * part + within % part);
        return;
      }
      case OpKind::scatter:
        copy(members.in[members.root], i, members.out[i / part], i % part);
        return;
      case OpKind::all_gather:
      case OpKind::gather:
        for (std::uint32_t m = 0; m < members.count; ++m)
          if (members.out[m] != nullptr) copy(members.in[i / part], i % part, members.out[m], i);
        return;
      default:  // a broadcast, a send
        for (std::uint32_t m = 0; m < members.count; ++m)
          if (members.out[m] != nullptr) copy(members.in[members.root], i, members.out[m], i);
    }
  }
};

template <typename Element>
void reduce(Queue& queue, const Members& members, const Collective& collective, std::int64_t elements, bool aligned) {
  const std::int64_t part = collective.op == OpKind::reduce_scatter ? elements / members.count : 0;
  constexpr int vector = Reduce<Element>::vector;
  launch_elementwise("virtual reduction", queue, elements, aligned && (part == 0 ? elements : part) % vector == 0,
                     Reduce<Element>{members, collective.reduction, part});
}

template <int bytes>
void move(Queue& queue, const Members& members, OpKind op, std::int64_t part, std::int64_t whole, std::int64_t count) {
  launch_elementwise("virtual collective", queue, count / bytes, false, Move<bytes>{members, op, part / bytes, whole / bytes});
}

}  // namespace

void run_virtual_collective(Queue& queue, const Collective& collective, DType dtype) {
  if (collective.op == OpKind::barrier) return;
  const auto count = static_cast<std::uint32_t>(collective.members.size());
  if (count > most_virtual_ranks) throw std::logic_error("a collective of more virtual ranks than one GPU runs");
  Members members{.count = count, .root = static_cast<std::uint32_t>(collective.root)};
  std::uintptr_t addresses = 0;
  std::int64_t most_in = 0, most_out = 0;
  for (std::uint32_t m = 0; m < count; ++m) {
    const CollectiveMember& member = collective.members[m];
    members.in[m] = member.in.data();
    members.out[m] = member.out.data();
    addresses |= reinterpret_cast<std::uintptr_t>(member.in.data()) | reinterpret_cast<std::uintptr_t>(member.out.data());
    most_in = std::max(most_in, static_cast<std::int64_t>(member.in.size()));
    most_out = std::max(most_out, static_cast<std::int64_t>(member.out.size()));
  }
  switch (collective.op) {
    case OpKind::all_reduce:
    case OpKind::reduce_scatter:
    case OpKind::reduce: {
      const bool aligned = addresses % widest_access == 0;
      if (dtype == DType::f32) return reduce<float>(queue, members, collective, most_in, aligned);
      if (dtype == DType::bf16) return reduce<Bf16>(queue, members, collective, most_in, aligned);
      if (dtype == DType::f16) return reduce<F16>(queue, members, collective, most_in, aligned);
      throw std::runtime_error("a GPU adds up no " + std::string(name_of(dtype)) + " over ranks");
    }
    default:
      break;
  }
  const bool by_parts = collective.op == OpKind::all_gather || collective.op == OpKind::gather;
  const Bytes element = size_of(dtype);
  const Bytes whole = element * (by_parts ? most_out : most_in);
  const Bytes part = whole / count;
  const Bytes all = collective.op == OpKind::all_to_all ? whole * count : whole;
  const bool in_parts = by_parts || collective.op == OpKind::scatter || collective.op == OpKind::all_to_all;
  const std::uintptr_t grain = addresses | static_cast<std::uintptr_t>(in_parts ? part : whole);
  if (grain % 16 == 0) return move<16>(queue, members, collective.op, part, whole, all);
  if (grain % 4 == 0) return move<4>(queue, members, collective.op, part, whole, all);
  if (grain % 2 == 0) return move<2>(queue, members, collective.op, part, whole, all);
  move<1>(queue, members, collective.op, part, whole, all);
}

}  // namespace tandem
