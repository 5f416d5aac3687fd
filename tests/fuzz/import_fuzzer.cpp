// Whatever `tandem import` takes: a target import-SOURCE for each row of its table; and what lies beside a config.json.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <filesystem>
#include <sstream>

#include "studies/interop/import_source.h"
#include "tests/fuzz/message_mutator.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/tree_mutator.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/studies/import_samples.h"
#include "traces/chakra.pb.h"

namespace tandem::fuzz {
namespace {

namespace fs = std::filesystem;
using studies::ImportSource;

/// Changes one of the messages, or drops it, or repeats it.
std::string mutate_chakra(const std::string& bytes, Random& random, const std::vector<std::string>& /*words*/) {
  std::istringstream stream(bytes);
  google::protobuf::io::IstreamInputStream in(&stream);
  chakra::GlobalMetadata head;
  std::vector<chakra::Node> nodes;
  bool is_clean_end = false;
  if (!google::protobuf::util::ParseDelimitedFromZeroCopyStream(&head, &in, &is_clean_end)) return {};
  for (chakra::Node node; google::protobuf::util::ParseDelimitedFromZeroCopyStream(&node, &in, &is_clean_end); node.Clear())
    nodes.push_back(node);
  if (nodes.empty() || random() % 16 == 0) {
    mutate_message(head, random);
  } else {
    const std::size_t one = random() % nodes.size();
    if (random() % 8 == 0)
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(one));
    else if (random() % 8 == 0)
      nodes.push_back(nodes[one]);
    else
      mutate_message(nodes[one], random);
  }
  std::ostringstream out;
  google::protobuf::util::SerializeDelimitedToOstream(head, &out);
  for (const chakra::Node& node : nodes) google::protobuf::util::SerializeDelimitedToOstream(node, &out);
  return out.str();
}

/// Where the dictionary of a source comes from.
std::vector<std::string> words_of_source(const ImportSource& source) {
  const std::string folder = "scenarios/interop/" + std::string(source.name.substr(0, source.name.find('-')));
  if (source.name == "megatron-bridge") return {"scenarios/interop/megatron", "scenarios/interop/nemo"};
  if (fs::is_directory(fs::path(TANDEM_SOURCE_DIR) / folder)) return {folder, "scenarios/reading/hf_families.cpp"};
  return {"studies/" + std::string(source.name == "chakra" || source.name == "kineto" ? source.name : "interop")};
}

std::vector<Target> sources() {
  std::vector<Target> found;
  for (const ImportSource& source : studies::import_sources()) {
    const fs::path sample = studies::sample_of(source);
    Target target{.name = "import-" + std::string(source.name),
                  .read =
                      [&source, name = sample.filename().string()](const std::string& bytes) {
                        studies::import_files(source, studies::sample_request(source, scratch_file(name, bytes)));
                      },
                  .seeds = [sample] { return std::vector{read_all(sample)}; },
                  .words_of = words_of_source(source)};
    if (sample.extension() == ".yaml") target.mutate = mutate_yaml;
    if (sample.extension() == ".json") target.mutate = mutate_json;
    if (sample.extension() == ".et") target.mutate = mutate_chakra;
    found.push_back(std::move(target));
  }
  return found;
}

/// The index of a model's weights, or the weights themselves, beside its config.json.
void read_weights(const std::string& name, const std::string& bytes) {
  const TemporaryFolder folder;
  std::ofstream(folder / name, std::ios::binary) << bytes;
  for (const ImportSource& source : studies::import_sources()) {
    if (source.name != "hf") continue;
    std::ofstream(folder / "config.json") << read_all(studies::sample_of(source));
    studies::import_files(source, studies::sample_request(source, folder / "config.json"));
  }
}

[[maybe_unused]] const Registered imports(sources());
[[maybe_unused]] const Registered weights({
    {.name = "weights-index",
     .read = [](const std::string& bytes) { read_weights("model.safetensors.index.json", bytes); },
     .seeds = [] { return std::vector<std::string>{R"({"metadata": {"total_size": 16060522496}, "weight_map": {"a": "b"}})"}; },
     .mutate = mutate_json},
    {.name = "weights",
     .read = [](const std::string& bytes) { read_weights("model.safetensors", bytes); },
     .seeds = [] { return std::vector<std::string>{std::string("\x02\0\0\0\0\0\0\0{}", 10)}; }},
});

}  // namespace
}  // namespace tandem::fuzz
