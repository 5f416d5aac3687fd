#pragma once

#include "scenarios/mesh/communicators.h"

namespace tandem::scenarios {

/// Returns, by instance of `hashed` (surveyed on the cluster as it is) and by path, what `CableMerge` calls the share of its
/// worst cable, in bytes/s for all of its channels together; infinite where it crosses no cable.
std::vector<std::vector<BytesPerSecond>> cable_shares(const CommunicatorSurvey& hashed, const Cluster& cluster,
                                                      CableMerge::Among among);

/// Gives the instances of `even` (surveyed under ideal spreading) their shares, and communicators whose shares differ by more
/// than the tolerance different colours.
void merge_cables(const std::vector<std::vector<BytesPerSecond>>& shares, double tolerance, CommunicatorSurvey& even);

}  // namespace tandem::scenarios
