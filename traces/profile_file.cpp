#include "traces/profile_file.h"

#include "traces/own_file.h"

namespace tandem::traces {
namespace {

// Left out are 5 to 7 and 9 to 12: one wrong bit would make another version of them that is read.
constexpr Format profile_format{.name = "tandem-profile", .version = 13, .written_by = "tandem calibrate --out", .oldest = 1};

static_assert(names_every_field<Profile>() && names_every_field<ProfileOrigin>() && names_every_field<MeasuredCollective>());

/// The number that all_reduce has in a file: before version 13 as many kernels as there were came first.
int first_communication_of(std::uint32_t version) { return version < 3 ? 41 : version < 8 ? 58 : version < 13 ? 78 : 0; }

/// Before version 3 there was nothing after `receive`.
OpKind communication_of_version(OpKind op, std::uint32_t version) {
  constexpr int now = static_cast<int>(OpKind::all_reduce);
  const int place = static_cast<int>(op) - first_communication_of(version);
  const OpKind last = version < 3 ? OpKind::receive : OpKind::copy;
  if (place < 0 || place > static_cast<int>(last) - now) throw CorruptTable("a collective is none");
  return static_cast<OpKind>(now + place);
}

/// A collective of a file of version 1, which lay on one machine.
struct CollectiveOfVersion1 {
  OpKind op = OpKind::all_reduce;
  std::int32_t members = 0;
  Bytes bytes = 0;
  Timing timing;
};
struct ProfileOfVersion1 {
  ProfileOrigin origin;
  std::vector<MeasuredKernel> kernels;
  std::vector<CollectiveOfVersion1> collectives;
};

}  // namespace

template <>
inline constexpr auto fields_of<CollectiveOfVersion1> = std::tuple{&CollectiveOfVersion1::op, &CollectiveOfVersion1::members,
                                                                   &CollectiveOfVersion1::bytes, &CollectiveOfVersion1::timing};
template <>
inline constexpr auto fields_of<ProfileOfVersion1> =
    std::tuple{&ProfileOfVersion1::origin, &ProfileOfVersion1::kernels, &ProfileOfVersion1::collectives};

namespace {

Profile profile_of_version_1(const file::Table& table) {
  ProfileOfVersion1 old;
  read_table(table, old);
  Profile profile{.origin = std::move(old.origin), .kernels = std::move(old.kernels), .collectives = {}, .site = {}};
  for (const CollectiveOfVersion1& collective : old.collectives)
    profile.collectives.push_back(
        {.op = collective.op, .members = collective.members, .bytes = collective.bytes, .timing = collective.timing});
  return profile;
}

}  // namespace

std::string to_bytes(const Profile& profile) {
  Profile numbered = profile;
  for (MeasuredCollective& collective : numbered.collectives)
    collective.op = static_cast<OpKind>(static_cast<int>(collective.op) - static_cast<int>(OpKind::all_reduce));
  file::Content content;
  write_table(numbered, *content.add_tables());
  return seal(profile_format, content);
}

bool is_profile_file(const std::string& path) { return begins_as(profile_format, path); }

Profile read_profile_file(const std::string& path) {
  const auto [content, version] = unseal(profile_format, path);
  try {
    if (content.tables_size() != 1) throw CorruptTable("it has not one table");
    Profile profile;
    if (version == 1) {
      profile = profile_of_version_1(content.tables(0));
    } else {
      read_table(content.tables(0), profile);
    }
    for (MeasuredCollective& collective : profile.collectives) collective.op = communication_of_version(collective.op, version);
    if (const std::string flaw = first_flaw(profile); !flaw.empty()) throw CorruptTable(flaw);
    return profile;
  } catch (const CorruptTable& flaw) {
    throw corrupt(profile_format, path, flaw.what());
  }
}

}  // namespace tandem::traces
