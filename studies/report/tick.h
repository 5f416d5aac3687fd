#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/base/units.h"

namespace tandem::studies {

/// The unit of the page's columns of times: a 4-billionth of the step, so that each of its dates is a number of 32 bits.
class Tick {
 public:
  explicit Tick(Seconds step) : seconds_(step > 0 ? step / most : 1) {}

  Seconds seconds() const { return seconds_; }
  std::int64_t number_at(Seconds date) const { return std::llround(date / seconds_); }

 private:
  static constexpr double most = 4e9;
  Seconds seconds_;
};

}  // namespace tandem::studies
