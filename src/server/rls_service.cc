// Descriptors to requests, requests to answers, answers to statuses. See rls_service.h.
#include "server/rls_service.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "nearest.h"
#include "protocol/request_cost.h"
#include "protocol/seconds.h"
#include "sha256.h"
#include "sized.h"

namespace weir {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000, kDayUs = 86'400 * kSecondUs;
constexpr std::uint32_t kUnlimited = std::numeric_limits<std::uint32_t>::max();

// A longer path is cut: an error would let the request pass where the gateway is told to fail open.
constexpr std::size_t kPathBytesKept = 8'192;

// A longer key is its hash instead, for the same reason.
constexpr std::size_t kPlainKeyMax = 256;

struct UnitLength {
  RlsUnit unit;
  std::int64_t us;
};
constexpr std::array<UnitLength, 7> kUnits = {{{RlsUnit::second, kSecondUs},
                                               {RlsUnit::minute, 60 * kSecondUs},
                                               {RlsUnit::hour, 3'600 * kSecondUs},
                                               {RlsUnit::day, kDayUs},
                                               {RlsUnit::week, 7 * kDayUs},
                                               {RlsUnit::month, 30 * kDayUs},
                                               {RlsUnit::year, 365 * kDayUs}}};

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

// The attribute that an entry of this name is, too.
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

// Of entries with the same name, the first that says something is the attribute.
Request request_of(const RlsRequest& request, const RlsDescriptor& descriptor, std::int64_t cost) {
  Request out{.entries = request.all_of(descriptor), .cost = cost};
  for (const Attribute& entry : request.entries_of(descriptor)) {
    std::string_view* attribute = attribute_of(out, entry.name);
    if (attribute != nullptr && attribute->empty()) *attribute = entry.value;
  }
  out.path = out.path.substr(0, kPathBytesKept);
  return out;
}

// Length before text: no choice of values makes the key of another descriptor.
// The limit belongs to the key: another limit on the same entries is another count.
void write_key(std::string& key, const RlsRequest& request, const RlsDescriptor& descriptor) {
  key.assign("rls/");
  append_sized(key, std::to_string(descriptor.limit->requests_per_unit));
  append_sized(key, std::to_string(static_cast<int>(descriptor.limit->unit)));
  append_sized(key, request.domain);
  for (const Attribute& entry : request.entries_of(descriptor)) {
    append_sized(key, entry.name);
    append_sized(key, entry.value);
  }
  if (key.size() > kPlainKeyMax) key = "rls/sha256:" + hex(sha256(key));
}

Result<Limit> limit_of(const RlsOverride& given) {
  const auto* unit = std::ranges::find(kUnits, given.unit, &UnitLength::unit);
  if (unit == kUnits.end()) {
    return fail(ErrorCode::invalid_argument, "the unit of a descriptor's limit is none of SECOND to WEEK; name one");
  }
  return compile(
      Quota{.algorithm = Algorithm::fixed_window, .permits = given.requests_per_unit, .period = Micros{unit->us}});
}

std::uint32_t capped(std::int64_t value) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, std::numeric_limits<std::uint32_t>::max()));
}

// Calendar windows have no period; the quota's text, `100/calendar_month`, names them.
RlsUnit unit_of(const LimitAnswer& answer) {
  if (answer.limit->period_us == 0) {
    if (answer.quota.find("calendar_day") != answer.quota.npos) return RlsUnit::day;
    if (answer.quota.find("calendar_week") != answer.quota.npos) return RlsUnit::week;
    if (answer.quota.find("calendar_month") != answer.quota.npos) return RlsUnit::month;
    return RlsUnit::year;
  }
  const auto* unit = std::ranges::find(kUnits, answer.limit->period_us, &UnitLength::us);
  return unit == kUnits.end() ? RlsUnit::unknown : unit->unit;
}

std::optional<std::int64_t> wait_seconds(Micros wait) {
  if (wait == kNever) return std::nullopt;
  return seconds_ceil(wait);
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
  overrides_used_ = 0;
  for (const RlsDescriptor& descriptor : request.descriptors) {
    if (auto ready = prepare_part(request, descriptor); !ready) return ready;
  }
  return {};
}

