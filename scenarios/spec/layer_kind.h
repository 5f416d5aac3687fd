#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace tandem::scenarios {

/// What mixes a layer's tokens with each other.
enum class Mixer : std::uint8_t {
  none,
  full_attention,
  sliding_attention,  ///< to the last `window` positions
  chunked_attention,  ///< to those of the same `attention_chunk` positions
  linear_attention,   ///< gated delta net
  mamba,              ///< Mamba-2
  lightning_attention,
  compressed_sparse_attention,  ///< to the last `window` positions, and compressed keys that an indexer chooses
  heavily_compressed_attention  ///< to the last `window` positions, and all compressed keys before
};
constexpr bool has_compressed_keys(Mixer mixer) {
  return mixer == Mixer::compressed_sparse_attention || mixer == Mixer::heavily_compressed_attention;
}
constexpr bool is_attention(Mixer mixer) {
  return mixer == Mixer::full_attention || mixer == Mixer::sliding_attention || mixer == Mixer::chunked_attention ||
         has_compressed_keys(mixer);
}

/// What works on each of them by itself.
enum class Feed : std::uint8_t {
  none,
  dense,   ///< an MLP
  experts  ///< a mixture of experts
};

/// The halves of a layer. Each is a residual branch with a norm of its own; at most one is missing.
struct LayerKind {
  Mixer mixer = Mixer::full_attention;
  Feed feed = Feed::dense;
  auto operator<=>(const LayerKind&) const = default;
};

/// A word of `layer_types`, as config.json has them. Without a feed, `moe` says which layers have experts.
struct LayerType {
  Mixer mixer = Mixer::full_attention;
  std::optional<Feed> feed = {};
  bool operator==(const LayerType&) const = default;
};

}  // namespace tandem::scenarios
