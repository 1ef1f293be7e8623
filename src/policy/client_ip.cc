// Implements client_ip.h: first the elements of a list from the right, then the address in an element, then the walk.
#include "policy/client_ip.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/nearest.h"

namespace weir::policy {
namespace {

bool is_same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::ranges::equal(a, b, [](char c, char d) { return base::lower(c) == base::lower(d); });
}

// begin_of_last()
//
// Returns where the last element of the line begins; nothing if that is ambiguous. Only Forwarded has quoted text,
// which may contain commas. It is scanned from the right too: a quote that the client left open is to the left of
// what the proxy added, and must not change how that is read. A quote is text if an odd number of backslashes
// precedes it, when read from either side.
std::optional<std::size_t> begin_of_last(std::string_view line, ForwardedBy by) {
  const std::size_t stop = line.size() - std::min(line.size(), kElementBytesMax);
  bool is_quoted = false;
  for (std::size_t i = line.size(); i > stop; --i) {
    const char c = line[i - 1];
    if (c == ',' && !is_quoted) return i;
    if (c != '"' || by != ForwardedBy::forwarded) continue;
    std::size_t slash = i - 1;
    while (slash > stop && line[slash - 1] == '\\') --slash;
    const bool is_text = (i - 1 - slash) % 2 == 1;
    if (is_text && !is_quoted) return std::nullopt;
    if (!is_text) is_quoted = !is_quoted;
  }
  if (stop > 0 || is_quoted) return std::nullopt;
  return 0;
}

// The elements of all lines of a header, last first. After next() has returned nothing, there are no more.
class Elements {
 public:
  Elements(std::span<const Attribute> headers, ForwardedBy by)
      : headers_(headers), by_(by), name_(by == ForwardedBy::forwarded ? "forwarded" : "x-forwarded-for") {}

  std::optional<std::string_view> next() {
    if (!line_) line_ = next_line();
    if (!line_) return std::nullopt;
    const auto begin = begin_of_last(*line_, by_);
    if (!begin) return std::nullopt;
    const std::string_view element = line_->substr(*begin);
    if (*begin == 0) {
      line_.reset();
    } else {
      line_ = line_->substr(0, *begin - 1);
    }
    return element;
  }

 private:
  std::optional<std::string_view> next_line() {
    while (!headers_.empty()) {
      const Attribute& header = headers_.back();
      headers_ = headers_.first(headers_.size() - 1);
      if (is_same_name(header.name, name_)) return header.value;
    }
    return std::nullopt;
  }

  std::span<const Attribute> headers_;  // not read yet
  ForwardedBy by_;
  std::string_view name_;
  std::optional<std::string_view> line_;  // the unread part of the current line
};

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

bool is_token(std::string_view text) {
  const auto may_name = [](char c) {
    return (c >= '0' && c <= '9') || (base::lower(c) >= 'a' && base::lower(c) <= 'z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::ranges::all_of(text, may_name);
}

// The value of `for=`, without quotes and backslashes. Bytes beyond the longest address are counted but not stored.
struct NodeText {
  std::array<char, base::kNodeBytesMax> text;
  std::size_t size = 0;

  void add(char c) {
    if (size < text.size()) text[size] = c;
    ++size;
  }
  std::optional<base::IpAddress> address() const {
    return size <= text.size() ? base::parse_node({text.data(), size}) : std::nullopt;
  }
};

// Removes a value from the front of `rest`, up to the semicolon or the end, and adds it to `node` unless that is
// null.
bool take_value(std::string_view& rest, NodeText* node) {
  const bool is_quoted = rest.starts_with('"');
  std::size_t i = is_quoted ? 1 : 0;
  for (; i < rest.size() && rest[i] != (is_quoted ? '"' : ';'); ++i) {
    if (!is_quoted && (rest[i] == '"' || rest[i] == '\\')) return false;
    if (rest[i] == '\\' && ++i == rest.size()) return false;
    if (node != nullptr) node->add(rest[i]);
  }
  if (is_quoted && i++ == rest.size()) return false;
  rest.remove_prefix(i);
  skip_blanks(rest);
  return rest.empty() || rest.front() == ';';
}

// Returns the address in `for=`. An element must have exactly one, in a list of pairs that is well-formed to its end.
std::optional<base::IpAddress> forwarded_for(std::string_view element) {
  NodeText node;
  bool has_node = false;
  for (skip_blanks(element); !element.empty(); skip_blanks(element)) {
    if (element.front() == ';') {
      element.remove_prefix(1);
      continue;
    }
    const std::size_t equals = element.find('=');
    if (equals == element.npos || !is_token(element.substr(0, equals))) return std::nullopt;
    const bool is_node = is_same_name(element.substr(0, equals), "for");
    if (is_node && has_node) return std::nullopt;
    has_node = has_node || is_node;
    element.remove_prefix(equals + 1);
    if (!take_value(element, is_node ? &node : nullptr)) return std::nullopt;
  }
  return has_node ? node.address() : std::nullopt;
}

std::optional<base::IpAddress> address_in(std::optional<std::string_view> element, ForwardedBy by) {
  if (!element) return std::nullopt;
  return by == ForwardedBy::forwarded ? forwarded_for(*element) : base::parse_node(*element);
}

// If there are two lines, the client may have sent one of them, and nothing shows which.
std::optional<base::IpAddress> address_in_only(std::span<const Attribute> headers, std::string_view name) {
  const auto is_named = [name](const Attribute& header) { return is_same_name(header.name, name); };
  const auto only = std::ranges::find_if(headers, is_named);
  if (only == headers.end() || std::any_of(only + 1, headers.end(), is_named)) return std::nullopt;
  if (only->value.size() > kElementBytesMax) return std::nullopt;
  return base::parse_node(only->value);
}

std::optional<base::IpAddress> address_at(unsigned hops, Elements& elements, ForwardedBy by) {
  if (hops > kHopsMax) return std::nullopt;
  for (unsigned i = 1; i < hops; ++i) {
    if (!elements.next()) return std::nullopt;
  }
  return address_in(elements.next(), by);
}

}  // namespace

base::IpAddress client_ip(const base::IpAddress& peer, std::span<const Attribute> headers, const ProxyTrust& trust) {
  if (!trust.proxies.contains(peer)) return peer;
  if (trust.by == ForwardedBy::single_header) return address_in_only(headers, trust.header).value_or(peer);
  Elements elements(headers, trust.by);
  if (trust.hops > 0) return address_at(trust.hops, elements, trust.by).value_or(peer);

  base::IpAddress client = peer;
  for (unsigned hop = 0; hop < kHopsMax; ++hop) {
    const auto address = address_in(elements.next(), trust.by);
    if (!address) break;
    client = *address;
    if (!trust.proxies.contains(client)) break;
  }
  return client;
}

}  // namespace weir::policy
