#pragma once

#include <string>

#include "tests/runtime/temporary_folder.h"

namespace tandem::studies {

/// Sixteen nodes of two GPUs: two nodes below a leaf (1:2), two leaves below a pod, four pods (1:7). The job takes eight nodes,
/// in which pipeline stages alternate, so that packed every data-parallel ring goes from leaf to leaf and from pod to pod.
inline std::string place_text() {
  return "name: placed\n"
         "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096}\n"
         "cluster:\n"
         "  name: four-pods\n"
         "  gpus: 32\n"
         "  gpu: h100-sxm-80gb\n"
         "  gpus_per_node: 2\n"
         "  nvlink_GBps: 100\n"
         "  nics_per_node: 2\n"
         "  nic_gbps: 400\n"
         "  nvlink_latency_us: 1\n"
         "  nic_latency_us: 10\n"
         "  switch_latency_us: 0.5\n"
         "  fabric: {kind: fat-tree, tiers: 3, rail_optimized: false, leaf_ports: 4, pod_leaves: 2, oversubscription: [1, 2, "
         "7]}\n"
         "parallelism: {tp: 2, sp: true, pp: 2, dp: 4, order: [tp, cp, ep, pp, dp]}\n"
         "training: {sequence: 1024, micro_batch: 1, global_batch: 16}\n";
}

/// A folder with that scenario.
class PlaceFolder {
 public:
  explicit PlaceFolder(const std::string& text = place_text());

  std::string scenario() const { return folder_ / "placed.yaml"; }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const;

 private:
  TemporaryFolder folder_;
};

}  // namespace tandem::studies
