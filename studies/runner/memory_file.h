#pragma once

#include <string>

namespace tandem::studies {

/// A file in memory, without a name, for what comes out of a process: unlike a pipe, the file never makes either side wait.
class MemoryFile {
 public:
  // All throw std::system_error.

  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void clear() const;
  /// Adds to what the file holds.
  void write(const std::string& text) const;
  std::string read() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace tandem::studies
