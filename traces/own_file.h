#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/input_error.h"
#include "traces/dag.pb.h"
#include "traces/output_file.h"
#include "traces/tables.h"

namespace tandem::traces {

/// The names of one of our formats.
struct Format {
  const char* name;  ///< the file begins with it
  std::uint32_t version;
  const char* written_by;    ///< for the advice to write it again
  std::uint32_t oldest = 0;  ///< the first version that is still read; 0: `version` alone
};

/// The content of a file, and the version of its format.
struct Unsealed {
  file::Content content;
  std::uint32_t version = 0;
};

/// Returns the CRC-32 of the bytes.
std::uint32_t checksum_of(const std::string& bytes);

/// Returns the content, sealed with a checksum, as the bytes of a file. Throws std::runtime_error beyond the 2 GB that protobuf
/// can hold.
std::string seal(const Format& format, const file::Content& content);

/// Returns whether the file at `path` begins as files of this format do; false where it cannot be read.
bool begins_as(const Format& format, const std::string& path);

/// Returns the content of the file at `path`. Throws InputError when it cannot be read, is none of this format, of a version that
/// is not read, or has changed since it was written.
Unsealed unseal(const Format& format, const std::string& path);

/// Makes the error for a file whose bytes are as they were written, but whose content makes no sense.
InputError corrupt(const Format& format, const std::string& path, const std::string& what);

}  // namespace tandem::traces
