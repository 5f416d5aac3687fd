#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ops/attributes.h"
#include "scenarios/spec/scenario.h"
#include "topology/layouts.h"

namespace tandem::scenarios {

/// Tokens that one rank routes together: its part of a micro-batch.
std::int64_t tokens_of_group(const Scenario& scenario);

/// How a node limit binds the choices of a token.
struct NodeLimit {
  std::int64_t nodes = 1;    ///< that a layer's experts lie in, or its groups of experts
  std::int64_t visited = 0;  ///< by one token; 0: any, as more than its choices or the nodes limits nothing
};
NodeLimit node_limit_of(const Scenario& scenario);

/// Nodes that a token's experts lie in at most, as far as its choices say.
std::int64_t most_nodes_of_token(const Scenario& scenario);

/// Choices of each expert by the load, of one token group. They split exactly, whole choices going to the largest remainders,
/// and of equal ones to experts that lie evenly among the others, so that ranks get as many. As a token goes to an expert once at
/// most, no expert gets more than `tokens`, and what the load gives it beyond goes to the others in proportion. Under a node
/// limit M the tokens' M visits split over the nodes in this way first, each bringing k/M choices, then the choices of each node
/// over its experts.
std::vector<std::int32_t> choices_by_expert(const MoeSpec& moe, std::int64_t tokens, const NodeLimit& limit = {});

/// Slots of each expert for one token group. With a capacity factor f: max(1, floor(f * tokens * top_k / experts)) for each, or
/// without padding no more than there are choices. Without a factor: as many as there are choices. Under expert choice the factor
/// is 1 unless given, and an expert takes no more than `tokens`.
std::vector<std::int32_t> slots_by_expert(const MoeSpec& moe, std::int64_t tokens, const NodeLimit& limit = {});

/// How many nodes and ranks a token's experts lie on when all sets of top_k experts, or under a node limit all such sets of its
/// nodes' experts, are as likely: of N places that hold E / N of E experts each, k choices miss one with probability
/// C(E - E / N, k) / C(E, k). Groups of experts are chosen like that, too, where a place holds several.
TokenCopies copies_of_token(const Scenario& scenario);

/// What `route` needs to know in this scenario. Every pair of ranks exchanges blocks of the same length, that of the busiest
/// part: an all-to-all ends when the rank that receives most has it all.
RoutingAttributes routing_of(const Scenario& scenario);

/// By expert-parallel rank: the first one whose experts have the same slots. Ranks that differ in it run different programs.
std::vector<std::uint32_t> alike_parts(const Scenario& scenario);

}  // namespace tandem::scenarios
