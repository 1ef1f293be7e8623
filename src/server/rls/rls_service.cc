// Finds the limits that apply to each descriptor. See rls_service.h.
#include "server/rls/rls_service.h"

#include <algorithm>
#include <utility>

#include "base/ip_address.h"
#include "base/key_space.h"
#include "base/request_fields.h"
#include "base/sha256.h"
#include "base/text.h"
#include "protocol/request_error.h"
#include "server/rls/rls_units.h"

namespace weir::server::rls {
namespace {

// A longer path is cut: an error would let the request pass if the gateway is configured to fail open.
constexpr std::size_t kPathBytesKept = 8'192;

// A longer key is replaced by its hash, for the same reason.
constexpr std::size_t kPlainKeyMax = 256;

tl::unexpected<RlsError> refuse(protocol::GrpcStatus status, std::string message) {
  return tl::unexpected<RlsError>({status, std::move(message)});
}

protocol::GrpcStatus status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::out_of_range:
      return protocol::GrpcStatus::invalid_argument;
    case ErrorCode::not_found:
      return protocol::GrpcStatus::not_found;
    case ErrorCode::exhausted:
      return protocol::GrpcStatus::resource_exhausted;
    case ErrorCode::unavailable:
      break;
  }
  return protocol::GrpcStatus::unavailable;
}

tl::unexpected<RlsError> refuse(const Error& error) { return refuse(status_of(error.code), error.message); }

// The attribute that an entry of this name also sets; null: none. An entry `ip` is only an entry.
std::string_view* attribute_of(Request& request, std::string_view name) {
  if (name == "remote_address") return &request.ip;
  const auto* const field = std::ranges::find(base::kRequestFields, name, &base::RequestField::name);
  return field == base::kRequestFields.end() || name == "ip" ? nullptr : &(request.*field->value);
}

// Of entries with the same name, the first with a value sets the attribute.
Request request_of(const protocol::RlsRequest& request, const protocol::RlsDescriptor& descriptor, std::int64_t cost) {
  Request out{.entries = request.all_of(descriptor), .cost = cost};
  for (const Attribute& entry : request.entries_of(descriptor)) {
    std::string_view* attribute = attribute_of(out, entry.name);
    if (attribute != nullptr && attribute->empty()) *attribute = entry.value;
  }
  out.path = out.path.substr(0, kPathBytesKept);
  if (!base::parse_node(out.ip)) out.ip = {};  // only an entry; an error might let the request pass, as above
  return out;
}

// Each text has its length as a prefix, so that no values can form the key of another descriptor. The limit is part
// of the key: a different limit on the same entries is a separate count.
void write_key(std::string& key, const protocol::RlsRequest& request, const protocol::RlsDescriptor& descriptor) {
  key.assign(1, base::kEnvoyKeys).append("rls/");
  base::append_sized(key, std::to_string(descriptor.limit->requests_per_unit));
  base::append_sized(key, std::to_string(static_cast<int>(descriptor.limit->unit)));
  base::append_sized(key, request.domain);
  for (const Attribute& entry : request.entries_of(descriptor)) {
    base::append_sized(key, entry.name);
    base::append_sized(key, entry.value);
  }
  if (key.size() > kPlainKeyMax) key = base::kEnvoyKeys + ("rls/sha256:" + base::hex(base::sha256(key)));
}

Result<Limit> limit_of(const protocol::RlsOverride& given) {
  const auto period = microseconds_of(given.unit);
  if (!period) {
    return fail(ErrorCode::invalid_argument,
                "a descriptor's limit has an unknown unit; use SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR");
  }
  return compile(
      Quota{.algorithm = Algorithm::fixed_window, .permits = given.requests_per_unit, .period = Micros{*period}});
}

}  // namespace

std::size_t RlsService::Views::add(const Request& request) {
  requests.push_back(request);
  if (answers.size() < requests.size()) answers.emplace_back();
  return requests.size() - 1;
}

tl::expected<const protocol::RlsResponse*, RlsError> RlsService::decide(const protocol::RlsRequest& request,
                                                                        Gate* gate) {
  gate_ = gate;
  if (auto ready = prepare(request); !ready) return tl::unexpected<RlsError>(std::move(ready.error()));
  if (auto answered = answer_all(); !answered) return refuse(answered.error());
  respond();
  return &response_;
}

