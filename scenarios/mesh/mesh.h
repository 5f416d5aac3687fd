#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

inline constexpr std::size_t mesh_axis_count = 5;

/// A rank's place along each axis, indexed by MeshAxis.
struct Coordinates {
  std::array<std::int32_t, mesh_axis_count> at{};
  std::int32_t operator[](MeshAxis axis) const { return at[static_cast<std::size_t>(axis)]; }
  std::int32_t& operator[](MeshAxis axis) { return at[static_cast<std::size_t>(axis)]; }
};

/// The device mesh of the dense model: rank = sum of coordinate * stride, strides by `order`, innermost first.
class Mesh {
 public:
  explicit Mesh(const ParallelismSpec& parallelism);

  std::int64_t size() const { return size_; }
  std::int64_t extent(MeshAxis axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  /// Returns how far apart two ranks are that follow each other along the axis.
  std::int64_t stride(MeshAxis axis) const { return strides_[static_cast<std::size_t>(axis)]; }
  Coordinates coordinates(std::uint32_t rank) const;
  std::uint32_t rank(const Coordinates& coordinates) const;

  /// Returns the ranks that differ from `rank` along `axes` alone, itself included, ascending.
  std::vector<std::uint32_t> members(std::uint32_t rank, const std::vector<MeshAxis>& axes) const;

 private:
  std::array<std::int64_t, mesh_axis_count> extents_{};
  std::array<std::int64_t, mesh_axis_count> strides_{};
  std::vector<MeshAxis> order_;
  std::int64_t size_ = 1;
};

}  // namespace tandem::scenarios
