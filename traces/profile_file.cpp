#include "traces/profile_file.h"

#include <algorithm>
#include <fstream>

#include "traces/own_file.h"

namespace tandem {
namespace {

constexpr Format profile_format{.name = "tandem-profile", .version = 1, .written_by = "tandem calibrate --out"};

static_assert(names_every_field<Profile>() && names_every_field<ProfileOrigin>() && names_every_field<MeasuredCollective>());

}  // namespace

std::string to_bytes(const Profile& profile) {
  file::Content content;
  write_table(profile, *content.add_tables());
  return seal(profile_format, content);
}

bool is_profile_file(const std::string& path) { return begins_as(profile_format, path); }

Profile read_profile_file(const std::string& path) {
  const file::Content content = unseal(profile_format, path);
  try {
    if (content.tables_size() != 1) throw CorruptTable("it has not one table");
    Profile profile;
    read_table(content.tables(0), profile);
    if (const std::string flaw = first_flaw(profile); !flaw.empty()) throw CorruptTable(flaw);
    return profile;
  } catch (const CorruptTable& flaw) {
    throw corrupt(profile_format, path, flaw.what());
  }
}

}  // namespace tandem
