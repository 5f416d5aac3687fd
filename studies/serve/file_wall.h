#pragma once

#include <filesystem>

namespace tandem::studies {

/// Has the system refuse this process, and its children, every file but those below `folder`, which they may read, and what they
/// read about themselves and this machine (/proc, /sys). Nothing but /dev/null can be written. Returns false where the kernel has
/// no Landlock (Linux 5.13): files_within.h is then the only wall.
bool wall_in(const std::filesystem::path& folder);

}  // namespace tandem::studies
