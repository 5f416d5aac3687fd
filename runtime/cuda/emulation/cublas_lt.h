#pragma once

namespace tandem::emulation {

/// What cuBLASLt does with products in fp8.
enum class Fp8Products {
  run,
  have_no_algorithm,        ///< the heuristic knows none
  fail_when_they_are_tried  ///< it knows one, which then fails
};

void set_fp8_products(Fp8Products products);

}  // namespace tandem::emulation
