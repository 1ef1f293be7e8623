// Parses YAML, and JSON as YAML, into a tree of nodes. See node.h. Only this file includes yaml-cpp.
//
// It handles the parser's events instead of walking its tree: this way bounds apply while parsing, and every node has
// its position. An exceeded bound throws an exception of our own, which never leaves this file.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "policy/node.h"

namespace weir::policy {
namespace {

struct Stop {};

constexpr std::string_view kKey = "k: ";  // JSON is parsed as the value of this key
constexpr std::size_t kTextBytes = 64;    // in a copy of a text, this many bytes count like one value

class TreeMaker final : public YAML::EventHandler {
 public:
  TreeMaker(std::vector<TextProblem>& problems, bool is_json) : problems_(problems), is_json_(is_json) {}

  Node root;

  Position position(const YAML::Mark& mark) const {
    const int before = is_json_ && mark.line == 0 ? static_cast<int>(kKey.size()) : 0;
    return {mark.line + 1, std::max(1, mark.column + 1 - before)};
  }
  std::optional<Position> odd_key;  // the first key that is a list or a map

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) stop(position(mark), "a second document begins here; a config is one document");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add({.is_null = true, .at = position(mark)}, anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool is_plain = tag == "?";
    refuse_tag(mark, tag);
    add({.is_plain = is_plain, .at = position(mark), .text = value}, anchor);  // `null` and `~` arrive through OnNull()
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (++aliases_ > kAliasesMax) {
      stop(position(mark), "more than " + std::to_string(kAliasesMax) + " aliases; write the rest out");
    }
    const auto known = anchored_.find(anchor);
    if (known == anchored_.end()) stop(position(mark), "an alias to a value that contains it; write it out");
    Node copy = known->second;
    count(copy, position(mark));
    add(std::move(copy), 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    begin({.kind = Node::Kind::list, .at = position(mark)}, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    begin({.kind = Node::Kind::map, .at = position(mark)}, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    std::set<std::string> keys;
  };

  [[noreturn]] void stop(Position at, std::string message) {
    problems_.push_back({at, std::move(message)});
    throw Stop{};
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.size() > 1) stop(position(mark), "the tag " + base::in_quotes(tag) + " is not supported; remove it");
  }

  void count_one(Position at) {
    if (++nodes_ > kNodesMax) stop(at, "more than " + std::to_string(kNodesMax) + " values; split the config");
  }

  // Counts a copied node. An anchor and an alias each cost as much as the node they stand for.
  void count(const Node& node, Position at) {
    count_one(at);
    nodes_ += node.text.size() / kTextBytes;
    for (const Node& item : node.items) count(item, at);
  }

  void begin(Node node, YAML::anchor_t anchor) {
    count_one(node.at);
    if (open_.size() >= kDepthMax + (is_json_ ? 1 : 0)) {
      stop(node.at, "nested more than " + std::to_string(kDepthMax) + " levels deep; no config needs that");
    }
    open_.push_back({std::move(node), anchor, {}});
  }

  void end() {
    Open done = std::move(open_.back());
    open_.pop_back();
    place(std::move(done.node), done.anchor);
  }

  void add(Node node, YAML::anchor_t anchor) {
    count_one(node.at);
    place(std::move(node), anchor);
  }

  void place(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      count(node, node.at);
      anchored_[anchor] = node;
    }
    if (open_.empty()) {
      root = std::move(node);
      return;
    }
    Open& parent = open_.back();
    const bool is_key = parent.node.is_map() && parent.node.items.size() % 2 == 0;
    if (is_key) check_key(parent, node);
    parent.node.items.push_back(std::move(node));
  }

  void check_key(Open& parent, const Node& key) {
    // Reported only at the end: after an unclosed bracket the parser sees false keys, and then its own error is
    // better.
    if (!key.is_scalar() && !odd_key) odd_key = key.at;
    if (key.is_scalar() && !parent.keys.insert(key.text).second) {
      problems_.push_back({key.at, "the key " + base::in_quotes(key.text) + " is given twice; give it once"});
    }
  }

  std::vector<TextProblem>& problems_;
  const bool is_json_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchored_;
  std::size_t documents_ = 0;
  std::size_t nodes_ = 0;
  std::size_t aliases_ = 0;
};

// JSON writes characters beyond 16 bits as surrogate pairs such as \ud83d\ude00, which YAML does not know. Each pair
// becomes one escape: \U0001f600.
std::string with_whole_characters(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos || text[first] != '{') return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at, 12);
    const bool may_be_halves = rest.size() == 12 && rest.starts_with("\\u") && rest.substr(6, 2) == "\\u";
    const unsigned high = may_be_halves ? base::to_number<unsigned>(rest.substr(2, 4), 16).value_or(0) : 0;
    const unsigned low = may_be_halves ? base::to_number<unsigned>(rest.substr(8), 16).value_or(0) : 0;
    if (high >= 0xd800 && high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff) {
      const unsigned whole = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
      out += "\\U";
      for (int shift = 28; shift >= 0; shift -= 4) out += base::kHexDigits[whole >> shift & 15];
      at += rest.size();
    } else {
      const std::size_t letters = rest[0] == '\\' && rest.size() > 1 ? 2 : 1;  // keep an escape together
      out += rest.substr(0, letters);
      at += letters;
    }
  }
  return out;
}

