#include "sim/gemm_cost.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "runtime/ops/batched_gemm.h"
#include "runtime/ops/head_gemm.h"
#include "runtime/ops/operands.h"

namespace tandem::sim {
namespace {

constexpr std::int64_t splits[] = {1, 2, 4, 8, 16};
constexpr std::int64_t row_of_shared_memory = 128;  // bytes
constexpr double hidden_drain = 0.5;
constexpr double bytes_of_partial_sum = 8;  // fp32, written and read

constexpr std::int64_t parts(std::int64_t size, std::int64_t part) { return (size + part - 1) / part; }

/// What follows the last wave of tiles: nothing, or another product.
enum class Followed : std::uint8_t {
  by_nothing,
  by_a_product
};

struct CutTime {
  GemmCut cut;
  Seconds time = std::numeric_limits<Seconds>::infinity();
};

/// The products of a kernel, with all that does not depend on how they are cut into tiles.
class Products {
 public:
  Products(const Device& device, std::span<const GemmBatch> products, const GemmTypes& types, Clock clock)
      : efficiency_(device.efficiency.gemm[static_cast<std::size_t>(computed_like(device, types.operands))]),
        products_(products) {
    if (!is_tiled(device, types.operands))
      throw std::logic_error(device.name + " states no tiles for products in " + std::string(name_of(types.operands)));
    multiprocessors_ = device.multiprocessors;
    const double rate = efficiency_.rate * (types.block_scaled ? efficiency_.block_scaled : 1);
    flops_ = rate * product_peak(device, types.operands) / static_cast<double>(multiprocessors_);
    slowdown_ = clock == Clock::sustained ? efficiency_.sustained : 1;
    operand_ = types.operands;
    result_bytes_ = size_of(types.result) * (types.accumulate ? 2 : 1);
    for (const auto& [size, count] : products) {
      bytes_ += count * (size_of(operand_, (size.m + size.n) * size.k) + size.m * size.n * result_bytes_);
      results_ += static_cast<double>(count * size.m * size.n);
    }
    moving_ = static_cast<double>(bytes_) / (device.efficiency.memory * device.memory_bandwidth);
  }

  CutTime best(Followed followed = Followed::by_nothing) const {
    CutTime best;
    for (const GemmTile& tile : efficiency_.tiles)
      for (const std::int64_t split : splits)
        if (const Seconds time = time_of({tile, split}, followed); time < best.time) best = {{tile, split}, time};
    return best;
  }

  Seconds launch() const { return efficiency_.launch; }
  Seconds on_stream() const { return efficiency_.on_stream; }
  Seconds with_bytes(Seconds computing) const { return std::max(computing, moving_); }

 private:
  const GemmEfficiency& efficiency_;
  std::span<const GemmBatch> products_;
  DType operand_ = DType::bf16;
  std::int64_t multiprocessors_ = 0, result_bytes_ = 0, bytes_ = 0;
  FlopsPerSecond flops_ = 0;  ///< of one multiprocessor
  double slowdown_ = 1, results_ = 0;
  Seconds moving_ = 0;

