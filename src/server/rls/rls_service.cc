// Finds the limits that apply to each descriptor. See rls_service.h.
#include "server/rls/rls_service.h"

#include <algorithm>
#include <utility>

#include "base/ip_address.h"
#include "base/key_space.h"
#include "base/sha256.h"
#include "base/sized.h"
#include "protocol/request_cost.h"
#include "server/rls/rls_units.h"

namespace weir {
namespace {

// A longer path is cut: an error would let the request pass if the gateway is configured to fail open.
constexpr std::size_t kPathBytesKept = 8'192;

// A longer key is replaced by its hash, for the same reason.
constexpr std::size_t kPlainKeyMax = 256;

tl::unexpected<RlsError> refuse(GrpcStatus status, std::string message) {
  return tl::unexpected<RlsError>({status, std::move(message)});
}

GrpcStatus status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::out_of_range:
      return GrpcStatus::invalid_argument;
    case ErrorCode::not_found:
      return GrpcStatus::not_found;
    case ErrorCode::exhausted:
      return GrpcStatus::resource_exhausted;
    case ErrorCode::unavailable:
      break;
  }
  return GrpcStatus::unavailable;
}

tl::unexpected<RlsError> refuse(const Error& error) { return refuse(status_of(error.code), error.message); }

// The attribute that an entry of this name also sets.
std::string_view* attribute_of(Request& request, std::string_view name) {
  if (name == "remote_address") return &request.ip;
  if (name == "user") return &request.user;
  if (name == "api_key") return &request.api_key;
  if (name == "tenant") return &request.tenant;
  if (name == "plan") return &request.plan;
  if (name == "method") return &request.method;
  if (name == "host") return &request.host;
  if (name == "path") return &request.path;
  return nullptr;
}

// Of entries with the same name, the first with a value sets the attribute.
Request request_of(const RlsRequest& request, const RlsDescriptor& descriptor, std::int64_t cost) {
  Request out{.entries = request.all_of(descriptor), .cost = cost};
  for (const Attribute& entry : request.entries_of(descriptor)) {
    std::string_view* attribute = attribute_of(out, entry.name);
    if (attribute != nullptr && attribute->empty()) *attribute = entry.value;
  }
  out.path = out.path.substr(0, kPathBytesKept);
  if (!parse_node(out.ip)) out.ip = {};  // not an address: only an entry, and no error, for the same reason
  return out;
}

// Each text has its length as a prefix, so that no values can form the key of another descriptor. The limit is part
// of the key: a different limit on the same entries is a separate count.
void write_key(std::string& key, const RlsRequest& request, const RlsDescriptor& descriptor) {
  key.assign(1, kEnvoyKeys).append("rls/");
  append_sized(key, std::to_string(descriptor.limit->requests_per_unit));
  append_sized(key, std::to_string(static_cast<int>(descriptor.limit->unit)));
  append_sized(key, request.domain);
  for (const Attribute& entry : request.entries_of(descriptor)) {
    append_sized(key, entry.name);
    append_sized(key, entry.value);
  }
  if (key.size() > kPlainKeyMax) key = kEnvoyKeys + ("rls/sha256:" + hex(sha256(key)));
}

Result<Limit> limit_of(const RlsOverride& given) {
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

tl::expected<const RlsResponse*, RlsError> RlsService::decide(const RlsRequest& request, Gate* gate) {
  gate_ = gate;
  if (auto ready = prepare(request); !ready) return tl::unexpected<RlsError>(std::move(ready.error()));
  if (auto answered = answer_all(); !answered) return refuse(answered.error());
  respond();
  return &response_;
}

RlsService::Checked RlsService::prepare(const RlsRequest& request) {
  if (request.domain.empty()) return refuse(GrpcStatus::unknown, "rate limit domain must not be empty");
  if (request.descriptors.empty()) {
    return refuse(GrpcStatus::unknown, "rate limit descriptor list must not be empty");
  }
  parts_.clear();
  charged_.clear();
  questions_.clear();
  replaced_.clear();
  owns_used_ = 0;
  if (envoy != nullptr) envoy->renew(view_, view_version_);
  const EnvoyRules* files = view_ == nullptr ? nullptr : view_->rules.get();
  const bool is_in_files = files != nullptr && files->knows(request.domain);
  if (files != nullptr && !is_in_files) envoy->unknown_domains.fetch_add(1, std::memory_order_relaxed);
  is_known_ = is_in_files && !view_->is_lifted;
  obeys_brought_ = files == nullptr || is_in_files;
  for (const RlsDescriptor& descriptor : request.descriptors) {
    if (auto ready = prepare_part(request, descriptor); !ready) return ready;
  }
  drop_replaced();
  return {};
}

RlsService::Checked RlsService::prepare_part(const RlsRequest& request, const RlsDescriptor& descriptor) {
  const std::uint64_t hits = descriptor.hits_addend.value_or(std::max<std::uint32_t>(1, request.hits_addend));
  if (hits > static_cast<std::uint64_t>(kRequestCostMax)) return refuse(*refuse_cost(kRequestCostMax + 1));
  Part part{.is_by_rules = !descriptor.limit || !obeys_brought_, .is_question = hits == 0};
  if (hits > 0) part.cost = static_cast<std::int64_t>(hits) * (descriptor.is_negative_hits ? -1 : 1);
  if (!part.is_by_rules) {
    if (auto ready = prepare_brought(request, descriptor, part); !ready) return ready;
  } else {
    Views& views = part.is_question ? questions_ : charged_;
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

RlsService::Checked RlsService::prepare_brought(const RlsRequest& request, const RlsDescriptor& descriptor,
                                                Part& part) {
  auto limit = limit_of(*descriptor.limit);
  if (!limit) return refuse(limit.error());
  part.own = add_own();
  Own& own = owns_[part.own];
  own.found.rule = nullptr;
  write_key(own.found.key, request, descriptor);
  own.brought = *std::move(limit);
  own.said = {descriptor.limit->requests_per_unit, descriptor.limit->unit, {}};
  own.hold = Hold::enforced;
  own.answer = {.name = kPolicyName, .rule = kPolicyName, .limit = &own.brought, .cost = part.cost};
  return {};
}

void RlsService::prepare_found(const RlsRequest& request, const RlsDescriptor& descriptor, Part& part) {
  const std::size_t place = add_own();
  Own& own = owns_[place];
  view_->rules->find(request.domain, request.entries_of(descriptor), own.found);
  const EnvoyRule* const rule = own.found.rule;
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

}  // namespace weir
