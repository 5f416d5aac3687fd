#include "runtime/base/text_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/input_error.h"
#include "runtime/base/nearest.h"

namespace tandem {
namespace {

constexpr std::size_t max_bytes = 1'000'000;

std::string file_beside(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  const std::string near = nearest(path.filename().string(), names);
  return near.empty() ? "" : "; did you mean `" + (path.parent_path() / near).string() + "`?";
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

[[noreturn]] void refuse_unreadable(const std::string& path, int reason) {
  throw InputError({.file = path},
                   std::string("cannot be read: ") + std::strerror(reason) + (reason == ENOENT ? file_beside(path) : ""));
}

File opened(const std::string& path) {
  File file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) refuse_unreadable(path, errno);
  return file;
}

/// Those that the file has, `most` at most.
std::string first_bytes(const std::string& path, std::size_t most) {
  const File file = opened(path);
  std::string bytes;
  std::array<char, 1U << 14> block;
  while (bytes.size() < most) {
    const std::size_t count = std::fread(block.data(), 1, std::min(block.size(), most - bytes.size()), file.get());
    if (count == 0) break;
    bytes.append(block.data(), count);
  }
  if (std::ferror(file.get()) != 0) refuse_unreadable(path, errno);
  return bytes;
}

/// Returns the length of the UTF-8 character that starts at `at`, or 0 (RFC 3629: no overlong forms, no surrogates, up to
/// U+10FFFF).
std::size_t character_length(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> std::uint32_t { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  const std::uint32_t first = byte(at);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  std::uint32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
    code = code << 6U | (byte(at + i) & 0x3FU);
  }
  constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return first < 0xC0 || code < smallest[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

std::optional<std::size_t> first_bad_byte(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = text[at] == '\0' ? 0 : character_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

}  // namespace

void check_text(const std::string& text, const std::string& file, const std::string& expected) {
  const Place place{.file = file};
  if (text.size() > max_bytes) throw InputError(place, "is larger than 1 MB, expected " + expected);
  if (const auto bad = first_bad_byte(text))
    throw InputError(place, "byte " + std::to_string(*bad) + " is not UTF-8 text, expected " + expected);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) throw InputError(place, "is empty, expected " + expected);
}

std::string read_text_file(const std::string& path, const std::string& expected) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw InputError({.file = path}, "is a folder, expected " + expected);
  std::string text = first_bytes(path, max_bytes + 1);
  check_text(text, path, expected);
  return text;
}

std::string read_bytes(const std::string& path) { return first_bytes(path, std::numeric_limits<std::size_t>::max()); }

}  // namespace tandem
