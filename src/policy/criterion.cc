// Evaluates conditions, on every request. See criterion.h.
#include "policy/criterion.h"

#include <algorithm>

#include "base/nearest.h"
#include "base/text.h"
#include "policy/dimension.h"

namespace weir::policy {
namespace {

std::array<std::uint8_t, 32> hash_of(std::string_view text) {
  std::array<std::uint8_t, 32> hash{};
  const std::string_view digits = text.substr(text.find(':') + 1);
  for (std::size_t i = 0; i < hash.size(); ++i) {
    hash[i] = static_cast<std::uint8_t>(base::hex_byte(digits.substr(2 * i)).value());
  }
  return hash;
}

}  // namespace

Criterion::Criterion(const Condition& condition, PathCase path_case) : condition_(condition) {
  std::vector<base::IpRange> ranges;
  for (const std::string& value : condition.any_of) {
    switch (condition.kind) {
      case weir::AttributeKind::path:
        patterns_.push_back(PathPattern::parse(value, path_case).value());
        break;
      case weir::AttributeKind::ip:
        ranges.push_back(base::parse_ip_range(value).value());
        break;
      default:
        if (value == "*") {
          is_any_ = true;
        } else if (condition.kind == weir::AttributeKind::api_key) {
          hashes_.push_back(hash_of(value));
        } else if (value.find('*') != value.npos) {
          globs_.push_back(value);
        } else {
          whole_.push_back(value);
        }
    }
  }
  ranges_ = base::IpSet(ranges);
  std::ranges::sort(whole_);
}

bool Criterion::accepts(std::string_view value) const {
  if (value.empty()) return false;
  if (is_any_ || std::ranges::binary_search(whole_, value, {}, [](const auto& s) { return std::string_view(s); })) {
    return true;
  }
  return std::ranges::any_of(globs_, [&](const std::string& glob) { return glob_matches(glob, value); });
}

// Method names are compared without regard to case, so that `post` cannot avoid a rule for POST.
bool Criterion::accepts_method(std::string_view method) const {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  const auto is_same = [&](const std::string& known) {
    return known.size() == method.size() &&
           std::equal(known.begin(), known.end(), method.begin(), [&](char a, char b) { return a == upper(b); });
  };
  return !method.empty() && (is_any_ || std::ranges::any_of(whole_, is_same));
}

bool Criterion::holds(Facts& facts) const {
  const Request& request = facts.request();
  switch (condition_.kind) {
    case weir::AttributeKind::path:
      return std::ranges::any_of(patterns_, [&](const PathPattern& pattern) { return pattern.matches(facts.path()); });
    case weir::AttributeKind::ip: {
      const base::IpAddress* ip = facts.ip();
      return ip != nullptr && ranges_.contains(*ip);
    }
    case weir::AttributeKind::api_key:
      if (request.api_key.empty()) return false;
      return is_any_ || std::ranges::find(hashes_, facts.key_hash()) != hashes_.end();
    case weir::AttributeKind::method:
      return accepts_method(request.method);
    case weir::AttributeKind::header:  // any line of that name, so that a client cannot hide one value behind another
      return std::ranges::any_of(request.headers, [&](const Attribute& header) {
        return is_header(header.name, condition_.name) && accepts(header.value);
      });
    case weir::AttributeKind::entry:
      return std::ranges::any_of(request.entries, [&](const Attribute& entry) {
        return entry.name == condition_.name && accepts(entry.value);
      });
    case weir::AttributeKind::query: {
      std::string scratch;
      return any_query_value(facts.query(), condition_.name, scratch,
                             [&](std::string_view value) { return accepts(value); });
    }
    default:
      return accepts(facts.value(condition_.kind, condition_.name));
  }
}

}  // namespace weir::policy
