// A profile as a file, protobuf and YAML: what is read is what was written, and whatever else is found there is refused.
#include "traces/profile_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/input_error.h"
#include "scenarios/reading/profile.h"
#include "scenarios/reading/profile_yaml.h"
#include "studies/calibrate/kernel_plan.h"
#include "studies/calibrate/profile_yaml.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/traces/damaged_file.h"
#include "traces/dag.pb.h"
#include "traces/kernel_text.h"

namespace tandem::studies::profile_file_test {
namespace {

using testing::HasSubstr;

/// The kernels of steps of every kind, with times that are all different.
Profile sample() {
  KernelPlan plan(1'000'000'000'000);
  add_memory_bound({DType::bf16}, plan);
  add_probes({DType::f32, DType::f8}, plan);
  Profile profile{
      .origin = {"host", "a \"CPU\"", "BLAS 1", "2026-01-02T03:04:05Z", "0.1", 2}, .kernels = {}, .collectives = {}, .site = {}};
  for (const TimedKernel& kernel : plan.kernels()) {
    const Seconds time = 1e-6 * static_cast<double>(profile.kernels.size() + 1);
    profile.kernels.push_back({kernel, {time, time / 2, time * 1.5, 7}});
  }
  const Timing timing{1e-4, 0.5e-4, 2e-4, 40};
  profile.collectives.push_back({.op = OpKind::all_gather, .members = 4, .bytes = 65536, .timing = timing});
  profile.collectives.push_back({.op = OpKind::all_reduce, .members = 16, .machines = 2, .bytes = 4096, .timing = timing});
  return profile;
}

Profile small() {
  Profile profile = sample();
  profile.kernels.resize(20);
  return profile;
}

TEST(ProfileFile, HoldsTheWholeProfile) {
  const Profile profile = sample();
  ASSERT_EQ(first_flaw(profile), "");
  ASSERT_GT(profile.kernels.size(), 300U);
  const TemporaryFolder folder;
  write_bytes(folder / "p", to_bytes(profile));
  EXPECT_TRUE(is_profile_file(folder / "p"));
  EXPECT_TRUE(to_bytes(read_profile(folder / "p")) == to_bytes(profile));
}

MeasuredKernel elementwise(OpKind op, std::int64_t elements, Seconds time, const OpAttributes& attributes = {}) {
  const OperandType type{Shape(elements), DType::f32};
  std::vector<OperandType> operands{type, type};
  if (op == OpKind::add) operands.push_back(type);
  return {{op, operands, attributes}, {time, time, time, 1}};
}

// A copy of 1000 numbers moves 8000 bytes in 2 us, 4 GB/s; the larger sum 120,000 bytes in 40 us, 3 GB/s.
TEST(ProfileFile, SaysHowMuchOfTheCopysBandwidthAnOperationReaches) {
  Profile profile{.origin = {}, .kernels = {}, .collectives = {}, .site = {}};
  profile.kernels.push_back(elementwise(OpKind::scale, 1000, 2e-6, ScaleAttributes{}));
  profile.kernels.push_back(elementwise(OpKind::add, 100, 1e-6));
  profile.kernels.push_back(elementwise(OpKind::add, 10000, 40e-6));
  EXPECT_THAT(to_yaml(profile), testing::HasSubstr("    add: [0.75, 120000]\n    scale: [1.00, 8000]\n"));
}

// The sum of 1000 numbers moves 12,000 bytes, a quarter of the way from a copy of 8000 in 2 us to one of 24,000 in 3 us.
TEST(ProfileFile, HoldsAnOperationAgainstACopyOfAsManyBytes) {
  Profile profile{.origin = {}, .kernels = {}, .collectives = {}, .site = {}};
  profile.kernels.push_back(elementwise(OpKind::scale, 3000, 3e-6, ScaleAttributes{}));
  profile.kernels.push_back(elementwise(OpKind::scale, 1000, 2e-6, ScaleAttributes{}));
  profile.kernels.push_back(elementwise(OpKind::add, 1000, 3e-6));
  EXPECT_THAT(to_yaml(profile), testing::HasSubstr("    add: [0.75, 12000]\n    scale: [1.00, 24000]\n"));
}

/// The file of a content, as if it were of `version`.
std::string sealed(const file::Content& content, std::uint32_t version) {
  file::File file;
  EXPECT_TRUE(file.ParseFromString(resealed(to_bytes(small()), content.SerializeAsString())));
  file.set_version(version);
  return file.SerializeAsString();
}

/// The table of the collectives, the last column before version 4, with the operations numbered as before version 3, behind
/// the kernels. Columns hold differences, so that the first number moves all.
file::Table& collectives_of_old(file::Content& content) {
  constexpr int columns_of_old = 8;  // six of the origin, kernels and collectives
  file::Table& table = *content.mutable_tables(0);
  table.mutable_columns()->DeleteSubrange(columns_of_old, table.columns_size() - columns_of_old);
  file::Table& collectives = *table.mutable_columns(table.columns_size() - 1)->mutable_items();
  file::Column& operations = *collectives.mutable_columns(0);
  constexpr int all_reduce = 41;
  operations.set_integers(0, operations.integers(0) + all_reduce);
  return collectives;
}

TEST(ProfileFile, OfTheSecondVersionIsRead) {
  const Profile profile = small();
  file::Content content;
  ASSERT_TRUE(content.ParseFromString(content_of(to_bytes(profile))));
  collectives_of_old(content);
  const TemporaryFolder folder;
  write_bytes(folder / "old", sealed(content, 2));
  EXPECT_EQ(to_bytes(read_profile_file(folder / "old")), to_bytes(profile));
}

// Their collectives have numbers behind those of as many kernels as there were.
TEST(ProfileFile, OfTheFourthAndTheEighthVersionAreRead) {
  const Profile profile = small();
  for (const auto& [version, all_reduce] : {std::pair{4U, 58}, {8U, 78}}) {
    file::Content content;
    ASSERT_TRUE(content.ParseFromString(content_of(to_bytes(profile))));
    constexpr int collectives = 7;  // the column after six of the origin and the kernels
    file::Column& operations = *content.mutable_tables(0)->mutable_columns(collectives)->mutable_items()->mutable_columns(0);
    operations.set_integers(0, operations.integers(0) + all_reduce);
    const TemporaryFolder folder;
    write_bytes(folder / "old", sealed(content, version));
    EXPECT_EQ(to_bytes(read_profile_file(folder / "old")), to_bytes(profile));
  }
}

// The first version had no column of machines, which is the last column of the last list.
TEST(ProfileFile, OfTheFirstVersionIsRead) {
  Profile profile = small();
  profile.collectives.pop_back();
  file::Content content;
  ASSERT_TRUE(content.ParseFromString(content_of(to_bytes(profile))));
  file::Table& collectives = collectives_of_old(content);
  ASSERT_EQ(collectives.columns_size(), 8);
  collectives.mutable_columns()->RemoveLast();
  const TemporaryFolder folder;
  write_bytes(folder / "old", sealed(content, 1));
  EXPECT_EQ(to_bytes(read_profile_file(folder / "old")), to_bytes(profile));
  write_bytes(folder / "mislabelled", sealed(content, 2));
  EXPECT_THROW(read_profile_file(folder / "mislabelled"), InputError);
  write_bytes(folder / "unknown", sealed(content, 14));
  EXPECT_THROW(read_profile_file(folder / "unknown"), InputError);
}

/// A measured kernel whose attributes gained fields since version 2 began, with their defaults.
MeasuredKernel routing_kernel() {
  const OperandType logits{Shape(8, 4), DType::f32}, gates{Shape(8, 2), DType::f32}, slots{Shape(8, 2), DType::i32};
  return {{OpKind::route, {logits, gates, slots}, RoutingAttributes{.top_k = 2, .block = 16, .slots = {4, 4, 4, 4}}},
          {1e-6, 1e-6, 1e-6, 1}};
}

// The second version began without the last columns of what routes, from `load` on.
constexpr int fields_of_routing = 20, newer_fields_of_routing = 10;
TEST(ProfileFile, WithoutNewerFieldsIsRead) {
  Profile profile = small();
  profile.kernels = {routing_kernel()};
  file::Content content;
  ASSERT_TRUE(content.ParseFromString(content_of(to_bytes(profile))));
  std::size_t kinds = 0;
  file::Table& kernels = *content.mutable_tables(0)->mutable_columns(6)->mutable_items();
  for (file::Column& column : *kernels.mutable_columns()) {
    if (!column.has_items() || column.items().columns_size() != fields_of_routing) continue;
    file::Table& attributes = *column.mutable_items();
    for (int i = 0; i < newer_fields_of_routing; ++i) attributes.mutable_columns()->RemoveLast();
    ++kinds;
  }
  ASSERT_EQ(kinds, 1U);
  collectives_of_old(content);
  const TemporaryFolder folder;
  write_bytes(folder / "old", sealed(content, 2));
  EXPECT_EQ(to_bytes(read_profile_file(folder / "old")), to_bytes(profile));
}

TEST(KernelText, OfRoutingMayEndBeforeItsNewerFields) {
  const std::string text = traces::to_text(routing_kernel().kernel);
  const std::string newer = " 0 0 0 0 1 0 0 0 0 0";  // no load, no expert choice, softmax, behind the choice, gates as they are,
                                                     // no bias, balance of the micro-batch, groups by their sums, not hashed
  ASSERT_TRUE(text.ends_with(newer)) << text;
  EXPECT_EQ(traces::to_text(kernel_of_text(text.substr(0, text.size() - newer.size()))), text);
}

TEST(ProfileFile, IsTheSameInYaml) {
  const Profile profile = sample();
  const Profile read = profile_of_yaml(to_yaml(profile), "p.yaml");
  ASSERT_EQ(read.kernels.size(), profile.kernels.size());
  for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
    const auto& [kernel, timing] = profile.kernels[i];
    const auto& [found, found_timing] = read.kernels[i];
    ASSERT_EQ(traces::to_text(found), traces::to_text(kernel));
    ASSERT_TRUE(found.attributes == kernel.attributes);
    ASSERT_EQ(cost_of(found).bytes, cost_of(kernel).bytes);
    ASSERT_NEAR(found_timing.median, timing.median, 1e-5 * timing.median);
    ASSERT_NEAR(found_timing.highest, timing.highest, 1e-5 * timing.highest);
    ASSERT_EQ(found_timing.samples, timing.samples);
  }
  ASSERT_EQ(read.collectives.size(), profile.collectives.size());
  EXPECT_EQ(read.collectives[0].bytes, 65536);
  for (std::size_t i = 0; i < read.collectives.size(); ++i) {
    const MeasuredCollective &found = read.collectives[i], &written = profile.collectives[i];
    EXPECT_EQ(found.op, written.op);
    EXPECT_EQ(found.members, written.members);
    EXPECT_EQ(found.machines, written.machines);
    EXPECT_EQ(found.bytes, written.bytes);
    EXPECT_NEAR(found.timing.median, written.timing.median, 1e-5 * written.timing.median);
  }
  EXPECT_EQ(read.origin.device, profile.origin.device);
  EXPECT_EQ(read.origin.threads, 2);
  const TemporaryFolder folder;
  write_bytes(folder / "p.yaml", to_yaml(profile));
  EXPECT_FALSE(is_profile_file(folder / "p.yaml"));
  EXPECT_EQ(read_profile(folder / "p.yaml").kernels.size(), profile.kernels.size());
}

/// What `read_profile_file` says of these bytes; empty when it takes them.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder / "p";
  write_bytes(path, bytes);
  try {
    EXPECT_TRUE(to_bytes(read_profile_file(path)) == bytes);
    return "";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(path + ": "));
    EXPECT_THAT(error.what(), HasSubstr("tandem calibrate --out"));
    return error.what();
  }
}

