#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "runtime/base/units.h"

namespace tandem::studies {

/// A descriptor that is closed with its owner.
class OwnDescriptor {
 public:
  explicit OwnDescriptor(int descriptor = -1) : descriptor_(descriptor) {}
  ~OwnDescriptor() { close(); }
  OwnDescriptor(OwnDescriptor&& other) noexcept : descriptor_(other.release()) {}
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept;

  int get() const { return descriptor_; }
  int release();
  void close();

 private:
  int descriptor_;
};

/// The two ends of a way by which one process hands jobs to another, a byte (the kind's place in its table) and a stream at a
/// time.
struct JobDoor {
  OwnDescriptor outside, inside;
  /// Throws std::system_error.
  JobDoor();
};

/// A job that came in.
struct ArrivedJob {
  std::size_t kind;
  OwnDescriptor stream;
};
/// Returns the next one; nothing where the other end was closed.
std::optional<ArrivedJob> next_job(int inside);

/// The end of a job at which its answer is waited for. Closing it ends the job.
class JobStream {
 public:
  /// Hands the job in. Throws std::system_error.
  JobStream(int outside, std::size_t kind, const std::string& body);

  enum class Wait {
    line,
    nothing_yet,
    end
  };
  /// Waits no longer than `patience` for the next line, which then is `line`.
  Wait next(std::string& line, Seconds patience);

 private:
  OwnDescriptor stream_;
  std::string read_;          ///< and not yet returned
  std::size_t searched_ = 0;  ///< of that, without the end of a line
};

/// Writes a line; false where nobody reads it. `waits`: until there is room for it.
bool write_line(int stream, std::string line, bool waits = true);
/// Reads what the other end sent before it said that it was done. Nothing where that is more than `most`.
std::optional<std::string> read_all(int stream, std::size_t most);

}  // namespace tandem::studies
