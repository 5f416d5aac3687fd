#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/namespaces.h"

namespace tandem {

/// Is told how far long work is. Whoever wants to show it derives from this; work takes a pointer, which may be null.
class Progress {
 public:
  /// Looks at a part of the work while it lives.
  class Watch {
   public:
    virtual ~Watch() = default;
  };
  using Share = std::function<std::optional<double>()>;

  virtual ~Progress() = default;
  /// Returns whether anybody sees what is told.
  virtual bool is_shown() const = 0;
  /// Another part of the work begins.
  virtual void begin(std::string part) = 0;
  /// Tells which share of the part that began is done, 0 ... 1; absent where nobody knows.
  virtual void show(std::optional<double> share) = 0;
  /// Begins a part that cannot stop to tell: asks `share` for it from another thread until the watch is gone. The work must not
  /// fork meanwhile. May be null.
  virtual std::unique_ptr<Watch> watch(std::string part, Share share) = 0;
  /// Removes what is shown, before something else is written; further progress shows it again.
  virtual void take_away() = 0;
};

/// For work that tells which share of it is done: begins `part`. Empty where nobody sees it; `progress` may be null.
inline std::function<void(double share)> shown_in(Progress* progress, const std::string& part) {
  if (progress == nullptr || !progress->is_shown()) return {};
  progress->begin(part);
  return [progress](double share) { progress->show(share); };
}

/// For work that cannot stop to tell: see `Progress::watch`. `progress` may be null.
inline std::unique_ptr<Progress::Watch> watched(
    Progress* progress, const std::string& part, Progress::Share share = [] { return std::nullopt; }) {
  return progress == nullptr || !progress->is_shown() ? nullptr : progress->watch(part, std::move(share));
}

/// Returns what `work` returns, and shows meanwhile for how long it has been going on.
template <typename Work>
auto shown_while(Progress* progress, const std::string& part, const Work& work) {
  const std::unique_ptr<Progress::Watch> watch = watched(progress, part);
  return work();
}

}  // namespace tandem