TEST(ProfileFile, RefusesOtherFiles) {
  EXPECT_THAT(refusal(""), HasSubstr("is no tandem-profile file"));
  EXPECT_THAT(refusal("kernels: []\n"), HasSubstr("is no tandem-profile file"));
  EXPECT_THROW(read_profile_file("/no/such/file"), InputError);
  EXPECT_THROW(read_profile_file("/tmp"), InputError);
}

TEST(ProfileFile, RefusesEveryTruncationAndFlippedBit) { expect_damage_is_refused(to_bytes(small()), 29, refusal); }

TEST(ProfileFile, SurvivesAnyContentThatIsSealed) {
  const TemporaryFolder folder;
  const Sealed found = try_sealed_contents(to_bytes(sample()), 400, [&](const std::string& changed) {
    write_bytes(folder / "p", changed);
    try {
      EXPECT_EQ(first_flaw(read_profile_file(folder / "p")), "");
      return true;
    } catch (const InputError&) {
      return false;
    }
  });
  EXPECT_GT(found.refused, 80);
  EXPECT_GT(found.taken, 0);
}

TEST(ProfileFile, RefusesKernelsThatCannotBe) {
  const auto flaw_of = [](const auto& change) {
    Profile profile = small();
    change(profile);
    EXPECT_EQ(refusal(to_bytes(profile)).empty(), first_flaw(profile).empty());
    return first_flaw(profile);
  };
  EXPECT_EQ(flaw_of([](Profile&) {}), "");
  EXPECT_THAT(flaw_of([](Profile& p) { p.kernels[3].kernel.operands.clear(); }), HasSubstr("kernel 3"));
  EXPECT_THAT(flaw_of([](Profile& p) { p.kernels[3].kernel.op = OpKind::send; }), HasSubstr("kernel 3"));
  EXPECT_THAT(flaw_of([](Profile& p) { p.kernels[3].kernel.operands[0].shape.dims[0] = -4; }), HasSubstr("kernel 3"));
  EXPECT_THAT(flaw_of([](Profile& p) { p.kernels[3].timing.median = 0; }), HasSubstr("no time that can be"));
  EXPECT_THAT(flaw_of([](Profile& p) { p.kernels[3].timing.highest = NAN; }), HasSubstr("no time that can be"));
  EXPECT_THAT(flaw_of([](Profile& p) { p.kernels[3].timing.samples = 0; }), HasSubstr("no time that can be"));
  EXPECT_THAT(flaw_of([](Profile& p) { p.collectives[0].op = OpKind::gemm; }), HasSubstr("collective 0"));
  EXPECT_THAT(flaw_of([](Profile& p) { p.collectives[1].machines = 3; }), HasSubstr("collective 1 has members that cannot be"));
  EXPECT_THAT(flaw_of([](Profile& p) { p.collectives[1].machines = 0; }), HasSubstr("collective 1"));
  EXPECT_THAT(flaw_of([](Profile& p) { p.collectives[1].timing.samples = 0; }), HasSubstr("collective 1 has no time"));
}

