#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

inline constexpr std::size_t mesh_axis_count = mesh_axes.size();
/// Where the axis stands in `mesh_axes`.
constexpr std::size_t index_of(Axis axis) { return static_cast<std::size_t>(axis) - static_cast<std::size_t>(mesh_axes.front()); }

/// A rank's place along each axis, in the order of `mesh_axes`.
struct Coordinates {
  std::array<std::int32_t, mesh_axis_count> at{};
  std::int32_t operator[](Axis axis) const { return at[index_of(axis)]; }
  std::int32_t& operator[](Axis axis) { return at[index_of(axis)]; }
};

/// The device mesh of the dense model: rank = sum of coordinate * stride, strides by `order`, innermost first.
class Mesh {
 public:
  explicit Mesh(const ParallelismSpec& parallelism);

  std::int64_t size() const { return size_; }
  std::int64_t extent(Axis axis) const { return extents_[index_of(axis)]; }
  /// How far apart two ranks are that follow each other along the axis.
  std::int64_t stride(Axis axis) const { return strides_[index_of(axis)]; }
  Coordinates coordinates(std::uint32_t rank) const;
  /// Returns one of them.
  std::int32_t coordinate(std::uint32_t rank, Axis axis) const {
    // Both fit into 32 bits, as ranks do, and division is several times as fast with them.
    const auto stride = static_cast<std::uint32_t>(strides_[index_of(axis)]);
    const auto extent = static_cast<std::uint32_t>(extents_[index_of(axis)]);
    return extent == 1 ? 0 : static_cast<std::int32_t>(rank / stride % extent);
  }
  /// Makes them those of the next rank; of the last, those of the first.
  void advance(Coordinates& coordinates) const;
  std::uint32_t rank(const Coordinates& coordinates) const;

  /// The ranks that differ from `rank` along `axes` alone, itself included, ascending.
  std::vector<std::uint32_t> members(std::uint32_t rank, const std::vector<Axis>& axes) const;

 private:
  std::array<std::int64_t, mesh_axis_count> extents_{};
  std::array<std::int64_t, mesh_axis_count> strides_{};
  std::vector<Axis> order_;
  std::int64_t size_ = 1;
};

/// Returns the order with two of its axes exchanged.
std::vector<Axis> exchanged(std::vector<Axis> order, Axis one, Axis other);

}  // namespace tandem::scenarios
