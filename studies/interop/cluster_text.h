#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/interop/usual_clusters.h"
#include "studies/interop/import_source.h"
#include "topology/cluster_spec.h"

namespace tandem::studies {

// What importers of clusters share: the preset that fills in what a file does not say, and the lines that they write.

/// The preset below an imported cluster.
struct ClusterBase {
  std::string name;  ///< as `as:` takes it
  ClusterSpec spec;
};

/// Returns the preset that `--cluster` names, or `usual`, and says in `result` what it is taken for. Throws InputError.
ClusterBase cluster_base(const ImportRequest& request, ImportResult& result, std::string_view usual = usual_cluster);

/// Returns the GPUs of a host: `known` where that is not 0, else those that `--gpus` leaves to each host, else the preset's.
/// Throws InputError where `--gpus` does not fit, and where a node of the preset is more than a host.
std::int64_t gpus_of_host(const ClusterBase& base, std::int64_t hosts, std::int64_t known, const std::string& file,
                          const ImportRequest& request, ImportResult& result);

/// Whether a node of the preset, an NVLink domain, is larger than any host.
bool spans_hosts(const ClusterBase& base);

std::string cluster_head(const ClusterBase& base, const std::string& file);
/// Returns `hosts`, as a list of host lists on lines of bounded length.
std::string hosts_text(std::span<const std::string> names);
/// Returns numbers in their order, "0-3, 7".
std::string ranges_text(std::span<const std::int64_t> numbers);
/// Returns a name as YAML has it.
std::string switch_text(const std::string& name);

/// Returns the text of a file, of up to 64 MB. `expected` says what the file should hold. Throws InputError.
std::string read_large_text(const std::string& path, const std::string& expected);

}  // namespace tandem::studies
