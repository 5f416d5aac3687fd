#include "studies/report/packed_column.h"

#include <zlib.h>

#include <bit>
#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <stdexcept>

namespace tandem::studies {
namespace {

static_assert(std::endian::native == std::endian::little);

std::string packed_bytes(const void* data, std::size_t size) {
  uLongf length = compressBound(size);
  std::string deflated(length, '\0');
  if (compress2(reinterpret_cast<Bytef*>(deflated.data()), &length, static_cast<const Bytef*>(data), size,
                Z_DEFAULT_COMPRESSION) != Z_OK)
    throw std::runtime_error("zlib refuses a column of the report");
  deflated.resize(length);
  const std::size_t padding = (3 - length % 3) % 3;
  deflated.append(padding, '\0');
  using Characters = boost::archive::iterators::base64_from_binary<boost::archive::iterators::transform_width<const char*, 6, 8>>;
  std::string text(Characters(deflated.data()), Characters(deflated.data() + deflated.size()));
  text.replace(text.size() - padding, padding, padding, '=');
  return text;
}

}  // namespace

std::string packed(const std::vector<std::uint32_t>& numbers) {
  return packed_bytes(numbers.data(), numbers.size() * sizeof numbers[0]);
}
std::string packed(const std::vector<std::int16_t>& numbers) {
  return packed_bytes(numbers.data(), numbers.size() * sizeof numbers[0]);
}

}  // namespace tandem::studies