RlsService::Checked RlsService::prepare_part(const RlsRequest& request, const RlsDescriptor& descriptor) {
  const std::uint64_t hits = descriptor.hits_addend.value_or(std::max<std::uint32_t>(1, request.hits_addend));
  if (hits > static_cast<std::uint64_t>(kRequestCostMax)) return refuse(*refuse_cost(kRequestCostMax + 1));
  Part part{.is_override = descriptor.limit.has_value(), .is_question = hits == 0};
  if (hits > 0) part.cost = static_cast<std::int64_t>(hits) * (descriptor.is_negative_hits ? -1 : 1);
  if (part.is_override) {
    if (auto ready = prepare_override(request, descriptor, part.place); !ready) return ready;
  } else {
    Views& views = part.is_question ? questions_ : charged_;
    part.place = views.add(request_of(request, descriptor, part.cost));
  }
  parts_.push_back(part);
  return {};
}

RlsService::Checked RlsService::prepare_override(const RlsRequest& request, const RlsDescriptor& descriptor,
                                                 std::size_t& place) {
  auto limit = limit_of(*descriptor.limit);
  if (!limit) return refuse(limit.error());
  place = overrides_used_++;
  if (overrides_.size() < overrides_used_) overrides_.emplace_back();
  Override& out = overrides_[place];
  write_key(out.key, request, descriptor);
  out.limit = *std::move(limit);
  out.answer = {.name = kPolicyName, .rule = kPolicyName, .limit = &out.limit};
  return {};
}

// Whoever only asks is asked first: if that denies, nothing is charged, and the others are told what they would be.
Result<void> RlsService::answer_all() {
  const auto passed = answer_questions();
  if (!passed) return fail(passed.error());
  if (*passed) return charge();
  for (const Part& part : parts_) {
    if (part.is_question) continue;
    if (auto looked = look(part); !looked) return looked;
  }
  return {};
}

Result<bool> RlsService::answer_questions() {
  bool passed = true;
  for (const Part& part : parts_) {
    if (!part.is_question) continue;
    if (auto looked = look(part); !looked) return fail(looked.error());
    passed = passed && !told_of(part).is_over;
  }
  return passed;
}

Result<void> RlsService::look(const Part& part) {
  if (part.is_override) {
    Override& own = overrides_[part.place];
    auto decision = limiter_.preview(own.key, own.limit, part.cost);
    if (!decision) return fail(std::move(decision.error()));
    own.answer.cost = part.cost;
    own.answer.decision = *decision;
    return {};
  }
  Views& views = part.is_question ? questions_ : charged_;
  Answer& answer = views.answers[part.place];
  if (gate_ == nullptr) {
    answer = Answer{.allowed = true};
    return {};
  }
  auto looked = gate_->peek(views.requests[part.place]);
  if (!looked) return fail(std::move(looked.error()));
  answer = *std::move(looked);
  return {};
}

Result<void> RlsService::charge() {
  also_.clear();
  for (const Part& part : parts_) {
    if (!part.is_override || part.is_question) continue;
    Override& own = overrides_[part.place];
    own.answer.cost = part.cost;
    also_.push_back({own.key, &own.limit, part.cost});
  }
  decisions_.assign(also_.size(), {});
  const std::span requests(charged_.requests);
  const std::span answers = std::span(charged_.answers).first(requests.size());
  if (gate_ == nullptr) {
    for (Answer& answer : answers) answer = Answer{.allowed = true};
    return charge_overrides();
  }
  const auto rules = gate_->rules();
  if (requests.size() == 1 && also_.empty()) return gate_->check(rules, requests[0], answers[0]);  // most are so
  const auto passed = gate_->check_together(rules, requests, answers, also_, decisions_);
  if (!passed) return fail(passed.error());
  std::size_t next = 0;
  for (const Part& part : parts_) {
    if (part.is_override && !part.is_question) overrides_[part.place].answer.decision = decisions_[next++];
  }
  return {};
}

Result<void> RlsService::charge_overrides() {
  if (also_.empty()) return {};
  const auto verdict = limiter_.check_all(also_);
  if (!verdict) return fail(verdict.error());
  std::size_t next = 0;
  for (const Part& part : parts_) {
    if (part.is_override && !part.is_question) overrides_[part.place].answer.decision = verdict->decisions[next++];
  }
  return {};
}

RlsService::Told RlsService::told_of(const Part& part) const {
  if (part.is_override) {
    const LimitAnswer& answer = overrides_[part.place].answer;
    return {&part, &answer, answer.decision.retry_after, !answer.decision.allowed};
  }
  const Answer& answer = answer_of(part);
  return {&part, answer.binding_limit(), answer.retry_after, !answer.allowed};
}

