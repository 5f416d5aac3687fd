#pragma once

#include <vector>

#include "studies/recorded/recorded_run.h"
#include "topology/cluster.h"
#include "topology/folding.h"
#include "topology/layouts.h"

namespace tandem::studies {

/// The groups of a recorded step on the links of a cluster, and what folding sees of them.
struct RecordedSurvey {
  std::vector<Layout> layouts;  ///< by group; their crossings name the cluster's links
  std::vector<LinkId> links;    ///< the links that groups cross, by their number in `fold`
  FoldInput fold;
};

/// `without_trees`: by group, whether its trees stay out of the fold because nothing chooses them (see `make_world`).
RecordedSurvey survey_groups(const RecordedRun& run, const Cluster& cluster, const std::vector<bool>& without_trees);

}  // namespace tandem::studies
