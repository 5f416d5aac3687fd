#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <boost/archive/iterators/binary_from_base64.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tandem::studies {

/// Returns a column of a page's timeline or critical path: base64 of deflated little-endian numbers.
template <typename Number>
std::vector<Number> column(const nlohmann::json& of, const char* name) {
  const auto text = of["columns"][name].get<std::string>();
  using Bytes =
      boost::archive::iterators::transform_width<boost::archive::iterators::binary_from_base64<std::string::const_iterator>, 8,
                                                 6>;
  const std::size_t digits = text.find_last_not_of('=') + 1;
  std::string deflated;
  for (Bytes byte(text.begin()); deflated.size() < digits * 6 / 8; ++byte) deflated.push_back(*byte);
  std::vector<Number> numbers(1024);
  uLongf size = 0;
  const auto unpack = [&] {
    size = numbers.size() * sizeof(Number);
    return uncompress(reinterpret_cast<Bytef*>(numbers.data()), &size, reinterpret_cast<const Bytef*>(deflated.data()),
                      deflated.size());
  };
  int result = unpack();
  for (; result == Z_BUF_ERROR && numbers.size() < (std::size_t{1} << 28); result = unpack()) numbers.resize(2 * numbers.size());
  EXPECT_EQ(result, Z_OK) << name;
  EXPECT_EQ(size % sizeof(Number), 0U) << name;
  numbers.resize(size / sizeof(Number));
  return numbers;
}

}  // namespace tandem::studies
