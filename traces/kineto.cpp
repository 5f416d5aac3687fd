#include "traces/kineto.h"

#include <filesystem>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "traces/chrome_events.h"

namespace tandem::traces {
namespace {

namespace fs = std::filesystem;

std::string file_of(std::uint32_t world_rank) { return "rank" + std::to_string(world_rank) + ".json"; }

/// Returns whether the folder was not there before.
bool make_folder(const fs::path& path) {
  std::error_code error;
  const bool made = fs::create_directory(path, error);
  if (error == std::errc::file_exists || (!error && !fs::is_directory(path)))
    error = std::make_error_code(std::errc::not_a_directory);
  if (error) throw std::runtime_error("cannot write '" + path.string() + "': " + error.message());
  return made;
}

/// Writes a file for each rank; returns their names.
std::set<std::string> write_ranks(const fs::path& folder, const TraceSource& source, const SourceSpans& spans) {
  std::set<std::string> names;
  const Launches launches(source, spans);
  ChromeEvents events(source, spans, CollectiveNames::nccl, &launches);
  for (const RankTracks& rank : spans.ranks) {
    const std::uint32_t number = source.dag->ranks[rank.rank].world_rank;
    OutputFile out(folder / *names.insert(file_of(number)).first);
    out.write(chrome_head(number, source.dag->info.gpus));
    EventStream stream(out);
    events.write_rank(rank, stream);
    out.write(chrome_tail);
    out.commit();
  }
  return names;
}

}  // namespace

TraceFolder::TraceFolder(std::string path) : path_(std::move(path)), made_(make_folder(path_)) {
  const OutputFile probe(fs::path(path_) / file_of(0));  // never committed
}

TraceFolder::~TraceFolder() {
  std::error_code ignored;
  if (made_) fs::remove(path_, ignored);  // which leaves it alone unless it is empty
}

std::vector<std::string> TraceFolder::write(const std::vector<TraceSource>& sources) {
  std::vector<std::string> others;
  const std::vector<SourceSpans> spans = spans_of(sources);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const fs::path folder = sources.size() > 1 ? fs::path(path_) / sources[i].title : fs::path(path_);
    make_folder(folder);
    const std::set<std::string> written = write_ranks(folder, sources[i], spans[i]);
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const bool is_trace = entry.path().extension() == ".json" || entry.path().extension() == ".gz";
      if (is_trace && !written.contains(entry.path().filename().string())) others.push_back(entry.path().string());
    }
  }
  return others;
}

}  // namespace tandem::traces
