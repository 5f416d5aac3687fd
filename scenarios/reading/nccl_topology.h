#pragma once

#include <string>

#include "scenarios/reading/reader.h"
#include "topology/cluster_spec.h"

namespace tandem::scenarios {

/// Takes a node from a file of NCCL's where a cluster's `nccl_topology` names one (see topology/nccl_topology.h; its path counts
/// from `folder`): gives the cluster what the file says and the cluster does not: gpus_per_node, nvlink_GBps, nics_per_node,
/// nic_gbps; and puts the ways from GPUs to NICs in the place of the path. These are left out where the cluster has other numbers
/// of GPUs or NICs. Throws InputError.
void import_nccl_topology(YamlNode& cluster, const std::string& folder);

/// Reads those ways: {nic_of_gpu: [..], ports: [{name, GBps, gpus: [..]}, ..]}.
PcieSpec read_imported_pcie(const Reader& cluster, std::int64_t gpus_per_node, std::int64_t nics_per_node);

}  // namespace tandem::scenarios