  Seconds time_of(const GemmCut& cut, Followed followed) const {
    const auto [m, n] = cut.tile;
    const std::int64_t granule = row_of_shared_memory * 8 / size_of(operand_, 8);
    std::int64_t tiles = 0, depths = 0;
    for (const auto& [size, count] : products_) {
      const std::int64_t of_batch = cut.split * count * parts(size.m, m) * parts(size.n, n);
      tiles += of_batch;
      depths += of_batch * parts(parts(size.k, cut.split), granule) * granule;
    }
    if (tiles == 0) return 0;
    const auto waves = static_cast<double>(parts(tiles, multiprocessors_));
    const double depth = static_cast<double>(depths) / static_cast<double>(tiles);
    const double area = static_cast<double>(m) * n;
    const Seconds step = std::max(2 * area / flops_, static_cast<double>(size_of(operand_, 2 * (m + n))) / 2 / efficiency_.feed);
    const Seconds drain = area * static_cast<double>(result_bytes_ * multiprocessors_) / efficiency_.store;
    const double last_drain = followed == Followed::by_a_product ? hidden_drain : 1,
                 drains = last_drain + (waves - 1) * hidden_drain;
    Seconds time = waves * depth * step / slowdown_ + drains * drain;
    if (cut.split > 1)
      time += efficiency_.split + bytes_of_partial_sum * static_cast<double>(cut.split) * results_ / efficiency_.store;
    return time;
  }
};

}  // namespace

DType computed_like(const Device& device, DType type) {
  return type == DType::f32 && device.efficiency.tf32 && device.peak[static_cast<std::size_t>(DType::bf16)] > 0 ? DType::bf16
                                                                                                                : type;
}

FlopsPerSecond product_peak(const Device& device, DType type) {
  const DType like = computed_like(device, type);
  return device.peak[static_cast<std::size_t>(like)] / (like == type ? 1 : 2);
}

bool is_tiled(const Device& device, DType type) {
  const auto index = static_cast<std::size_t>(computed_like(device, type));
  return device.multiprocessors > 0 && device.peak[index] > 0 && !device.efficiency.gemm[index].tiles.empty();
}

std::vector<GemmBatch> products_of(const TimedKernel& kernel) {
  const OperandType &a = kernel.operands.at(0), &b = kernel.operands.at(1), &c = kernel.operands.at(2);
  if (const auto* one = std::get_if<GemmAttributes>(&kernel.attributes)) return {{gemm_product(a, b, c, *one).size}};
  if (const auto* batched = std::get_if<BatchedGemmAttributes>(&kernel.attributes)) {
    const auto [size, count] = batched_gemm_size(a.shape, b.shape, c.shape, *batched);
    return {{size, count}};
  }
  if (const auto* of_heads = std::get_if<HeadGemmAttributes>(&kernel.attributes)) {
    const std::vector<MatrixProduct> products = head_gemm_products(a.shape, b.shape, c.shape, *of_heads);
    return {{products.front().size, std::ssize(products)}};
  }
  std::vector<GemmBatch> batches;
  for (const MatrixProduct& product : grouped_gemm_products(a, b, c, std::get<GroupedGemmAttributes>(kernel.attributes))) {
    if (!batches.empty() && batches.back().size == product.size) {
      ++batches.back().count;
    } else {
      batches.push_back({product.size});
    }
  }
  return batches;
}

GemmTypes types_of(const TimedKernel& kernel) {
  GemmTypes types{.operands = kernel.operands.at(0).dtype,
                  .result = kernel.operands.at(2).dtype,
                  .block_scaled = kernel.operands.at(0).scaling == Scaling::blocks_32};
  if (const auto* one = std::get_if<GemmAttributes>(&kernel.attributes)) types.accumulate = one->accumulate;
  if (const auto* grouped = std::get_if<GroupedGemmAttributes>(&kernel.attributes)) types.accumulate = grouped->accumulate;
  if (const auto* of_heads = std::get_if<HeadGemmAttributes>(&kernel.attributes)) types.accumulate = of_heads->transpose_a;
  return types;
}

Seconds gemm_time(const Device& device, std::span<const GemmBatch> products, const GemmTypes& types, Clock clock) {
  const Products all(device, products, types, clock);
  return all.launch() + all.with_bytes(all.best().time);
}

Seconds gemm_time_on_streams(const Device& device, std::span<const GemmBatch> products, const GemmTypes& types, Clock clock) {
  Seconds time = Products(device, products, types, clock).launch();
  for (const auto& [size, count] : products) {
    if (size.m * size.n * size.k == 0) continue;
    const GemmBatch one{size};
    const Products product(device, {&one, 1}, types, clock);
    time += static_cast<double>(count) * (product.with_bytes(product.best(Followed::by_a_product).time) + product.on_stream());
  }
  return time;
}

GemmCut best_cut(const Device& device, std::span<const GemmBatch> products, const GemmTypes& types, Clock clock) {
  return Products(device, products, types, clock).best().cut;
}

}  // namespace tandem::sim
