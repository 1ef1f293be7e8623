// A server's copy of the changes and the fleet's list of them, made one. See journal.h.
//
// Lines that both know stand in the same order with the same ids, up to agreed_. What a server has behind it was made
// while the list was out of reach, or was lost there by a failover or a flush; it is handed on, and who finds its id
// taken takes the next one.
#include <algorithm>
#include <map>
#include <set>

#include "admin/journal.h"

namespace weir {
namespace {

constexpr int kMeetTries = 10;            // so often in a row others are not faster
constexpr std::size_t kDropsMax = 1'000;  // in one call

Result<std::vector<Change>> parse_lines(const std::vector<std::string>& lines, std::uint64_t after) {
  std::vector<Change> out;
  for (std::string_view line : lines) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    auto change = parse_line(line);
    const bool rises = change && change->id > (out.empty() ? after : out.back().id);
    if (!rises) {
      return fail(ErrorCode::invalid_argument,
                  "the fleet's list of changes has a damaged line: " +
                      (change ? "its id does not rise" : change.error().message) +
                      "; delete the key of the list in Redis, and the servers write it anew");
    }
    out.push_back(*std::move(change));
  }
  return out;
}

}  // namespace

Result<bool> Journal::has_news() const {
  if (shared_ == nullptr) return false;
  const auto found = shared_->since(agreed_.value_or(0));
  if (!found) return fail(found.error());
  return !agreed_ || found->last != *agreed_ || (!changes_.empty() && changes_.back().id > *agreed_);
}

Result<std::vector<Change>> Journal::merge(const SharedChanges::Lines& found, bool is_first) {
  const std::uint64_t agreed = is_first ? 0 : *agreed_;
  auto theirs = parse_lines(found.lines, agreed);
  if (!theirs) return theirs;
  std::vector<Change> out;
  for (const Change& change : changes_) {
    if (change.id <= agreed) out.push_back(change);
  }
  std::ranges::copy(*theirs, std::back_inserter(out));
  // A copy of the list that lay in a file may be of long ago: what the list has left out since is gone.
  const std::uint64_t own_from = is_first ? found.last : agreed;
  std::map<std::uint64_t, std::uint64_t> renumbered;
  for (Change own : changes_) {
    if (own.id <= own_from || std::ranges::find(*theirs, own) != theirs->end()) continue;
    if (const auto other = renumbered.find(own.undoes); other != renumbered.end()) own.undoes = other->second;
    const std::uint64_t id = out.empty() ? own.id : std::max(own.id, out.back().id + 1);
    if (id != own.id) renumbered[own.id] = id;
    own.id = id;
    out.push_back(std::move(own));
  }
  if (const auto other = renumbered.find(followed_); other != renumbered.end()) followed_ = other->second;
  return out;
}

// What only this server has. False: somebody else was faster.
Result<bool> Journal::hand_on(std::uint64_t last) {
  for (const Change& change : changes_) {
    if (change.id <= last) continue;
    const auto done = shared_->append(last, change.id, to_line(change));
    if (!done || !*done) return done;
    agreed_ = last = change.id;
  }
  return true;
}

Result<void> Journal::meet(Lock& lock) {
  for (int tries = 0; tries < kMeetTries; ++tries) {
    const bool is_first = !agreed_;
    const auto found = shared_->since(agreed_.value_or(0));
    if (!found) return fail(found.error());
    if (!is_first && found->last < *agreed_) agreed_ = found->last;  // it was lost, and is here
    auto merged = merge(*found, is_first);
    if (!merged) return fail(std::move(merged.error()));
    if (!(*merged == changes_)) {
      Kept all{.changes = *std::move(merged)};
      for (const Change& change : all.changes) all.text += to_line(change);
      if (auto replaced = replace(lock, std::move(all)); !replaced) return replaced;
      ++readings_;
    }
    agreed_ = found->last;
    const auto done = hand_on(found->last);
    if (!done) return fail(done.error());
    if (*done) return {};
  }
  return fail(ErrorCode::unavailable, "others change the fleet's list again and again; try again");
}

void Journal::drop_shared(const Kept& kept) {
  std::set<std::uint64_t> stay;
  for (const Change& change : kept.changes) stay.insert(change.id);
  std::vector<std::uint64_t> gone;
  const auto drop = [&] {
    if (!gone.empty()) (void)shared_->drop(gone);
    gone.clear();
  };
  for (const Change& change : changes_) {
    if (!stay.contains(change.id)) gone.push_back(change.id);
    if (gone.size() == kDropsMax) drop();
  }
  drop();
}

}  // namespace weir
