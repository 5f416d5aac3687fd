#pragma once

/// A namespace per top-level folder, each seeing those of the folders below it: the layers of docs/architecture.md. What
/// `runtime/` has is in `tandem` itself, as everybody speaks of tasks, seconds and bytes.
namespace tandem {

namespace topology {}

namespace traces {}

namespace scenarios {
using namespace topology;
using namespace traces;
}  // namespace scenarios

namespace sim {
using namespace topology;
}  // namespace sim

namespace studies {
using namespace topology;
using namespace traces;
using namespace scenarios;
using namespace sim;
}  // namespace studies

namespace cli {
using namespace topology;
using namespace traces;
using namespace scenarios;
using namespace sim;
using namespace studies;
}  // namespace cli

}  // namespace tandem