// Explains common mistakes better than the parser's message.
std::string explained(const std::string& message) {
  std::string out = base::in_quotes(message, 200);  // the message may contain bytes of the text
  out = "this is not YAML: " + out.substr(1, out.size() - 2);
  if (message.find("flow not found") != std::string::npos) {
    out += "; close each bracket, and put a value that contains { } [ ] or , in quotes, such as '/users/{id}'";
  } else if (message.find("illegal map value") != std::string::npos) {
    out += "; a value with a colon and a space in it must be in quotes";
  } else if (message.find("anchor is not defined") != std::string::npos) {
    out += "; a value that begins with * must be in quotes";
  } else if (message.find("tab") != std::string::npos || message.find("indent") != std::string::npos ||
             message.find("block entry") != std::string::npos) {
    out += "; indent with spaces, all items of a list or map alike";
  }
  return out;
}

Position end_of(std::string_view text) {
  const auto lines = std::ranges::count(text, '\n');
  const std::size_t line_start = text.rfind('\n') + 1;  // npos + 1 is 0
  return {static_cast<std::int32_t>(lines) + 1, static_cast<std::int32_t>(text.size() - line_start) + 1};
}

// Bounds what the parser buffers at once. It reads ahead to the end of any bracket that could be a key. That is any
// bracket that does not follow its own key on the same line. Quotes and comments are not exempt: a text with
// thousands of commas or brackets in them is not a normal config.
class ReadAhead {
 public:
  // Returns where the bound is exceeded, and sets why(). npos if it is not.
  std::size_t find_excess(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '[' || c == '{') {
        if (open_ > kOpenMax) return why_ = "nested more than 32 levels deep; no config needs that", i;
        const bool is_value = last_ == ':' || last_ == 0;
        if (!is_value && key_at_ == kNone) {
          key_at_ = open_;
          key_marks_ = marks_;
        }
        ++open_;
      }
      if (c == ',' || c == '[' || c == '{') ++marks_;
      if (c == ']' || c == '}') {
        open_ -= open_ > 0 ? 1 : 0;
        if (key_at_ != kNone && open_ <= key_at_) key_at_ = kNone;
      } else if (key_at_ != kNone && marks_ - key_marks_ > kMarksMax) {
        why_ =
            "too many values in one bracket; begin a long list on the line of its key, and put each rule on its own "
            "line";
        return i;
      }
      if (c == '\n' && last_ == ':') last_ = c;
      if (c != ' ' && c != '\t' && c != '\r' && (c != '\n' || last_ != 0)) last_ = c;
    }
    return text.npos;
  }
  const std::string& why() const { return why_; }

 private:
  static constexpr std::size_t kOpenMax = 1'000, kMarksMax = 20'000, kNone = static_cast<std::size_t>(-1);

  std::size_t open_ = 0;        // open brackets
  std::size_t key_at_ = kNone;  // the outermost bracket that could be a key, and marks_ before it
  std::size_t key_marks_ = 0;
  std::size_t marks_ = 0;
  char last_ = 0;  // last character that is no blank; 0 at the start
  std::string why_;
};

// Finds a control character. Valid configs have none, damaged files do.
std::size_t find_control(std::string_view text) {
  const auto bad = std::ranges::find_if(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 ? c != '\n' && c != '\r' && c != '\t' : byte == 0x7f;
  });
  return static_cast<std::size_t>(bad - text.begin());
}

}  // namespace

Node read_yaml(std::string_view text, std::vector<TextProblem>& problems) {
  if (text.size() > kPolicyBytesMax) {
    problems.push_back({{1, 1},
                        "the text has " + std::to_string(text.size()) + " bytes; at most " +
                            std::to_string(kPolicyBytesMax) + " (1 MiB) are read"});
    return {};
  }
  if (const std::size_t bad = find_control(text); bad < text.size()) {
    problems.push_back({end_of(text.substr(0, bad)), "a control character, " + base::in_quotes(text.substr(bad, 1)) +
                                                         "; the file is damaged, or is not a text file"});
    return {};
  }
  ReadAhead ahead;
  if (const std::size_t at = ahead.find_excess(text); at != text.npos) {
    problems.push_back({end_of(text.substr(0, at)), ahead.why()});
    return {};
  }
  // JSON is parsed as the value of a key, because the parser would otherwise read all of it ahead.
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != text.npos && (text[first] == '{' || text[first] == '[');
  TreeMaker maker(problems, is_json);
  try {
    std::istringstream stream{(is_json ? std::string(kKey) : "") + with_whole_characters(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(maker)) {
    }
    if (maker.odd_key) {
      problems.push_back({*maker.odd_key, "a key must be a word, not a list or a map"});
      return {};
    }
  } catch (const Stop&) {
  } catch (const YAML::Exception& error) {
    const bool has_place = !error.mark.is_null();
    problems.push_back({has_place ? maker.position(error.mark) : Position{1, 1}, explained(error.msg)});
  }
  if (!is_json) return std::move(maker.root);
  return maker.root.items.size() == 2 ? std::move(maker.root.items[1]) : Node{};
}

}  // namespace weir::policy
