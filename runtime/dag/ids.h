#pragma once

#include <cstdint>

namespace tandem {

using TaskId = std::uint32_t;
using BufferId = std::uint32_t;
using RankIndex = std::uint32_t;  ///< index of a lowered rank in `Dag::ranks`, not its number in the world
using CommunicatorId = std::uint32_t;
using GroupId = std::uint32_t;
using KernelId = std::uint32_t;
inline constexpr std::uint32_t no_id = 0xFFFFFFFF;

}  // namespace tandem
