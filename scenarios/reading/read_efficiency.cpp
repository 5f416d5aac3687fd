#include <algorithm>
#include <array>
#include <charconv>

#include "runtime/base/si.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/reader.h"
#include "scenarios/reading/sections.h"

namespace tandem::scenarios {
namespace {

constexpr Range<double> share{1e-6, 1};

/// "128x256"
GemmTile tile_of(const YamlNode& node, const std::string& field) {
  GemmTile tile;
  const char *text = node.text.data(), *end = text + node.text.size();
  const auto rows = std::from_chars(text, end, tile.m);
  const bool has_columns = rows.ec == std::errc() && rows.ptr != end && *rows.ptr == 'x';
  const auto columns = has_columns ? std::from_chars(rows.ptr + 1, end, tile.n) : rows;
  constexpr std::int32_t largest = 1024;
  const auto fits = [](std::int32_t size) { return size >= 1 && size <= largest; };
  if (node.kind != YamlNode::Kind::scalar || !has_columns || columns.ec != std::errc() || columns.ptr != end || !fits(tile.m) ||
      !fits(tile.n))
    throw InputError(node.place, field + " holds " + describe(node) + ", expected rows and columns such as 128x256");
  return tile;
}

GemmEfficiency read_gemm(const YamlNode& node, const std::string& path) {
  const Reader gemm(node, path,
                    {"rate", "sustained", "feed_GBps", "store_GBps", "launch_us", "split_us", "on_stream_us", "block_scaled",
                     "tiles", "assumed"});
  GemmEfficiency efficiency{.rate = gemm.number("rate", share),
                            .sustained = gemm.number("sustained", share, 1),
                            .feed = gemm.number("feed_GBps", {1e-3, 1e9}) * giga,
                            .store = gemm.number("store_GBps", {1e-3, 1e9}) * giga,
                            .launch = gemm.number("launch_us", microseconds) * micro,
                            .split = gemm.number("split_us", microseconds) * micro,
                            .on_stream = gemm.number("on_stream_us", microseconds, 0) * micro,
                            .block_scaled = gemm.number("block_scaled", share, 1),
                            .tiles = {},
                            .assumed = gemm.number("assumed", {0, 1}, 0)};
  for (const YamlNode& tile : gemm.child("tiles").items) efficiency.tiles.push_back(tile_of(tile, gemm.full_name("tiles")));
  if (efficiency.tiles.empty()) gemm.fail("tiles", gemm.full_name("tiles") + " is missing, expected a list such as [128x256]");
  return efficiency;
}

/// What the type leaves out, `as` another one has it: {as: fp8, assumed: 0.1}.
YamlNode like_another(const Reader& gemm, const YamlNode& own) {
  const std::string& name = own.find("as")->text;
  const bool is_known = std::ranges::any_of(arithmetic_types, [&](DType type) { return name_of(type) == name; });
  if (!is_known || !gemm.has(name) || gemm.child(name).kind != YamlNode::Kind::mapping)
    throw InputError(own.find("as")->place, gemm.full_name("as") + " is " + describe(*own.find("as")) +
                                                ", expected another type whose products are stated by tiles");
  YamlNode whole = gemm.child(name);
  overlay(whole, YamlNode(own));
  whole.erase("as");
  return whole;
}

/// By type: a rate, a mapping of tiles and speeds, or the name of a type that has it already.
void read_gemms(const YamlNode& node, const std::string& path, Device& device) {
  const Reader gemm(node, path, keys_of(arithmetic_types));
  auto& efficiencies = device.efficiency.gemm;
  for (const DType type : arithmetic_types) {
    const auto index = static_cast<std::size_t>(type);
    if (!(device.peak[index] > 0)) continue;
    const std::string_view name = name_of(type);
    const YamlNode& field = gemm.child(name);
    if (field.kind == YamlNode::Kind::mapping && gemm.has(name)) {
      efficiencies[index] = read_gemm(field.find("as") == nullptr ? field : like_another(gemm, field), gemm.full_name(name));
    } else if (type == DType::f16 && field.kind == YamlNode::Kind::scalar && field.text == name_of(DType::bf16)) {
      efficiencies[index] = efficiencies[static_cast<std::size_t>(DType::bf16)];
    } else {
      efficiencies[index].rate = gemm.number(name, share);
    }
  }
}

AttentionPass read_pass(const Reader& kernel, std::string_view name) {
  const Reader pass(kernel.child(name), kernel.full_name(name), {"rate", "causal", "tile_us"});
  AttentionPass result{
      .rate = {}, .causal = pass.number("causal", share, 1), .tile = pass.number("tile_us", microseconds) * micro};
  const std::vector<double> rates = pass.numbers("rate", share, {});
  if (rates.size() != result.rate.size())
    pass.fail("rate", pass.full_name("rate") + " has " + std::to_string(rates.size()) +
                          " values, expected those of head dimensions 64, 128 and 256");
  std::copy(rates.begin(), rates.end(), result.rate.begin());
  return result;
}

void read_attention(const YamlNode& node, const std::string& path, KernelEfficiency& efficiency) {
  constexpr AttentionKernel fused[] = {AttentionKernel::flash_1, AttentionKernel::flash_2, AttentionKernel::flash_3,
                                       AttentionKernel::cudnn};
  const Reader attention(node, path, {"kernel", "sustained", "unfused", "flash-1", "flash-2", "flash-3", "cudnn"});
  efficiency.attention_sustained = attention.number("sustained", share, 1);
  efficiency.unfused = attention.number("unfused", share, 1);
  efficiency.attention_kernel = read_attention_kernel(attention, "kernel");
  for (const AttentionKernel kernel : fused) {
    const std::string_view name = name_of(kernel);
    if (!attention.has(name)) {
      if (kernel == efficiency.attention_kernel)
        attention.fail("kernel", attention.full_name("kernel") + " is " + std::string(name) + ", whose speed is not stated");
      continue;
    }
    const Reader passes(attention.child(name), attention.full_name(name), {"forward", "backward"});
    AttentionEfficiency& speeds = efficiency.attention[static_cast<std::size_t>(kernel)];
    speeds = {read_pass(passes, "forward"), read_pass(passes, "backward")};
    if (kernel != efficiency.attention_kernel && efficiency.attention_forward > 0) continue;
    efficiency.attention_forward = speeds.forward.rate[1] * speeds.forward.causal * efficiency.attention_sustained;
    efficiency.attention_backward = speeds.backward.rate[1] * speeds.backward.causal * efficiency.attention_sustained;
  }
}

}  // namespace

AttentionKernel read_attention_kernel(const Reader& reader, std::string_view key) {
  return reader.choice<AttentionKernel>(
      key, choices({AttentionKernel::unfused, AttentionKernel::flash_1, AttentionKernel::flash_2, AttentionKernel::flash_3,
                    AttentionKernel::cudnn}));
}

void read_efficiency(const YamlNode& node, const std::string& path, Device& device) {
  const Reader reader(node, path,
                      {"gemm", "attention", "attention_forward", "attention_backward", "memory", "permute", "cast",
                       "element_rate_G", "scan", "cross_entropy", "launch_us", "spread"});
  KernelEfficiency& efficiency = device.efficiency;
  read_gemms(reader.child("gemm"), path + ".gemm", device);
  if (reader.has("attention")) read_attention(reader.child("attention"), path + ".attention", efficiency);
  const auto stated = [](double number) { return number > 0 ? std::optional(number) : std::nullopt; };
  efficiency.attention_forward = reader.number("attention_forward", share, stated(efficiency.attention_forward));
  efficiency.attention_backward = reader.number("attention_backward", share, stated(efficiency.attention_backward));
  efficiency.memory = reader.number("memory", share);
  efficiency.permute = reader.number("permute", share, 1);
  efficiency.cast = reader.number("cast", share, 1);
  efficiency.element_rate = reader.number("element_rate_G", {0, 1000}, 0) * giga;
  efficiency.scan = reader.number("scan", share, 1);
  efficiency.cross_entropy = reader.number("cross_entropy", share, 1);
  efficiency.spread = reader.number("spread", {0, 0.2}, 0);
  efficiency.launch = reader.number("launch_us", microseconds) * micro;
}

}  // namespace tandem::scenarios
