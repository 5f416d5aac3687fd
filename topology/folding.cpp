#include "topology/folding.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>

#include "topology/mix.h"

namespace tandem::topology {
namespace {

/// Chance makes a 64-bit hash collide once in a lifetime; when eight of them collide, the input is broken.
constexpr int most_hashes = 8;

/// Gives 64-bit colours dense ids. Open addressing, so that a handful of classes stays in the cache.
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

Classes classes_of(const std::vector<std::uint64_t>& colours, std::size_t expected, std::uint64_t mask) {
  Classes classes;
  classes.of.resize(colours.size());
  Numbering numbering(expected);
  for (std::size_t i = 0; i < colours.size(); ++i) {
    const std::uint32_t id = numbering.id(colours[i] & mask);
    if (id == classes.count()) {
      classes.representative.push_back(static_cast<std::uint32_t>(i));
      classes.size.push_back(0);
    }
    classes.of[i] = id;
    ++classes.size[id];
  }
  return classes;
}

/// Refines once: every element's new colour is its class together with the sum over what it meets of (their class, the role).
void refine(const FoldInput& input, const Partition& now, std::uint64_t seed, std::vector<std::uint64_t>& ranks,
            std::vector<std::uint64_t>& communicators, std::vector<std::uint64_t>& links) {
  const auto own = [seed](const Classes& classes, std::vector<std::uint64_t>& colours) {
    for (std::size_t i = 0; i < colours.size(); ++i) colours[i] = mix(seed ^ classes.of[i]);
  };
  own(now.ranks, ranks);
  own(now.communicators, communicators);
  own(now.links, links);
  for (std::size_t slot = 0; slot < input.slots.size(); ++slot) {
    const std::uint64_t role = mix(seed ^ (0xA11CE000 + slot));
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
    const std::uint64_t path = seed + (std::uint64_t{crossing.path} << 40);
    if (input.tells_apart(crossing.link))
      communicators[crossing.communicator] += crossing.of_communicator * mix(0xB0B00000ULL + path + now.links.of[crossing.link]);
    links[crossing.link] += crossing.of_link * mix(0xCAFE0000ULL + path + now.communicators.of[crossing.communicator]);
  }
}

Partition fold_by(const FoldInput& input, const ColourHash& hash) {
  std::vector<std::uint64_t> ranks = input.rank_colours;
  std::vector<std::uint64_t> communicators = input.communicator_colours;
  std::vector<std::uint64_t> links = input.link_colours;
  const std::uint64_t mask = hash.bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << hash.bits) - 1;
  Partition now;
  std::size_t before = 0;
  for (;;) {
    now.ranks = classes_of(ranks, now.ranks.count(), mask);
    now.communicators = classes_of(communicators, now.communicators.count(), mask);
    now.links = classes_of(links, now.links.count(), mask);
    const std::size_t count = now.ranks.count() + now.communicators.count() + now.links.count();
    if (count == before) return now;
    before = count;
    refine(input, now, hash.seed, ranks, communicators, links);
  }
}

bool refines(const Classes& classes, const std::vector<std::uint64_t>& colours) {
  for (std::size_t i = 0; i < colours.size(); ++i)
    if (colours[i] != colours[classes.representative[classes.of[i]]]) return false;
  return true;
}

/// A class that an element meets, in what role, and how often.
struct Meeting {
  std::uint64_t what;
  std::uint64_t times;
  bool operator==(const Meeting&) const = default;
};

/// Lists of what elements meet, laid end to end. A first pass over the input counts them, a second fills them in.
class Meetings {
 public:
  explicit Meetings(std::size_t elements) : end_(elements + 1, 0) {}

  void count(std::uint32_t element) { ++end_[element + 1]; }
  void begin_filling() {
    for (std::size_t i = 1; i < end_.size(); ++i) end_[i] += end_[i - 1];
    all_.resize(end_.back());
    at_.assign(end_.begin(), end_.end() - 1);
  }
  void add(std::uint32_t element, Meeting meeting) { all_[at_[element]++] = meeting; }

  /// Sorts each list, adds up what is there twice, and compares the lists of each class.
  bool are_those_of_representatives(const Classes& classes) {
    for (std::size_t i = 0; i < at_.size(); ++i) at_[i] = tidied(end_[i], end_[i + 1]);
    for (std::size_t i = 0; i < at_.size(); ++i)
      if (!std::ranges::equal(list(i), list(classes.representative[classes.of[i]]))) return false;
    return true;
  }