void RlsService::respond() {
  response_.overall_code = RlsCode::ok;
  response_.statuses.clear();
  response_.response_headers.clear();
  response_.raw_body = {};
  response_.dynamic_metadata.reset();

  // The denial with the longest wait, else the fewest that remain, as Envoy's own header fields have it.
  Told binding;
  for (const Part& part : parts_) {
    const Told told = told_of(part);
    add_status(told);
    if (told.is_over) response_.overall_code = RlsCode::over_limit;
    if (told.limit == nullptr && !told.is_over) continue;
    const bool is_tighter = binding.part == nullptr || (told.is_over && !binding.is_over) ||
                            (told.is_over == binding.is_over &&
                             (told.is_over ? told.retry_after > binding.retry_after
                                           : told.limit->decision.remaining < binding.limit->decision.remaining));
    if (is_tighter) binding = told;
  }
  if (binding.part == nullptr) return;
  const Micros now = limiter_.now();
  if (binding.limit != nullptr) tell_client(binding, now);
  if (binding.is_over) tell_denial(binding, now);
  note(binding, now);
}

void RlsService::add_status(const Told& told) {
  RlsStatus& status = response_.statuses.emplace_back();
  status.code = told.is_over ? RlsCode::over_limit : RlsCode::ok;
  if (told.limit == nullptr) {
    if (!told.is_over && answer_of(*told.part).why == Why::exempt) status.limit_remaining = kUnlimited;
    return;
  }
  const Decision& decision = told.limit->decision;
  status.current_limit = RlsLimit{capped(told.limit->limit->permits), unit_of(*told.limit),
                                  told.part->is_override ? std::string_view{} : told.limit->name};
  status.limit_remaining = capped(decision.remaining);
  const std::int64_t seconds = seconds_ceil(decision.reset_after);
  status.seconds_until_reset = told.is_over ? std::max<std::int64_t>(1, seconds) : seconds;
}

// The policy's way to word answers; X-RateLimit-* are left to Envoy, which makes them itself from the statuses.
void RlsService::tell_client(const Told& told, Micros now) {
  limits_.clear();
  const auto add = [this](const LimitAnswer& limit) {
    if (std::ranges::find(limits_, limit.name, &LimitAnswer::name) == limits_.end()) limits_.push_back(limit);
  };
  add(*told.limit);
  for (const Part& part : parts_) {
    if (part.is_override) {
      add(overrides_[part.place].answer);
    } else {
      std::ranges::for_each(answer_of(part).limits, add);
    }
  }
  AnswerStyle style = style_of(told);
  style.x_ratelimit = false;
  fields_.clear();
  append_rate_limit_fields(fields_, {limits_, 0, told.retry_after}, style, now);
  add_fields();
  response_.dynamic_metadata = RlsMetadata{.rule = told.limit->rule,
                                           .allowed = !told.is_over,
                                           .remaining = told.limit->decision.remaining,
                                           .retry_after = wait_seconds(told.retry_after)};
}

// Lines of HTTP/1.1 as pairs, their names in small letters.
void RlsService::add_fields() {
  for (std::size_t begin = 0; begin < fields_.size();) {
    const std::size_t colon = fields_.find(": ", begin), end = fields_.find("\r\n", begin);
    const auto name = std::span(fields_).subspan(begin, colon - begin);
    std::ranges::transform(name, name.begin(), [](char c) { return lower(c); });
    response_.response_headers.push_back(
        {{name.data(), name.size()}, std::string_view(fields_).substr(colon + 2, end - colon - 2)});
    begin = end + 2;
  }
}

const AnswerStyle& RlsService::style_of(const Told& told) const {
  static constexpr AnswerStyle kUsual{};
  if (told.part->is_override) return kUsual;
  const AnswerStyle* style = answer_of(*told.part).style;
  return style == nullptr ? kUsual : *style;
}

void RlsService::tell_denial(const Told& told, Micros now) {
  CheckOutcome outcome;
  if (told.part->is_override) {
    outcome.by_limit = told.limit;
  } else {
    outcome.by_rules = &answer_of(*told.part);
  }
  http_.clear();
  write_check(http_, outcome, style_of(told), now);
  response_.raw_body = http_.body;
  response_.response_headers.push_back({"content-type", http_.content_type});
}

void RlsService::note(const Told& told, Micros now) const {
  if (told.part->is_override) {
    const Override& own = overrides_[told.part->place];
    return denials.note(now, own.key, own.answer.decision);
  }
  denials.note(now, answer_of(*told.part), views_of(*told.part).requests[told.part->place]);
}

}  // namespace weir
