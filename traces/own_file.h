#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/input_error.h"
#include "traces/dag.pb.h"
#include "traces/output_file.h"
#include "traces/tables.h"

namespace tandem::traces {

/// What one of our formats is called.
struct Format {
  const char* name;  ///< the file begins with it
  std::uint32_t version;
  const char* written_by;    ///< for the advice to write it again
  std::uint32_t oldest = 0;  ///< the first version that is still read; 0: `version` alone
};

/// What a file holds, and in which version of its format.
struct Unsealed {
  file::Content content;
  std::uint32_t version = 0;
};

/// CRC-32.
std::uint32_t checksum_of(const std::string& bytes);

/// Content, sealed with a checksum, as the bytes of a file. Throws std::runtime_error beyond the 2 GB that protobuf can hold.
std::string seal(const Format& format, const file::Content& content);

/// Whether the file at `path` begins as files of this format do; false where it cannot be read.
bool begins_as(const Format& format, const std::string& path);

/// The content of the file at `path`. Throws InputError when it cannot be read, is none of this format, of a version that is
/// not read, or has changed since it was written.
Unsealed unseal(const Format& format, const std::string& path);

/// The error for a file whose bytes are as they were written, but whose content makes no sense.
InputError corrupt(const Format& format, const std::string& path, const std::string& what);

}  // namespace tandem::traces
