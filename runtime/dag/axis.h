#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/namespaces.h"

namespace tandem {

/// What the ranks of a training run are divided along. A name here is the axis's name everywhere: in a scenario's fields, on the
/// command line, in results and on timelines.
enum class Axis : std::uint8_t {
  none,
  tp,   ///< tensor parallelism
  cp,   ///< context parallelism
  ep,   ///< expert parallelism
  dp,   ///< data parallelism
  pp,   ///< pipeline parallelism
  host  ///< no axis of a mesh: between a GPU and the memory of its host
};

/// The axes of a device mesh, in the default order of `parallelism.order`: innermost first.
inline constexpr std::array mesh_axes{Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};

inline constexpr std::array<std::string_view, mesh_axes.size() + 2> axis_names{"none", "tp", "cp", "ep", "dp", "pp", "host"};

constexpr std::string_view name_of(Axis axis) { return axis_names[static_cast<std::size_t>(axis)]; }

}  // namespace tandem
