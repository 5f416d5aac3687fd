#include "sim/fluid_network.h"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/base/parallel.h"

namespace tandem::sim {
namespace {

/// The loader looks for it in the folders that the program names (RPATH).
constexpr const char* module_file = "tandem_simgrid.so";

MakeNetwork* make_network() {
  static MakeNetwork* const make = [] {
    // Lazily, as SimGrid brings libraries that are never called. It stays open: SimGrid cannot be taken down.
    void* const module = ::dlopen(module_file, RTLD_LAZY | RTLD_LOCAL);
    if (module == nullptr)
      throw std::runtime_error(std::string("SimGrid cannot be loaded: ") + ::dlerror() + "; expected " + module_file +
                               " beside the program, or in lib/tandem where that is installed");
    return reinterpret_cast<MakeNetwork*>(::dlsym(module, "tandem_make_network"));
  }();
  return make;
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
