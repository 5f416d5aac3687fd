#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace tandem::studies {

/// Returns the bytes of an element of a type, as nccl-tests and rccl-tests name it; 0 for no type.
inline std::int64_t word_of_type(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 18> words{{{"int8", 1},
                                                                             {"uint8", 1},
                                                                             {"char", 1},
                                                                             {"f8e4m3", 1},
                                                                             {"f8e5m2", 1},
                                                                             {"fp8_e4m3", 1},
                                                                             {"fp8_e5m2", 1},
                                                                             {"float8_e4m3", 1},
                                                                             {"float8_e5m2", 1},
                                                                             {"half", 2},
                                                                             {"bfloat16", 2},
                                                                             {"int32", 4},
                                                                             {"uint32", 4},
                                                                             {"int", 4},
                                                                             {"float", 4},
                                                                             {"int64", 8},
                                                                             {"uint64", 8},
                                                                             {"double", 8}}};
  for (const auto& [name, bytes] : words)
    if (name == type) return bytes;
  return 0;
}

}  // namespace tandem::studies
