#pragma once

#include <string>

#include "runtime/timeline.h"

namespace tandem {

/// A timeline by itself, exactly, for whoever has its DAG: the seconds at which each task began and ended.
std::string to_bytes(const Timeline& timeline);

/// Whether the file at `path` begins as a timeline does; false where it cannot be read.
bool is_timeline(const std::string& path);

/// Throws InputError for a file that is no timeline of `tasks` tasks.
Timeline read_timeline(const std::string& path, std::size_t tasks);

}  // namespace tandem
