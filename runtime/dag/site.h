#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/units.h"

namespace tandem {

/// How steps of one site take longer than its presets let expect: learnt from measured steps by `tandem calibrate --runs`
/// (studies/calibrate/site_fit.h). None where `runs` is 0.
struct Site {
  std::int64_t runs = 0;     ///< that it was learnt from
  std::string gpu;           ///< that they had
  std::string framework;     ///< that they ran under
  double kernels = 1;        ///< how many times as long every kernel takes
  double communication = 1;  ///< the same of every collective and transfer
  Seconds overhead = 0;      ///< of each step, before its first kernel: loading data, logging, collecting garbage

  double spread = 1;  ///< how many times as far from this the runs lie as those of one site usually do; 1 at least

  /// What is left to doubt: covariances of ln `kernels`, ln `communication` and `overhead` in seconds; kk, kc, ko, cc, co, oo.
  std::array<double, 6> covariance{};

  bool known() const { return runs > 0; }
  bool operator==(const Site&) const = default;
};

}  // namespace tandem
