#include "traces/own_file.h"

#include <boost/crc.hpp>
#include <fstream>
#include <stdexcept>

#include "runtime/base/text_file.h"

namespace tandem::traces {
namespace {

/// Returns how a file of the format begins: with its first field, whose tag and length take a byte each.
std::string beginning_of(const Format& format) {
  file::File head;
  head.set_format(format.name);
  return head.SerializeAsString();
}

std::string advice(const Format& format) { return "; expected a file as `" + std::string(format.written_by) + "` writes it"; }

}  // namespace

InputError corrupt(const Format& format, const std::string& path, const std::string& what) {
  return {{path, 0, 0}, "is truncated or corrupt: " + what + advice(format)};
}

std::uint32_t checksum_of(const std::string& bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::string seal(const Format& format, const file::Content& content) {
  file::File file;
  file.set_format(format.name);
  file.set_version(format.version);
  std::string bytes;
  bool whole = content.SerializeToString(file.mutable_content());
  file.set_checksum(checksum_of(file.content()));
  whole = whole && file.SerializeToString(&bytes);
  if (!whole) throw std::runtime_error(std::string(format.name) + ": more than the 2 GB that a file can hold");
  return bytes;
}

bool begins_as(const Format& format, const std::string& path) {
  const std::string beginning = beginning_of(format);
  std::string found(beginning.size(), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(found.data(), static_cast<std::streamsize>(found.size()));
  return in.good() && found == beginning;
}

Unsealed unseal(const Format& format, const std::string& path) {
  const std::string bytes = read_bytes(path);
  const std::string beginning = beginning_of(format);
  if (!bytes.starts_with(beginning))
    throw InputError({path, 0, 0}, "is no " + std::string(format.name) + " file" + advice(format));
  file::File file;
  if (!file.ParseFromString(bytes)) throw corrupt(format, path, "it ends too early");
  const std::uint32_t oldest = format.oldest > 0 ? format.oldest : format.version;
  if (file.version() < oldest || file.version() > format.version) {
    throw InputError({path, 0, 0}, "is of version " + std::to_string(file.version()) + ", this tandem reads version " +
                                       std::to_string(format.version) + advice(format));
  }
  Unsealed unsealed{.content = {}, .version = file.version()};
  if (file.checksum() != checksum_of(file.content()) || !unsealed.content.ParseFromString(file.content()))
    throw corrupt(format, path, "its checksum does not match");
  return unsealed;
}

}  // namespace tandem::traces
