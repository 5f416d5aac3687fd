#pragma once

#include <string>

#include "studies/interop/cluster_graph.h"

namespace tandem::studies {

/// Reads an infrastructure of InfraGraph (Keysight/infragraph, docs/openapi.yaml; edges as src/infragraph/infragraph_service.py
/// expands them) into hosts, switches and cables: instances of devices with xpu components are hosts, all others that edges join
/// to them are switches. A host's NICs are its ends of edges to switches, but for those of xpus, which belong to the node.
///
/// Adds to `result` what is left out. Throws InputError, also for the older form with `connections`, for hosts that are joined
/// without a switch, and for hosts that differ in GPUs.
ClusterGraph read_infragraph(const std::string& text, const std::string& file, ImportResult& result);

}  // namespace tandem::studies
