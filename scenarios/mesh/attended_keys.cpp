#include "scenarios/mesh/attended_keys.h"

#include <algorithm>
#include <set>

#include "runtime/ops/attention_mask.h"
#include "runtime/ops/sparse_attention.h"
#include "scenarios/mesh/colours.h"
#include "scenarios/mesh/positions.h"

namespace tandem::scenarios {
namespace {

std::set<Mixer> kinds_of_attention(const ModelSpec& model) {
  std::set<Mixer> kinds;
  for (std::int64_t layer = 0; layer < model.layers + model.mtp_depth; ++layer) kinds.insert(model.layer_kind(layer).mixer);
  std::erase_if(kinds, [](Mixer mixer) { return !is_attention(mixer); });
  return kinds;
}

/// The blocks that a rank attends to, one after the other.
std::vector<Block> blocks_of(const Scenario& scenario, std::int64_t cp_rank) {
  const ParallelismSpec& p = scenario.parallelism;
  const std::int64_t length = scenario.training.sequence;
  if (p.cp_method == CpMethod::all_gather) return {{positions_of(scenario, cp_rank), whole_run(length)}};
  std::vector<Block> blocks;
  for (std::int64_t hop = 0; hop < p.ring_ranks(); ++hop)
    blocks.push_back(block_after(hop, length, p.has_zigzag_chunks(), cp_rank / p.heads_ranks(), p.ring_ranks()));
  return blocks;
}

/// Pairs of a query and a key in the kernels of a layer of this kind.
std::vector<std::int64_t> pairs_of_layer(const Scenario& scenario, Mixer mixer, std::int64_t cp_rank) {
  const ModelSpec& model = scenario.model;
  const std::int64_t length = scenario.training.sequence;
  const Positions queries = positions_of(scenario, cp_rank);
  if (model.compressed.enabled()) {
    const std::int64_t ratio = has_compressed_keys(mixer) ? model.compressed.ratio_of(mixer) : 0;
    const std::int64_t most = model.compressed.keys_of(mixer, length);
    const SparseAttentionAttributes all = window_and_compressed_keys(model, queries, length, ratio);
    std::vector<std::int64_t> pairs{chosen_pairs(all, all.window + most)};
    if (ratio == 0) return pairs;
    const SparseAttentionAttributes choice = compressed_keys_to_choose(queries, length, ratio);
    for (const std::int64_t keys : {most, length / ratio}) pairs.push_back(chosen_pairs(choice, keys));
    return pairs;
  }
  if (model.indexer.enabled()) {
    const SparseAttentionAttributes choice = keys_to_choose(queries, length);
    return {chosen_pairs(choice, std::min(model.indexer.top_k, length)), chosen_pairs(choice, length)};
  }
  std::vector<std::int64_t> pairs;
  for (const Block& block : blocks_of(scenario, cp_rank))
    pairs.push_back(seen_pairs(seen_keys(scenario, mixer, block), block.queries.count(), block.keys.count()));
  return pairs;
}

/// Whether chunks of documents are as much work for each rank that holds them: all of a document before a query is seen.
bool shares_documents_evenly(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  if (p.cp_layout != CpLayout::document_zigzag || p.dynamic_cp) return false;
  const ModelSpec& model = scenario.model;
  if (!model.causal) return true;
  return !model.compressed.enabled() && std::ranges::all_of(kinds_of_attention(model), [&](Mixer mixer) {
    const AttentionAttributes seen = seen_keys(scenario, mixer, {});
    return seen.window == 0 && seen.chunk == 0;
  });
}

}  // namespace

Block block_after(std::int64_t hop, std::int64_t length, bool zigzag, std::int64_t rank, std::int64_t ranks) {
  return {share_of_positions(length, zigzag, rank, ranks),
          share_of_positions(length, zigzag, (rank - hop + ranks) % ranks, ranks)};
}

AttentionAttributes seen_keys(const Scenario& scenario, Mixer mixer, const Block& block) {
  const ModelSpec& model = scenario.model;
  const auto limit = [&](Mixer of, std::int64_t positions) {
    return mixer == of && positions < scenario.training.sequence ? static_cast<std::int32_t>(positions) : 0;
  };
  return {.causal = model.causal,
          .queries = block.queries,
          .keys = block.keys,
          .window = limit(Mixer::sliding_attention, model.window),
          .chunk = limit(Mixer::chunked_attention, model.attention_chunk)};
}

SparseAttentionAttributes keys_to_choose(const Positions& queries, std::int64_t length) {
  return {.queries = queries, .keys = whole_run(length)};
}

SparseAttentionAttributes compressed_keys_to_choose(const Positions& queries, std::int64_t length, std::int64_t ratio) {
  return {.queries = queries, .keys = whole_run(length / ratio), .ratio = static_cast<std::int32_t>(ratio)};
}

SparseAttentionAttributes window_and_compressed_keys(const ModelSpec& model, const Positions& queries, std::int64_t length,
                                                     std::int64_t ratio) {
  const std::int64_t compressed = ratio > 0 ? length / ratio : 0;
  return {.queries = queries,
          .keys = {.start = {0, 0}, .length = {static_cast<std::int32_t>(length), static_cast<std::int32_t>(compressed)}},
          .window = static_cast<std::int32_t>(std::min(model.window, length)),
          .ratio = static_cast<std::int32_t>(std::max<std::int64_t>(ratio, 1))};
}

std::vector<std::uint32_t> work_of_context_ranks(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  const bool packed = scenario.training.documents.any();
  Colours works;
  std::vector<std::uint32_t> colours;
  for (std::int64_t rank = 0; rank < p.cp; ++rank) {
    std::vector<std::uint64_t> work;
    if (packed) {
      if (!shares_documents_evenly(scenario)) work.push_back(static_cast<std::uint64_t>(rank / p.heads_ranks()));
    } else {
      for (const Mixer mixer : kinds_of_attention(scenario.model))
        std::ranges::copy(pairs_of_layer(scenario, mixer, rank), std::back_inserter(work));
    }
    colours.push_back(static_cast<std::uint32_t>(works.of(work)));
  }
  return colours;
}

}  // namespace tandem::scenarios
