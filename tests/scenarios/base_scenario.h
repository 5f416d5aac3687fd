#pragma once

#include <string>
#include <vector>

namespace tandem::scenarios {

/// A small valid scenario, one section per line, for tests that break one line of it.
inline std::vector<std::string> base_lines() {
  return {"name: base",
          "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096}",
          "cluster: {preset: dgx-h100, gpus: 32}",
          "parallelism: {tp: 4, sp: true, pp: 2, dp: 4}",
          "training: {sequence: 1024, micro_batch: 1, global_batch: 16}",
          "faults: {}"};
}

inline std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

inline std::string base_text() { return joined_lines(base_lines()); }

/// The override that places ranks on all GPUs of these nodes of eight, one node after the other.
inline std::string placed_on(const std::vector<int>& nodes) {
  std::string list;
  for (const int node : nodes) {
    for (int gpu = 0; gpu < 8; ++gpu) list += (list.empty() ? "" : ", ") + std::to_string(8 * node + gpu);
  }
  return "parallelism.placement=[" + list + "]";
}

}  // namespace tandem::scenarios
