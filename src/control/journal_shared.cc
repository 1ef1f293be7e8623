// Merges a server's copy of the changes with the fleet's list. See journal.h.
//
// Up to agreed_, both have the same lines in the same order with the same ids. Each line has a link to all lines
// before it. So if the list still has the line at agreed_, it has all earlier lines, too, unless a server has
// shortened it. If not, both are equal up to the last line that is the same in both. A server's later lines were made
// while the list was unavailable, or were lost there by a failover or a flush. The server appends them again; a line
// whose id is taken gets the next one. Several servers may have lost the same line: a server that finds it in the
// list under another id uses that id.
#include <algorithm>
#include <set>

#include "control/journal.h"

namespace weir::control {
namespace {

constexpr int kSyncTries = 10;            // other servers do not append first this often in a row
constexpr std::size_t kDropsMax = 1'000;  // in one call
constexpr std::size_t kNamesMax = 10;     // in one line of the log

Result<std::vector<Change>> parse_lines(const std::vector<std::string>& lines, std::uint64_t after) {
  std::vector<Change> out;
  for (std::string_view line : lines) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    auto change = parse_line(line);
    const bool rises = change && change->id > (out.empty() ? after : out.back().id);
    if (!rises) {
      return fail(ErrorCode::invalid_argument,
                  "the fleet's list of changes has a damaged line: " +
                      (change ? "its id is not above the previous one" : change.error().message) +
                      "; delete the key of the list in Redis, and the servers write it again");
    }
    out.push_back(*std::move(change));
  }
  return out;
}

// The last line that is the same in both.
std::uint64_t last_common(const std::vector<Change>& ours, const std::vector<Change>& theirs, std::uint64_t from) {
  for (auto own = ours.rbegin(); own != ours.rend() && own->id > from; ++own) {
    const auto other = std::ranges::lower_bound(theirs, own->id, {}, &Change::id);
    if (other != theirs.end() && *other == *own) return own->id;
  }
  return from;
}

// The last line that was ever in the list.
std::uint64_t last_shared(const std::vector<Change>& ours) {
  const auto last = std::find_if(ours.rbegin(), ours.rend(), [](const Change& one) { return !one.link.empty(); });
  return last == ours.rend() ? 0 : last->id;
}

// Compares everything but id and link.
bool is_same_change(Change one, const Change& other) {
  one.id = other.id;
  one.link = other.link;
  return one == other;
}

std::string few_of(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesMax); ++i) out += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kNamesMax) out += " and " + std::to_string(names.size() - kNamesMax) + " more";
  return out;
}

}  // namespace

// Whether the list has the line at agreed_, and so all lines before it.
bool Journal::agrees_with(const SharedChanges::Lines& found) const {
  if (!agreed_ || *agreed_ == 0) return agreed_.has_value();
  const auto own = std::ranges::lower_bound(changes_, *agreed_, {}, &Change::id);
  return own != changes_.end() && own->id == *agreed_ && !found.tail.empty() && to_line(*own).ends_with(found.tail);
}

bool Journal::has_news(const SharedChanges::Lines& found) const {
  return !agrees_with(found) || found.last != *agreed_ || (!changes_.empty() && changes_.back().id > *agreed_);
}

// `found` has all lines after `from`; up to it, both are equal.
Result<Journal::Merged> Journal::merge(const SharedChanges::Lines& found, std::uint64_t from) const {
  auto theirs = parse_lines(found.lines, from);
  if (!theirs) return fail(std::move(theirs.error()));
  Merged out;
  for (const Change& change : changes_) {
    if (change.id <= from) out.changes.push_back(change);
  }
  std::ranges::copy(*theirs, std::back_inserter(out.changes));
  const std::uint64_t common = last_common(changes_, *theirs, from);
  std::erase_if(*theirs, [common](const Change& change) { return change.id <= common; });
  const bool has_gone_on = !theirs->empty();
  // The list has no lines where ours would be, so other servers have shortened it. A failover leaves no such gap.
  const bool is_shortened = has_gone_on && theirs->front().id > last_shared(changes_);
  for (Change own : changes_) {
    if (own.id <= common) continue;
    if (is_shortened && !own.link.empty()) {
      out.gone.push_back(std::move(own));
      continue;
    }
    if (const auto other = out.renumbered.find(own.undoes); other != out.renumbered.end()) own.undoes = other->second;
    const auto same = std::ranges::find_if(*theirs, [&](const Change& one) { return is_same_change(one, own); });
    const bool is_there = same != theirs->end();  // another server has appended it
    const std::uint64_t next = out.changes.empty() ? 1 : out.changes.back().id + 1;
    const std::uint64_t id = is_there ? same->id : std::max(own.id, next);
    if (id != own.id) out.renumbered[own.id] = id;
    if (is_there) {
      theirs->erase(same);
      continue;
    }
    own.id = id;
    if (has_gone_on) own.link.clear();
    out.changes.push_back(std::move(own));
  }
  return out;
}

