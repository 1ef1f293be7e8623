// The half of schedule_world.h that looks for damage in a table that no participant uses: marks, duplicate keys, blocks
// that are lost or have two owners, keys of strangers that changed. Each is described in words.

#include <set>

#include "schedule_world.h"

namespace weir::test {
namespace {

using table::Block;
using table::Unit;
using table::Word;

constexpr std::uint64_t kFreeFrom = 960;  // lines of the arena before this one are never used

std::string find_mark(Unit* first, std::size_t count, const char* what) {
  for (std::size_t i = 0; i < count; ++i) {
    if (table::mark_of(table::load(first[i])) != table::kPlain) return std::string("still marked: ") + what;
  }
  return "";
}

// Who owns each line.
class Owners {
 public:
  explicit Owners(std::uint64_t lines) : owners_(lines, nullptr) {}

  std::string add(const Block& block, const char* owner) {
    for (std::uint64_t i = 0; i < std::uint64_t{1} << block.block_class; ++i) {
      if (block.line + i >= owners_.size()) return std::string("a block beyond the arena: ") + owner;
      const char*& place = owners_[block.line + i];
      if (place != nullptr) return std::string("a block has two owners: ") + place + " and " + owner;
      place = owner;
    }
    return "";
  }
  std::string find_lost() const {
    for (const char* owner : owners_) {
      if (owner == nullptr) return "a block is lost";
    }
    return "";
  }

 private:
  std::vector<const char*> owners_;
};

}  // namespace

std::string World::find_harm() {
  if (!trouble_.empty()) return trouble_;
  for (auto look :
       {&World::find_marks, &World::find_misplaced, &World::find_lost_blocks, &World::find_harmed_strangers}) {
    if (std::string harm = (this->*look)(); !harm.empty()) return harm;
  }
  return tester_.is_damaged() ? "the table is damaged" : "";
}

std::string World::find_marks() {
  table::Page& page = region().page(0);
  std::string harm = find_mark(&page.version, sizeof page / sizeof(Unit), "page");
  if (harm.empty()) harm = find_mark(region().header().free_counts, table::kClasses, "count of free blocks");
  for (unsigned i = 0; harm.empty() && i < table::kClasses; ++i) {
    harm = find_mark(&region().free_map(i, 0), region().free_map_units(i), "map of free blocks");
  }
  const std::uint64_t lines = region().arena_lines() - kFreeFrom;
  if (harm.empty()) harm = find_mark(region().line(kFreeFrom).units, 4 * lines, "block");
  for (std::uint64_t who = 0; harm.empty() && who <= kTester; ++who) {
    harm = find_mark(&region().participant(who).tally, 1 + table::kPendings, "participant");
  }
  return harm;
}

// Every key is there once, where a search finds it.
std::string World::find_misplaced() {
  table::Page& page = region().page(0);
  std::set<std::uint64_t> names;
  for (std::uint32_t line = 0; line < table::kLines; ++line) {
    for (const Unit& unit : page.slots[line]) {
      if (unit.tag == 0) continue;
      const std::uint64_t name = table::name_of(unit.tag);
      if (!names.insert(name).second) return "a key is there twice";
      for (std::uint32_t l = table::home_line(name); l != line; l = l + 1 == table::kLines ? 0 : l + 1) {
        if ((page.version.state >> l & 1) == 0) return "a key cannot be found";
      }
    }
  }
  return "";
}

std::string World::find_lost_blocks() {
  Owners owners(region().arena_lines());
  std::string harm;
  for (unsigned block_class = 0; block_class < table::kClasses; ++block_class) {
    std::uint64_t free = 0;
    for (std::uint64_t line = 0; line < region().arena_lines(); line += std::uint64_t{1} << block_class) {
      const Block block{line, block_class};
      if (!table::is_block(region(), block) || !table::is_free(region(), block)) continue;
      if (harm.empty()) harm = owners.add(block, "a map");
      ++free;
    }
    if (harm.empty() && table::load(region().header().free_counts[block_class]).state != free) {
      harm = "free blocks are counted wrongly";
    }
  }
  table::SlotReader reader(tester_, *registry_);
  for (auto& line : region().page(0).slots) {
    for (const Unit& unit : line) {
      const auto block = reader.block_of(table::load(unit));
      if (harm.empty() && block) harm = owners.add(*block, "a slot");
    }
  }
  for (std::uint64_t who = 0; who <= kTester; ++who) {
    table::Actor actor(region(), who);
    for (std::uint32_t place = 0; harm.empty() && place < table::kPendings; ++place) {
      const auto block = table::pending_block(actor, place);
      if (!block) continue;
      if (who != kTester) return "a participant keeps a block";
      harm = owners.add(*block, "the tester");
    }
  }
  return harm.empty() ? owners.find_lost() : harm;
}

std::uint64_t World::evicted() {
  std::uint64_t count = 0;
  for (std::uint64_t who = 0; who <= kTester; ++who) count += region().participant(who).tally.tag >> 2;
  return count;
}

// A key that no request names has used as much as before, or was evicted and counted.
std::string World::find_harmed_strangers() {
  if (epoch_ > 0) return "";
  std::uint64_t there = 0;
  const Limit* limit = setting_.beginning == Beginning::full ? spent_ : slight_;
  for (auto& line : region().page(0).slots) {
    for (const Unit& unit : line) {
      const table::Known* known = registry_->known(table::limit_of(unit.tag));
      if (unit.tag == 0 || known == nullptr || !(known->limit == *limit)) continue;
      if (used_in(table::load(unit)) == 1) ++there;
    }
  }
  if (setting_.rules.is_page_full) return "";  // the model knows how many there are
  const std::uint64_t all = setting_.neighbours + (setting_.beginning == Beginning::crowded ? table::kSlots : 0);
  return there + evicted() == all ? "" : "a stranger was harmed";
}

}  // namespace weir::test
