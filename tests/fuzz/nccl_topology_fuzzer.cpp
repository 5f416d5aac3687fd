// NCCL's topology in XML.
#include "runtime/base/text_file.h"
#include "tests/fuzz/target.h"
#include "topology/fabric.h"
#include "topology/nccl_topology.h"

namespace tandem::fuzz {
namespace {

/// As scenarios/reading/nccl_topology.cpp reads it, which turns both errors into sentences.
void read_topology(const std::string& bytes) {
  check_text(bytes, "input.xml", "NCCL's topology in XML");
  try {
    topology::network_of(topology::read_nccl_topology(bytes));
  } catch (const topology::XmlError&) {
  } catch (const topology::TopologyError&) {
  }
}

[[maybe_unused]] const Registered nccl_topology({
    {.name = "nccl-topology",
     .read = read_topology,
     .seeds = [] { return repository_files("tests/topology/data", ".xml"); },
     .words_of = {"topology/nccl_topology.cpp"}},
});

}  // namespace
}  // namespace tandem::fuzz
