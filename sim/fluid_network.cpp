#include "sim/fluid_network.h"

#include <algorithm>
#include <utility>

#include "runtime/base/open_module.h"
#include "runtime/base/parallel.h"

namespace tandem::sim {
namespace {

MakeNetwork* make_network() {
  static void* const make = function_of_module("tandem_simgrid.so", "tandem_make_network", "SimGrid");
  return reinterpret_cast<MakeNetwork*>(make);
}

}  // namespace

void open_simgrid() { make_network(); }

std::future<void> open_simgrid_beside() {
  keep_threads();
  return std::async(std::launch::async | std::launch::deferred, open_simgrid);
}

std::unique_ptr<FluidNetwork> make_fluid_network(const NetworkParts& parts, FluidNetwork::Callbacks callbacks) {
  return std::unique_ptr<FluidNetwork>(make_network()(parts, std::move(callbacks)));
}

bool FluidNetwork::is_flow(const CollectiveCost& cost, const Layout& layout) {
  return cost.bytes_per_channel > 0 && std::ranges::any_of(layout.paths[cost.paths].crossings,
                                                           [](const Crossing& crossing) { return crossing.multiplicity > 0; });
}

}  // namespace tandem::sim