RlsService::Checked RlsService::prepare(const protocol::RlsRequest& request) {
  if (request.domain.empty()) return refuse(protocol::GrpcStatus::unknown, "rate limit domain must not be empty");
  if (request.descriptors.empty()) {
    return refuse(protocol::GrpcStatus::unknown, "rate limit descriptor list must not be empty");
  }
  parts_.clear();
  charged_.clear();
  queries_.clear();
  replaced_.clear();
  owns_used_ = 0;
  if (envoy != nullptr) envoy->renew(view_, view_version_);
  const envoy::EnvoyRules* files = view_ == nullptr ? nullptr : view_->rules.get();
  const bool is_in_files = files != nullptr && files->knows(request.domain);
  if (files != nullptr && !is_in_files) envoy->unknown_domains.fetch_add(1, std::memory_order_relaxed);
  is_known_ = is_in_files && !view_->is_lifted;
  obeys_inline_limits_ = files == nullptr || is_in_files;
  for (const protocol::RlsDescriptor& descriptor : request.descriptors) {
    if (auto ready = prepare_part(request, descriptor); !ready) return ready;
  }
  drop_replaced();
  return {};
}

RlsService::Checked RlsService::prepare_part(const protocol::RlsRequest& request,
                                             const protocol::RlsDescriptor& descriptor) {
  const std::uint64_t hits = descriptor.hits_addend.value_or(std::max<std::uint32_t>(1, request.hits_addend));
  if (hits > static_cast<std::uint64_t>(protocol::kRequestCostMax))
    return refuse(*protocol::refuse_cost(protocol::kRequestCostMax + 1));
  Part part{.is_by_rules = !descriptor.limit || !obeys_inline_limits_, .is_query = hits == 0};
  if (hits > 0) part.cost = static_cast<std::int64_t>(hits) * (descriptor.is_negative_hits ? -1 : 1);
  if (!part.is_by_rules) {
    if (auto ready = prepare_inline_limit(request, descriptor, part); !ready) return ready;
  } else {
    Views& views = part.is_query ? queries_ : charged_;
    part.place = views.add(request_of(request, descriptor, part.cost));
    if (is_known_) prepare_found(request, descriptor, part);
  }
  parts_.push_back(part);
  return {};
}

std::size_t RlsService::add_own() {
  if (owns_.size() == owns_used_) owns_.emplace_back();
  owns_[owns_used_].is_over = false;
  owns_[owns_used_].charge = kNone;
  return owns_used_++;
}

RlsService::Checked RlsService::prepare_inline_limit(const protocol::RlsRequest& request,
                                                     const protocol::RlsDescriptor& descriptor, Part& part) {
  auto limit = limit_of(*descriptor.limit);
  if (!limit) return refuse(limit.error());
  part.own = add_own();
  Own& own = owns_[part.own];
  own.found.rule = nullptr;
  write_key(own.found.key, request, descriptor);
  own.inline_limit = *std::move(limit);
  own.said = {descriptor.limit->requests_per_unit, descriptor.limit->unit, {}};
  own.hold = Hold::enforced;
  own.answer = {
      .name = protocol::kPolicyName, .rule = protocol::kPolicyName, .limit = &own.inline_limit, .cost = part.cost};
  return {};
}

void RlsService::prepare_found(const protocol::RlsRequest& request, const protocol::RlsDescriptor& descriptor,
                               Part& part) {
  const std::size_t place = add_own();
  Own& own = owns_[place];
  view_->rules->find(request.domain, request.entries_of(descriptor), own.found);
  const envoy::EnvoyRule* const rule = own.found.rule;
  part.is_unlimited = rule != nullptr && rule->said.unlimited;
  if (rule != nullptr) replaced_.insert(replaced_.end(), rule->said.replaces.begin(), rule->said.replaces.end());
  if (rule == nullptr || part.is_unlimited) {
    --owns_used_;
    return;
  }
  part.own = place;
  own.said = {rule->said.requests_per_unit, rls_unit(rule->said.unit), rule->said.name};
  own.hold = rule->shadow_mode ? Hold::shadow : rule->quota_mode ? Hold::quota : Hold::enforced;
  own.answer = {
      .name = rule->label, .rule = rule->label, .quota = rule->quota, .limit = &rule->limit, .cost = part.cost};
}

// Possible only after every descriptor has found its limit.
void RlsService::drop_replaced() {
  if (replaced_.empty()) return;
  for (Part& part : parts_) {
    const Own* own = own_of(part);
    if (own == nullptr || own->said.name.empty()) continue;
    if (std::ranges::find(replaced_, own->said.name) != replaced_.end()) part.own = kNone;
  }
}

}  // namespace weir::server::rls
