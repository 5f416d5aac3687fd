#include "topology/folding.h"

#include <numeric>

#include "topology/mix.h"

namespace tandem::topology {
namespace {

/// Dense ids for 64-bit colours by open addressing; a handful of classes stays in the cache.
class Numbering {
 public:
  explicit Numbering(std::size_t expected) { resize(expected); }

  std::uint32_t id(std::uint64_t colour) {
    std::size_t place = mix(colour) & mask_;
    while (ids_[place] != FoldInput::absent) {
      if (colours_[place] == colour) return ids_[place];
      place = (place + 1) & mask_;
    }
    colours_[place] = colour;
    ids_[place] = next_++;
    if (2 * next_ > mask_) grow();
    return next_ - 1;
  }

 private:
  std::vector<std::uint64_t> colours_;
  std::vector<std::uint32_t> ids_;
  std::size_t mask_ = 0;
  std::uint32_t next_ = 0;

  void resize(std::size_t wanted) {
    std::size_t size = 64;
    while (size < 4 * wanted) size *= 2;
    colours_.assign(size, 0);
    ids_.assign(size, FoldInput::absent);
    mask_ = size - 1;
  }
  void grow() {
    const auto colours = std::move(colours_);
    const auto ids = std::move(ids_);
    resize(next_);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == FoldInput::absent) continue;
      std::size_t place = mix(colours[i]) & mask_;
      while (ids_[place] != FoldInput::absent) place = (place + 1) & mask_;
      colours_[place] = colours[i];
      ids_[place] = ids[i];
    }
  }
};

Classes classes_of(const std::vector<std::uint64_t>& colours, std::size_t expected) {
  Classes classes;
  classes.of.resize(colours.size());
  Numbering numbering(expected);
  for (std::size_t i = 0; i < colours.size(); ++i) {
    const std::uint32_t id = numbering.id(colours[i]);
    if (id == classes.count()) {
      classes.representative.push_back(static_cast<std::uint32_t>(i));
      classes.size.push_back(0);
    }
    classes.of[i] = id;
    ++classes.size[id];
  }
  return classes;
}

/// One round: every element's new colour is its class together with the sum over what it meets of (their class, the role).
void refine(const FoldInput& input, const Partition& now, std::vector<std::uint64_t>& ranks,
            std::vector<std::uint64_t>& communicators, std::vector<std::uint64_t>& links) {
  const auto own = [](const Classes& classes, std::vector<std::uint64_t>& colours) {
    for (std::size_t i = 0; i < colours.size(); ++i) colours[i] = mix(classes.of[i]);
  };
  own(now.ranks, ranks);
  own(now.communicators, communicators);
  own(now.links, links);
  for (std::size_t slot = 0; slot < input.slots.size(); ++slot) {
    const std::uint64_t role = mix(0xA11CE000 + slot);
    const std::vector<std::uint32_t>& communicator_of = input.slots[slot];
    for (std::size_t rank = 0; rank < communicator_of.size(); ++rank) {
      const std::uint32_t communicator = communicator_of[rank];
      if (communicator == FoldInput::absent) continue;
      ranks[rank] += mix(role ^ now.communicators.of[communicator]);
      communicators[communicator] += input.members_per_rank[communicator] * mix(role ^ mix(now.ranks.of[rank]));
    }
  }
  // Counts enter linearly, so crossings of one link by one class add up whichever way they are listed.
  for (const FoldInput::Crossing& crossing : input.crossings) {
    const std::uint64_t path = std::uint64_t{crossing.path} << 40;
    communicators[crossing.communicator] += crossing.of_communicator * mix(0xB0B00000ULL + path + now.links.of[crossing.link]);
    links[crossing.link] += crossing.of_link * mix(0xCAFE0000ULL + path + now.communicators.of[crossing.communicator]);
  }
}

}  // namespace

Partition fold(const FoldInput& input) {
  std::vector<std::uint64_t> ranks = input.rank_colours;
  std::vector<std::uint64_t> communicators = input.communicator_colours;
  std::vector<std::uint64_t> links = input.link_colours;
  Partition now;
  std::size_t before = 0;
  for (;;) {
    now.ranks = classes_of(ranks, now.ranks.count());
    now.communicators = classes_of(communicators, now.communicators.count());
    now.links = classes_of(links, now.links.count());
    const std::size_t count = now.ranks.count() + now.communicators.count() + now.links.count();
    if (count == before) return now;
    before = count;
    refine(input, now, ranks, communicators, links);
  }
}

Partition unfolded(const FoldInput& input) {
  const auto each = [](std::size_t count) {
    Classes classes;
    classes.of.resize(count);
    std::iota(classes.of.begin(), classes.of.end(), 0U);
    classes.representative = classes.of;
    classes.size.assign(count, 1);
    return classes;
  };
  return {each(input.rank_colours.size()), each(input.communicator_colours.size()), each(input.link_colours.size())};
}

}  // namespace tandem::topology
