#include "scenarios/reading/profile.h"

#include <spdlog/fmt/fmt.h>

#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"
#include "scenarios/reading/embedded_files.h"
#include "scenarios/reading/profile_yaml.h"
#include "scenarios/reading/reader.h"
#include "traces/profile_file.h"

namespace tandem::scenarios {
namespace {

constexpr const char* profile_field = "profile";
constexpr std::string_view shipped_profiles = "profiles";  // of scenarios/presets
using Kind = YamlNode::Kind;

std::string read_bytes(const std::string& path, const YamlNode& named) {
  errno = 0;
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  std::ifstream in(path, std::ios::binary);
  if (is_folder || !in) {
    const std::vector<std::string> names = embedded_names(shipped_profiles);
    throw InputError(named.place, "the profile " + excerpt(named.text) +
                                      " cannot be read: " + (is_folder ? "Is a directory" : std::strerror(errno)) +
                                      "; expected a file that `tandem calibrate --out` wrote" +
                                      (names.empty() ? "" : ", or one of: " + joined(names)));
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

void add(YamlNode& mapping, const std::string& key, std::string text) {
  YamlNode value = make_scalar(std::move(text), mapping.place);
  value.quoted = true;
  mapping.entries.push_back({key, key, mapping.place, std::move(value)});
}

/// Whether a file whose name does not say so is a profile for people: its first words are those of one.
bool is_readable_profile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::getline(file, line);
  return line.starts_with("# A profile") || line.starts_with("machine:");
}

}  // namespace

Profile read_profile(const std::string& path) {
  if (const EmbeddedFile* file = find_embedded(shipped_profiles, path))
    return profile_of_yaml(std::string(file->text), std::string(file->path));
  const std::string expected = "a profile as `tandem calibrate` writes it";
  if (!is_profile_file(path) && (path.ends_with(".yaml") || is_readable_profile(path)))
    return profile_of_yaml(read_text_file(path, expected), path);
  return read_profile_file(path);
}

void move_profile_to_gpu(YamlNode& cluster) {
  const YamlNode* profile = cluster.find(profile_field);
  YamlNode* gpu = cluster.find("gpu");
  if (profile == nullptr || gpu == nullptr || gpu->kind != Kind::mapping) return;
  const YamlNode moved = *profile;
  cluster.erase(profile_field);
  cluster.find("gpu")->erase(profile_field);
  cluster.find("gpu")->entries.push_back({profile_field, profile_field, moved.place, moved});
}

void resolve_profile(YamlNode* owner, const std::string& folder) {
  YamlNode* named = owner == nullptr || owner->kind != Kind::mapping ? nullptr : owner->find(profile_field);
  if (named == nullptr || named->kind == Kind::mapping) return;
  if (named->kind != Kind::scalar || named->text.empty())
    throw InputError(named->place, "profile is " + describe(*named) +
                                       ", expected the path of a file that `tandem calibrate --out` wrote, or none");
  if (named->text == "none") return owner->erase(profile_field);
  const EmbeddedFile* embedded = find_embedded(shipped_profiles, named->text);
  const std::string path =
      embedded != nullptr ? named->text
                          : std::filesystem::absolute(std::filesystem::path(folder) / named->text).lexically_normal().string();
  const std::string bytes = embedded != nullptr ? std::string(embedded->text) : read_bytes(path, *named);
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  YamlNode resolved = make_node(Kind::mapping, named->place);
  add(resolved, "file", path);
  add(resolved, "contents", fmt::format("{:08x}-{}", crc.checksum(), bytes.size()));
  *named = std::move(resolved);
}

}  // namespace tandem::scenarios
