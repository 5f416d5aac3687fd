#pragma once

#include <string>
#include <string_view>

#include "traces/tidied_name.h"

namespace tandem::traces {

/// A file that appears whole or not at all: written to an unnamed file in the same folder, then linked into place by `commit`.
/// Destroyed without `commit`, or killed before it, it leaves no trace and the old file as it was. (Where the file system has no
/// unnamed files a hidden one stands in, which SIGKILL alone leaves behind.) A signal that interrupts a system call is no
/// failure.
///
/// A symbolic link stays, and what it points to is replaced. What cannot be replaced (/dev/stdout, a FIFO) is written straight
/// into. Constructor, `write` and `commit` throw std::runtime_error with the path and the reason ("No space left on device").
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  /// `shown`: what messages call it, where the path is one that the user has not named.
  OutputFile(std::string path, std::string shown);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  void write(std::string_view bytes);
  void commit();

 private:
  std::string path_;      ///< as the caller named it, for messages
  std::string target_;    ///< behind the links; empty when written straight into
  TidiedName temporary_;  ///< to be renamed; empty while the file is unnamed
  std::string buffer_;
  int descriptor_ = -1;
  bool committed_ = false;

  void open_beside_target();
  void flush();
  void put(std::string_view bytes);
  void link_into_place();
  void close();
  [[noreturn]] void fail(int error) const;
};

}  // namespace tandem::traces
