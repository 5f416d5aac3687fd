#include <gtest/gtest.h>

#include <set>

#include "runtime/ops/operation.h"

namespace tandem::ops_registry_test {
namespace {

TEST(Registry, KernelsHaveACostAndAHostKernelAndCommunicationHasNeither) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < op_kind_count; ++i) {
    const auto kind = static_cast<OpKind>(i);
    const Operation& row = operation(kind);
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second) << "the name is taken";
    EXPECT_EQ(row.cost == nullptr, is_communication(kind));
    EXPECT_EQ(row.host == nullptr, is_communication(kind));
    EXPECT_EQ(row.op_class == OpClass::communication, is_communication(kind));
  }
}

TEST(Registry, NamesAreTheFields) {
  EXPECT_EQ(operation(OpKind::gemm).name, "gemm");
  EXPECT_EQ(operation(OpKind::split_heads).name, "split_heads");
  EXPECT_EQ(operation(OpKind::adam).name, "adam");
  EXPECT_EQ(operation(OpKind::reduce_scatter).name, "reduce_scatter");
  EXPECT_EQ(operation(OpKind::receive).name, "receive");
}

TEST(Attributes, AreComparable) {
  const OpAttributes rms = NormAttributes{.kind = NormKind::rms}, layer = NormAttributes{.kind = NormKind::layer};
  EXPECT_NE(rms, layer);
  EXPECT_EQ(rms, OpAttributes(NormAttributes{}));
  EXPECT_TRUE(rms < layer);
  EXPECT_NE(OpAttributes(GemmAttributes{}), OpAttributes(ScaleAttributes{}));
}

}  // namespace
}  // namespace tandem::ops_registry_test
