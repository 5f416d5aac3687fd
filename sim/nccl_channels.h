#pragma once

#include "sim/collective_cost.h"

namespace tandem::sim {

/// Returns the channels of rings and trees with bytes enough for all of them.
std::int32_t most_channels(std::size_t members, const Layout& layout, const NcclConstants::Channels& channels);

/// Returns those of a ring's channels that have bytes enough, one at least.
std::int32_t ring_channels(Bytes bytes, std::size_t members, const Layout& layout, Protocol protocol,
                           const NcclConstants::Channels& channels);

/// Returns what a collective of cost `cost` takes of the device of each of its members while it runs. Constants, with their
/// sources, in sim/profiles/nccl.csv; on an unknown architecture nothing is known, and nothing is taken.
///
/// Multiprocessors: one for each of NCCL's channels, which runs one block of the kernel on it until all is done:
///   rings, trees  in a node as many as its rings need; over nodes so many for each NIC, up to a most; and no more than have a
///                 least number of bytes each (NVIDIA/nccl, src/enqueue.cc, topoGetAlgoInfo), for LL on a ring times the members
///   nvls, deepep, hybridep  numbers of their own, whatever the bytes; nvls has another one over nodes
///   sends, all-to-all and the like    as many as a pair of GPUs has, in a node or over a NIC; those over nodes to all others at
///                 once as many as rings do
///
/// Memory: what a member sends is read, and what it receives is written, at an even pace over the time that the collective takes
/// on an idle network. Flags of the protocol count. With V bytes, n members and the bus bytes of collective_cost.h:
///   rings, trees, all-to-all    2 bus bytes
///   nvls, nvls-tree             the switches read the vector and the owners' sums, and write both: 2 V (n + 1) / n
///   send, receive, broadcast and the other ways through a root    1 each way at most: the vector
Occupation nccl_occupation(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, const CollectiveCost& cost,
                           Seconds time, Architecture architecture);

}  // namespace tandem::sim
