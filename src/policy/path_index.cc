// The tree combines two trees: forward from the root, and below each `**` backward from the end of the path.
//
// Both walks are recursions no deeper than a pattern has segments. The hash is a folded product with a random seed,
// so a client cannot predict which paths share a slot. The table contains only paths of the policy, so that is
// enough.
#include "policy/path_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <random>

namespace weir::policy {
namespace {

using Kind = PathSegment::Kind;
__extension__ using Product = unsigned __int128;

constexpr std::uint64_t kOdd1 = 0x9e3779b97f4a7c15, kOdd2 = 0xd1b54a32d192ed03;

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Product product = static_cast<Product>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

template <class Word>
std::uint64_t load(const char* at) {
  Word word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

std::uint32_t narrow(std::size_t number) {
  WEIR_ASSERT(number <= std::numeric_limits<std::uint32_t>::max());
  return static_cast<std::uint32_t>(number);
}

}  // namespace

std::uint64_t path_hash(std::uint64_t seed, std::string_view bytes) {
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t state = seed ^ bytes.size() * kOdd2;
  for (; left > 16; left -= 16, at += 16)
    state = fold(load<std::uint64_t>(at) ^ kOdd1, load<std::uint64_t>(at + 8) ^ state);
  std::uint64_t first = 0, last = 0;  // the last 16 bytes or fewer, read from both ends
  if (left >= 8) {
    first = load<std::uint64_t>(at);
    last = load<std::uint64_t>(at + left - 8);
  } else if (left >= 4) {
    first = load<std::uint32_t>(at);
    last = load<std::uint32_t>(at + left - 4);
  } else if (left > 0) {
    first = load<std::uint8_t>(at) | load<std::uint8_t>(at + left / 2) << 8 | load<std::uint8_t>(at + left - 1) << 16;
  }
  return fold(fold(first ^ kOdd1, last ^ state) ^ kOdd2, seed ^ kOdd1);
}

void PathHits::add_beyond(PathHit hit) {
  if (size_ == kInline) beyond_.assign(inline_.begin(), inline_.end());
  beyond_.push_back(hit);
  ++size_;
}

// The table.

std::uint64_t PathIndex::Table::hash(Number node, std::string_view bytes) const {
  return path_hash(seed_ + node * kOdd1, bytes);
}

std::string_view PathIndex::Table::bytes_at(std::size_t at) const {
  const std::size_t bytes = at + kHeadWords + words_[at + 2];
  return {reinterpret_cast<const char*>(words_.data() + bytes), words_[at + 1]};
}

void PathIndex::Table::build(const Entries& entries, std::uint64_t seed) {
  if (entries.empty()) return;
  seed_ = seed;
  slots_.resize(std::bit_ceil(2 * entries.size()));
  mask_ = slots_.size() - 1;
  words_.push_back(0);  // so that no record has index 0
  for (const auto& [key, values] : entries) {
    const auto& [node, bytes] = key;
    const std::uint64_t full = hash(node, bytes);
    std::uint64_t slot = full & mask_;
    while (slots_[slot].at != 0) slot = (slot + 1) & mask_;
    const std::size_t at = words_.size();
    slots_[slot] = {static_cast<std::uint32_t>(full >> 32), narrow(at)};
    words_.insert(words_.end(), {node, narrow(bytes.size()), narrow(values.size())});
    words_.insert(words_.end(), values.begin(), values.end());
    words_.resize(words_.size() + (bytes.size() + 3) / 4);
    std::memcpy(words_.data() + at + kHeadWords + values.size(), bytes.data(), bytes.size());
    length_max_ = std::max(length_max_, bytes.size());
  }
}

std::span<const PathIndex::Number> PathIndex::Table::find(Number node, std::string_view bytes) const {
  if (empty() || bytes.size() > length_max_) return {};
  const std::uint64_t full = hash(node, bytes);
  for (std::uint64_t slot = full & mask_; slots_[slot].at != 0; slot = (slot + 1) & mask_) {
    const std::size_t at = slots_[slot].at;
    if (slots_[slot].tag != static_cast<std::uint32_t>(full >> 32)) continue;
    if (words_[at] == node && bytes_at(at) == bytes) return {words_.data() + at + kHeadWords, words_[at + 2]};
  }
  return {};
}

// Filling.

PathIndex::Number PathIndex::new_node() {
  if (nodes_.empty()) nodes_.resize(kRoot);
  nodes_.emplace_back();
  return narrow(nodes_.size() - 1);
}

// Returns the child, and creates it if needed. Globs with the same text share a child, so that no pattern slows
// another.
PathIndex::Number PathIndex::child_of(Number node, const PathSegment& segment) {
  const auto made = [&](Number Node::*edge) {
    if (nodes_[node].*edge == kNone) {
      const Number child = new_node();
      nodes_[node].*edge = child;
    }
    return nodes_[node].*edge;
  };
  switch (segment.kind) {
    case Kind::any:
    case Kind::name:
      return made(&Node::any);
    case Kind::rest:
      return made(&Node::rest);
    case Kind::literal: {
      std::vector<Number>& child = draft_.literals[{node, segment.pieces.front()}];
      if (child.empty()) child.push_back(new_node());
      nodes_[node].has_literals = 1;
      return child.front();
    }
    case Kind::glob:
      break;
  }
  std::string key;
  for (const std::string& piece : segment.pieces) key += piece + '/';  // no piece contains a slash
  Number& child = draft_.globs[{node, key}];
  if (child == kNone) {
    child = new_node();
    globs_.push_back({node, child, segment});
  }
  return child;
}

void PathIndex::add(const PathPattern& pattern, std::uint32_t id) {
  WEIR_ASSERT(!is_finished_);
  const PathHit hit{id, narrow(size_++)};
  if (pattern.is_exact()) {
    std::vector<Number>& values = draft_.paths[{kNone, pattern.exact_path()}];
    values.insert(values.end(), {hit.id, hit.pattern});
    return;
  }
  if (nodes_.empty()) new_node();
  const auto is_rest = [](const PathSegment& segment) { return segment.kind == Kind::rest; };
  const auto& segments = pattern.segments();
  Number node = kRoot;
  const auto first = std::ranges::find_if(segments, is_rest);
  for (auto at = segments.begin(); at != first; ++at) node = child_of(node, *at);
  Number question = 0;
  if (first != segments.end()) {
    node = child_of(node, *first);
    auto at = segments.end();
    for (; !is_rest(at[-1]); --at) node = child_of(node, at[-1]);
    if (at - 1 != first) {  // the segments between two `**` are not in the tree
      questions_.push_back(pattern);
      question = narrow(questions_.size());
    }
  }
  draft_.hits.push_back({node, {hit, question}});
}

void PathIndex::finish() {
  std::random_device random;
  const std::uint64_t high = random(), low = random();
  finish(high << 32 | low);
}

void PathIndex::finish(std::uint64_t seed) {
  WEIR_ASSERT(!is_finished_);
  is_finished_ = true;
  paths_.build(draft_.paths, seed);
  literals_.build(draft_.literals, seed);
  std::ranges::stable_sort(globs_, {}, &GlobEdge::from);
  for (std::size_t i = globs_.size(); i-- > 0;) {
    Node& node = nodes_[globs_[i].from];
    node.globs_first = narrow(i);
    node.globs_end = std::max(node.globs_end, narrow(i + 1));
  }
  std::ranges::stable_sort(draft_.hits, {}, &NodeHit::node);
  for (const NodeHit& hit : draft_.hits) {
    Node& node = nodes_[hit.node];
    if (node.hits_end == 0) node.hits_first = narrow(hits_.size());
    hits_.push_back(hit.hit);
    node.hits_end = narrow(hits_.size());
  }
  draft_ = {};
}

// Finding.

void PathIndex::find(std::string_view normal_path, PathHits& out) const noexcept {
  WEIR_ASSERT(is_finished_);
  if (normal_path.empty() || normal_path.front() != '/') return;
  const std::span<const Number> exact = paths_.find(kNone, normal_path);
  for (std::size_t i = 0; i < exact.size(); i += 2) out.add({exact[i], exact[i + 1]});
  if (!nodes_.empty()) follow(kRoot, normal_path, normal_path == "/" ? std::string_view() : normal_path, out);
}

void PathIndex::report(const Node& node, std::string_view path, PathHits& out) const {
  for (Number i = node.hits_first; i < node.hits_end; ++i) {
    const Hit& hit = hits_[i];
    if (hit.question == 0 || questions_[hit.question - 1].matches(path)) out.add(hit.hit);
  }
}

template <class Next>
void PathIndex::each_child(const Node& node, Number number, std::string_view segment, Next&& next) const {
  if (node.has_literals != 0) {
    const std::span<const Number> child = literals_.find(number, segment);
    if (!child.empty()) next(child.front());
  }
  if (node.any != kNone) next(node.any);
  for (Number i = node.globs_first; i < node.globs_end; ++i) {
    if (globs_[i].glob.accepts(segment)) next(globs_[i].to);
  }
}

// Walks from the front; `rest` is the remaining path.
void PathIndex::follow(Number number, std::string_view path, std::string_view rest, PathHits& out) const {
  const Node& node = nodes_[number];
  if (node.rest != kNone) follow_back(node.rest, path, rest, out);
  if (rest.empty()) return report(node, path, out);
  const std::string_view segment = take_first_segment(rest);
  each_child(node, number, segment, [&](Number child) { follow(child, path, rest, out); });
}

// Walks from the end, below a `**`, which matches whatever is left.
void PathIndex::follow_back(Number number, std::string_view path, std::string_view rest, PathHits& out) const {
  const Node& node = nodes_[number];
  report(node, path, out);
  if (rest.empty()) return;
  const std::string_view segment = take_last_segment(rest);
  each_child(node, number, segment, [&](Number child) { follow_back(child, path, rest, out); });
}

}  // namespace weir::policy