TEST(KernelText, RefusesWhatItDidNotWrite) {
  const std::string good = "gemm fp32[2,3] fp32[4,3] fp32[2,4] | gemm 0 1 0";
  EXPECT_EQ(traces::to_text(kernel_of_text(good)), good);
  for (const char* bad : {"", "gemmm | none", "gemm fp33[2] | none", "gemm fp32[2 | none", "gemm fp32[2,a] | none",
                          "gemm fp32[1,1,1,1,1] | none", "gemm fp32[2,3]", "gemm | gemmm", "gemm | gemm 0 1", "gemm | gemm 0 1 2",
                          "gemm | gemm 0 1 0 0", "adam | adam x", "route | routing 99999999999999"})
    EXPECT_THROW(kernel_of_text(bad), std::invalid_argument) << bad;
}

TEST(ProfileYaml, SaysWhereItIsWrong) {
  const auto refused = [](const std::string& text) -> std::string {
    try {
      profile_of_yaml(text, "p.yaml");
      return "";
    } catch (const InputError& error) {
      return error.what();
    }
  };
  const std::string kernel = "gemm fp32[2,3] fp32[4,3] fp32[2,4] | gemm 0 1 0";
  const auto row = [](const std::string& text) { return "kernels:\n  - \"" + text + "\"\n"; };
  EXPECT_EQ(refused(row(kernel + " = 2 1 3 5")), "");
  EXPECT_THAT(refused("machine: {backend: host}\n"), HasSubstr("kernels is missing"));
  EXPECT_THAT(refused("kernels: []\nkernel: []\n"), HasSubstr("p.yaml:2:1: profile has no field `kernel`"));
  EXPECT_THAT(refused("kernels:\n  - [1, 2]\n"), HasSubstr("p.yaml:2:5: is a list, expected a row that ends with `= MEDIAN"));
  for (const char* times : {"", " = 2 1 3", " = 2 1 x 5", " = 2 1 3 5 7", " = 2 1 3 5.5"})
    EXPECT_THAT(refused(row(kernel + times)), HasSubstr("p.yaml:2:5: ")) << times;
  EXPECT_THAT(refused(row("gemm = 2 1 3 5")), HasSubstr("p.yaml:2:5: the kernel `gemm`: ends too early"));
  EXPECT_THAT(refused(row(kernel + " = 1 2 3 5")), HasSubstr("no time that can be"));
  EXPECT_THAT(refused(row(kernel + " = nan 1 3 5")), HasSubstr("p.yaml"));
  EXPECT_THAT(refused(row("gemm fp32[2] | gemm 0 1 0 = 2 1 3 5")), HasSubstr("does not take"));
  EXPECT_THAT(refused("kernels: []\ncollectives:\n  - \"all_reduced 2 8 = 2 1 3 5\"\n"),
              HasSubstr("no collective `all_reduced`"));
  const auto collective = [&](const std::string& text) {
    return refused("kernels: []\ncollectives:\n  - \"" + text + " = 2 1 3 5\"\n");
  };
  EXPECT_EQ(collective("all_reduce 2 4096"), "");
  EXPECT_EQ(collective("all_reduce 4 4096 on 2"), "");
  for (const char* bad : {"all_reduce 2", "all_reduce 4 4096 2", "all_reduce 4 4096 on", "all_reduce 4 4096 on 2 3"})
    EXPECT_THAT(collective(bad), HasSubstr("expected OPERATION MEMBERS BYTES [on MACHINES]")) << bad;
  EXPECT_THAT(collective("all_reduce 4 4096 on 3"), HasSubstr("members that cannot be"));
}

}  // namespace
}  // namespace tandem::studies::profile_file_test