Result<void> Journal::take_over(Lock& lock, Merged merged) {
  if (merged.changes == changes_) return {};
  const auto notes = notes_on(merged);
  if (auto replaced = replace(lock, whole(std::move(merged.changes))); !replaced) return replaced;
  ++readings_;
  notes_.insert(notes_.end(), notes.begin(), notes.end());
  if (const auto other = merged.renumbered.find(followed_); other != merged.renumbered.end()) followed_ = other->second;
  return {};
}

std::vector<std::string> Journal::notes_on(const Merged& merged) const {
  const auto name_of = [](const Change& change) { return std::to_string(change.id) + " (" + change.what + ')'; };
  std::vector<std::string> gone, moved, out;
  for (const Change& change : merged.gone) gone.push_back(name_of(change));
  for (const Change& change : changes_) {
    const auto other = merged.renumbered.find(change.id);
    if (other != merged.renumbered.end()) moved.push_back(name_of(change) + " is now " + std::to_string(other->second));
  }
  if (!gone.empty()) out.push_back("dropped, because other servers have removed them from the list: " + few_of(gone));
  if (!moved.empty()) out.push_back("renumbered, because other changes have their ids: " + few_of(moved));
  return out;
}

// Appends the lines that only this server has. False: another server was faster.
Result<bool> Journal::append_own(Lock& lock) {
  Result<bool> done = true;
  bool is_linked = false;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    if (changes_[i].id <= *agreed_) continue;
    Change next = changes_[i];
    if (next.link.empty()) next.link = link_of(i == 0 ? nullptr : &changes_[i - 1], next);
    done = shared_->append(*agreed_, next.id, to_line(next));
    if (!done || !*done) break;
    is_linked = is_linked || changes_[i].link.empty();
    agreed_ = next.id;
    changes_[i] = std::move(next);
  }
  if (is_linked) (void)replace(lock, whole(changes_));  // without its link, a line is identified by its content
  return done;
}

Result<void> Journal::sync_with_list(Lock& lock) {
  auto synced = try_to_sync(lock);
  is_reached_ = synced.has_value();
  if (synced) shorten(lock);
  return synced;
}

Result<void> Journal::try_to_sync(Lock& lock) {
  for (int tries = 0; tries < kSyncTries; ++tries) {
    std::uint64_t from = agreed();
    auto found = shared_->since(from);
    if (found && from > 0 && !agrees_with(*found)) found = shared_->since(from = 0);
    if (!found) return fail(std::move(found.error()));
    auto merged = merge(*found, from);
    if (!merged) return fail(std::move(merged.error()));
    if (auto taken = take_over(lock, *std::move(merged)); !taken) return taken;
    agreed_ = found->last;
    const auto done = append_own(lock);
    if (!done) return fail(done.error());
    if (*done) return {};
  }
  return fail(ErrorCode::unavailable, "other servers keep changing the fleet's list of changes; try again");
}

void Journal::drop_shared(const Kept& kept) {
  std::set<std::uint64_t> stay;
  for (const Change& change : kept.changes) stay.insert(change.id);
  std::vector<std::uint64_t> gone;
  const auto drop = [&] {
    if (!gone.empty() && is_reached_) is_reached_ = shared_->drop(gone).has_value();
    gone.clear();
  };
  for (const Change& change : changes_) {
    if (!stay.contains(change.id)) gone.push_back(change.id);
    if (gone.size() == kDropsMax) drop();
  }
  drop();
}

}  // namespace weir::control
