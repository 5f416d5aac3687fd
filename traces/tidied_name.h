#pragma once

#include <string>

namespace tandem::traces {

/// The name of a file or folder that nobody is to find unless `keep` is called: this removes it when it is destroyed, and so does
/// the end of the process by SIGINT, SIGTERM or SIGHUP, unless the process ignores that signal or handles it itself. Nothing can
/// tidy up after SIGKILL. Folders go when they are empty, names that were made later before those made earlier.
///
/// The name may be made before the file is. A process that was forked removes nothing.
class TidiedName {
 public:
  TidiedName() = default;
  explicit TidiedName(std::string path);
  TidiedName(TidiedName&& other) noexcept;
  TidiedName& operator=(TidiedName&& other) noexcept;
  ~TidiedName();

  const std::string& path() const { return path_; }
  bool empty() const { return path_.empty(); }
  /// Leaves the file alone from now on.
  void keep();

 private:
  std::string path_;
  int place_ = -1;  ///< among those that the handler removes; -1: none was free
};

}  // namespace tandem::traces
