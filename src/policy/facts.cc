// Computes the attributes of a request that rules ask for. See facts.h.
#include "policy/facts.h"

#include <algorithm>

#include "base/nearest.h"
#include "base/sha256.h"

namespace weir::policy {

bool is_header(std::string_view header, std::string_view name) {
  return header.size() == name.size() &&
         std::equal(header.begin(), header.end(), name.begin(), [](char a, char b) { return base::lower(a) == b; });
}

namespace {

std::string_view find_header(std::span<const Attribute> headers, std::string_view name) {
  for (const Attribute& header : headers) {
    if (is_header(header.name, name) && !header.value.empty()) return header.value;
  }
  return {};
}

std::string_view find_entry(std::span<const Attribute> entries, std::string_view name) {
  for (const Attribute& entry : entries) {
    if (entry.name == name && !entry.value.empty()) return entry.value;
  }
  return {};
}

// Skips empty values, so that a client cannot hide a value behind an empty one.
std::string_view first_parameter(std::string_view query, std::string_view name, std::string& scratch) {
  QueryValues values(query, name);
  auto value = values.next(scratch);
  while (value && value->empty()) value = values.next(scratch);
  return value.value_or(std::string_view{});
}

// API.example.com.:8443 becomes API.example.com; an IPv6 address keeps its brackets.
std::string_view without_port(std::string_view host) {
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.find(':', bracket == host.npos ? 0 : bracket);
  host = host.substr(0, colon);
  while (host.ends_with('.')) host.remove_suffix(1);
  return host;
}

}  // namespace

Facts::Facts(const Request& request, const RequestReading& reading) : request_(request), reading_(reading) {
  if (request.path.size() <= kPathBytesMax) {
    path_ = normal_path(request.path, reading.path_case, path_scratch_);
    const bool is_as_sent = path_.data() == request.path.data() && path_.size() == request.path.size();
    if (!is_as_sent) {  // else it has one reading
      has_readings_ = find_readings(request.path, path_, reading.path_case, readings_);
      choose_reading(0);
    }
  }
  if (!request.ip.empty()) peer_ = base::parse_node(request.ip);
}

std::optional<Error> Facts::refuse() const {
  if (request_.path.size() > kPathBytesMax) {
    return Error{ErrorCode::out_of_range, "the path has " + std::to_string(request_.path.size()) + " bytes; at most " +
                                              std::to_string(kPathBytesMax) + " are allowed"};
  }
  if (request_.headers.size() > kRequestAttributesMax || request_.entries.size() > kRequestAttributesMax) {
    return Error{ErrorCode::out_of_range, "a request has at most " + std::to_string(kRequestAttributesMax) +
                                              " headers and the same number of entries"};
  }
  if (!request_.ip.empty() && !peer_) {
    return Error{ErrorCode::invalid_argument, "\"ip\" is " + base::in_quotes(request_.ip) +
                                                  ", which is not an address such as 192.0.2.1 or 2001:db8::1"};
  }
  return {};
}

void Facts::choose_reading(std::size_t number) {
  if (readings_.empty()) return;
  path_ = readings_[number].path;
  query_ = readings_[number].query;
}

std::string_view Facts::host() {
  if (has_host_) return host_;
  has_host_ = true;
  host_ = without_port(request_.host);
  if (std::ranges::any_of(host_, [](char c) { return c >= 'A' && c <= 'Z'; }))
    host_ = host_scratch_ = base::lower(host_);
  return host_;
}

const base::IpAddress* Facts::ip() {
  if (!peer_) return nullptr;
  if (!has_client_) {
    has_client_ = true;
    client_ = client_ip(*peer_, request_.headers, reading_.trust);
  }
  return &*client_;
}

const std::array<std::uint8_t, 32>& Facts::key_hash() {
  if (!has_key_hash_) key_hash_ = base::sha256(request_.api_key);
  has_key_hash_ = true;
  return key_hash_;
}

std::string_view Facts::value(weir::AttributeKind kind, std::string_view name) {
  switch (kind) {
    case weir::AttributeKind::user:
      return request_.user;
    case weir::AttributeKind::tenant:
      return request_.tenant;
    case weir::AttributeKind::plan:
      return request_.plan;
    case weir::AttributeKind::method:
      return request_.method;
    case weir::AttributeKind::host:
      return host();
    case weir::AttributeKind::header:
      return find_header(request_.headers, name);
    case weir::AttributeKind::query:
      return first_parameter(query(), name, query_scratch_);
    case weir::AttributeKind::entry:
      return find_entry(request_.entries, name);
    case weir::AttributeKind::path:
      return path_;
    case weir::AttributeKind::api_key:
    case weir::AttributeKind::ip:
    case weir::AttributeKind::identity:
    case weir::AttributeKind::capture:
      break;
  }
  WEIR_ASSERT(!"this kind has no plain value");
  return {};
}

}  // namespace weir::policy
