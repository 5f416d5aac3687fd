#pragma once

#include "runtime/dag/dag_builder.h"

namespace tandem {

/// Every collective once, and the first of them twice, on `size` ranks: 13 kinds.
inline Dag all_collectives(std::uint32_t size, DType type = DType::f32) {
  DagBuilder builder;
  Communicator all{.name = "all", .members = {}, .layout = {}};
  for (std::uint32_t rank = 0; rank < size; ++rank) all.members.push_back(rank);
  const CommunicatorId group = builder.add_communicator(all);
  const CommunicatorId pair = builder.add_communicator({.name = "pair", .members = {0, 1}, .layout = {}});
  for (std::uint32_t r = 0; r < size; ++r) {
    const RankIndex rank = builder.add_rank({.world_rank = r});
    const std::int64_t part = 5;
    const BufferId whole = builder.buffer(rank, BufferKind::gradient, type, Shape(size * part));
    const BufferId slice = builder.view(whole, r * part, Shape(part));
    const BufferId apart = builder.buffer(rank, BufferKind::activation, type, Shape(part));
    builder.collective(OpKind::all_reduce, group, {.name = "sum"}, whole, whole);
    builder.collective(OpKind::all_reduce, group, {.name = "sum again"}, whole, whole);
    builder.collective(OpKind::all_reduce, group, {.name = "max"}, apart, apart, Reduction::max);
    builder.collective(OpKind::all_reduce, group, {.name = "mean"}, apart, apart, Reduction::mean);
    builder.collective(OpKind::reduce_scatter, group, {.name = "scatter"}, whole, slice);
    builder.collective(OpKind::all_gather, group, {.name = "gather"}, slice, whole);
    const BufferId exchanged = builder.buffer(rank, BufferKind::activation, type, Shape(size * part));
    builder.collective(OpKind::all_to_all, group, {.name = "exchange"}, whole, exchanged);
    const std::uint32_t root = size - 1;
    builder.rooted_collective(OpKind::broadcast, group, {.name = "broadcast"}, root, whole);
    builder.rooted_collective(OpKind::reduce, group, {.name = "reduce"}, 0, whole);
    builder.rooted_collective(OpKind::reduce, group, {.name = "reduce to the last"}, root, whole);
    const BufferId at_root = r == root ? whole : no_id;
    builder.rooted_collective(OpKind::gather, group, {.name = "gather at the root"}, root, at_root, r == root ? slice : apart);
    builder.rooted_collective(OpKind::scatter, group, {.name = "scatter from the root"}, root, at_root, apart);
    builder.barrier(rank, group, {.name = "barrier"});
    if (r == 0) builder.collective(OpKind::send, pair, {.name = "send"}, apart, no_id);
    if (r == 1) builder.collective(OpKind::receive, pair, {.name = "receive"}, no_id, apart);
  }
  return builder.finish();
}

}  // namespace tandem