 private:
  std::vector<std::size_t> end_, at_;  ///< by element: where the list before it ends; where its own does
  std::vector<Meeting> all_;

  std::span<const Meeting> list(std::size_t element) const {
    return std::span(all_).subspan(end_[element], at_[element] - end_[element]);
  }

  std::size_t tidied(std::size_t from, std::size_t to) {
    std::sort(all_.begin() + static_cast<std::ptrdiff_t>(from), all_.begin() + static_cast<std::ptrdiff_t>(to),
              [](const Meeting& a, const Meeting& b) { return a.what < b.what; });
    std::size_t last = from;
    for (std::size_t i = from; i < to; ++i) {
      if (last > from && all_[last - 1].what == all_[i].what)
        all_[last - 1].times += all_[i].times;
      else
        all_[last++] = all_[i];
    }
    return last;
  }
};

/// Roles and paths are far fewer than 2^32.
std::uint64_t met(std::uint64_t role, std::uint32_t of_class) { return role << 32 | of_class; }

bool ranks_meet_alike(const FoldInput& input, const Partition& partition) {
  const Classes& ranks = partition.ranks;
  const auto class_of = [&](std::uint32_t communicator) {
    return communicator == FoldInput::absent ? FoldInput::absent : partition.communicators.of[communicator];
  };
  for (const std::vector<std::uint32_t>& communicator_of : input.slots)
    for (std::size_t rank = 0; rank < communicator_of.size(); ++rank)
      if (class_of(communicator_of[rank]) != class_of(communicator_of[ranks.representative[ranks.of[rank]]])) return false;
  return true;
}

bool communicators_have_like_members(const FoldInput& input, const Partition& partition) {
  Meetings meetings(input.communicator_colours.size());
  const auto each = [&](const auto& visit) {
    for (std::size_t slot = 0; slot < input.slots.size(); ++slot)
      for (std::size_t rank = 0; rank < input.slots[slot].size(); ++rank)
        if (input.slots[slot][rank] != FoldInput::absent) visit(slot, rank, input.slots[slot][rank]);
  };
  each([&](std::size_t, std::size_t, std::uint32_t communicator) { meetings.count(communicator); });
  meetings.begin_filling();
  each([&](std::size_t slot, std::size_t rank, std::uint32_t communicator) {
    meetings.add(communicator, {met(slot, partition.ranks.of[rank]), input.members_per_rank[communicator]});
  });
  return meetings.are_those_of_representatives(partition.communicators);
}

/// Whether links of a class are crossed equally often by each class of communicators (`of_links`), or communicators of a class
/// cross each class of links that may bind equally often.
bool crossings_are_alike(const FoldInput& input, const Partition& partition, bool of_links) {
  Meetings meetings(of_links ? input.link_colours.size() : input.communicator_colours.size());
  const auto counts = [&](const FoldInput::Crossing& crossing) { return of_links || input.tells_apart(crossing.link); };
  for (const FoldInput::Crossing& crossing : input.crossings)
    if (counts(crossing)) meetings.count(of_links ? crossing.link : crossing.communicator);
  meetings.begin_filling();
  for (const FoldInput::Crossing& c : input.crossings) {
    if (of_links)
      meetings.add(c.link, {met(c.path, partition.communicators.of[c.communicator]), c.of_link});
    else if (counts(c))
      meetings.add(c.communicator, {met(c.path, partition.links.of[c.link]), c.of_communicator});
  }
  return meetings.are_those_of_representatives(of_links ? partition.links : partition.communicators);
}

}  // namespace

bool is_equitable(const FoldInput& input, const Partition& partition) {
  return refines(partition.ranks, input.rank_colours) && refines(partition.communicators, input.communicator_colours) &&
         refines(partition.links, input.link_colours) && ranks_meet_alike(input, partition) &&
         communicators_have_like_members(input, partition) && crossings_are_alike(input, partition, false) &&
         crossings_are_alike(input, partition, true);
}

Partition fold(const FoldInput& input, ColourHash first) {
  Partition partition = fold_by(input, first);
  for (int tried = 1; !is_equitable(input, partition); ++tried) {
    if (tried == most_hashes) throw std::logic_error("folding: every hash of colours merged what differs");
    partition = fold_by(input, {.seed = mix(first.seed + static_cast<std::uint64_t>(tried))});
  }
  return partition;
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
