#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/sparse_device.h"

// A thread for each query.
namespace tandem {
namespace {

struct WindowSelect {
  static constexpr int vector = 1;
  DevicePositions query_positions;
  const std::int32_t* compressed;
  std::int32_t* chosen;
  std::int64_t queries, most, listed;
  std::int32_t window, ratio, singles;

  template <int count>
  TANDEM_DEVICE void at(std::int64_t row) const {
    const std::int32_t query = query_positions.at(row % queries);
    std::int32_t* to = chosen + row * most;
    std::int32_t* const end = to + most;
    for (std::int32_t key = larger(0, query - window + 1); key <= query; ++key) *to++ = key;
    if (listed > 0) {
      const std::int32_t* const names = compressed + row * listed;
      for (std::int64_t j = 0; j < listed && names[j] >= 0; ++j) *to++ = singles + names[j];
    } else {
      const std::int64_t seen = smaller<std::int64_t>((query + 1) / ratio, most - window);
      for (std::int32_t j = 0; j < seen; ++j) *to++ = singles + j;
    }
    while (to < end) *to++ = -1;
  }
};

}  // namespace

void window_select_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  check_shapes(OpKind::window_select, operands, any);
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const DeviceTensor& chosen = operands.back();
  const bool lists = operands.size() == 2;
  const WindowSelect body{DevicePositions(attributes.queries),
                          lists ? operands[0].as<const std::int32_t>() : nullptr,
                          chosen.as<std::int32_t>(),
                          chosen.shape[1],
                          chosen.shape[2],
                          lists ? operands[0].shape[2] : 0,
                          attributes.window,
                          attributes.ratio,
                          attributes.keys.length[0]};
  launch_elementwise("window_select", queue, chosen.shape[0] * chosen.shape[1], false, body);
}

}  // namespace tandem
