// POST /v1/checks: many checks in one request, each decided independently. See http_check.h.
//
// The whole body is parsed first; if it is invalid, nothing is charged. Consecutive checks with their own limits are
// decided together, which makes this fast. The others are parsed again, one by one, when they are answered. If those
// are many, they would hold up the loop: then the body is copied and answered in pieces.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "protocol/http1.h"
#include "protocol/problem.h"
#include "server/http/http_check.h"

namespace weir {
namespace {

void note_wrong(HttpService& service, Error error) {
  service.reads.push_back({ReadCheck::Kind::wrong, service.errors.size()});
  service.errors.push_back(std::move(error));
}

void note(HttpService& service, std::size_t place) {
  const CheckItem& item = service.item;
  if (item.by_rules) {
    service.reads.push_back({ReadCheck::Kind::later, place});
    return;
  }
  auto limit = inline_limit(item, WantedLimit::rate, service);
  if (!limit) return note_wrong(service, std::move(limit.error()));
  if (!item.id.empty()) {
    service.reads.push_back({ReadCheck::Kind::later, place});
    return;
  }
  service.reads.push_back({ReadCheck::Kind::charge, service.charges.size()});
  service.charges.push_back({item.key, *limit, item.cost});
}

// Parses every check of the body; an error concerns the whole body.
Result<void> read_all(std::string_view body, HttpService& service) {
  service.reads.clear();
  service.charges.clear();
  service.errors.clear();
  service.texts.clear();
  service.limits.begin_request();
  CheckList list(body, service.texts, service.bounds.key_max);
  std::optional<Error> wrong;
  while (true) {
    const auto more = list.next(service.item, wrong);
    if (!more) return fail(more.error());
    if (!*more) return {};
    if (service.reads.size() == service.bounds.checks_max) {
      return fail(ErrorCode::out_of_range, "the request has more than " + std::to_string(service.bounds.checks_max) +
                                               " checks; split them over several requests");
    }
    if (wrong) {
      note_key(service);
      note_wrong(service, *std::move(wrong));
    } else {
      note(service, list.place());
    }
  }
}

void append_error(std::string& out, const Error& error) {
  out.append("\"error\":\"").append(error.code == ErrorCode::exhausted ? "Out of capacity" : "Bad check");
  append_json_text(out.append("\",\"detail\":"), error.message);
}

void append_decided(std::string& out, std::string_view key, const Result<Decision>& decision, HttpService& service) {
  if (!decision) return append_error(out, decision.error());
  service.denials.note(service.now, key, *decision);
  append_decision_members(out, *decision);
}

// Decides one check at once.
void decide(std::string& out, const CheckItem& item, HttpService& service) {
  if (item.by_rules) {
    if (auto asked = ask_rules(item, Charging::charges, service); !asked) return append_error(out, asked.error());
    service.denials.note(service.now, service.by_rules, item.request());
    return append_check(out, {.by_rules = &service.by_rules});
  }
  const auto limit = inline_limit(item, WantedLimit::rate, service);
  if (!limit) return append_error(out, limit.error());
  append_decided(out, item.key, ask_limiter(item, **limit, Charging::charges, service), service);
}

void decide_later(std::string& out, CheckList& list, std::size_t place, HttpService& service) {
  std::optional<Error> wrong;
  list.go_back(place);
  if (!list.next(service.item, wrong).value_or(false)) return;  // parsed before
  decide(out, service.item, service);
}

// Decides the charges from this check up to the next one with Kind::later: checks after that must be decided after
// it.
void decide_run(HttpService& service, std::size_t from) {
  const auto reads = std::span(service.reads).subspan(from);
  const auto end = std::ranges::find(reads, ReadCheck::Kind::later, &ReadCheck::kind);
  const auto count =
      std::count_if(reads.begin(), end, [](const ReadCheck& read) { return read.kind == ReadCheck::Kind::charge; });
  const auto run = std::span(service.charges).subspan(reads.front().place, static_cast<std::size_t>(count));
  const Micros now = service.limiter.check_many(run, service.decisions);
  if (service.counting != nullptr) service.counting->count_inline(run, service.decisions, now);
}

void answer_all(std::string_view body, HttpService& service) {
  CheckList list(body, service.texts);
  std::string& out = service.answer.body;
  std::size_t run_begin = 0, run_end = 0;  // the decided charges
  for (std::size_t i = 0; i < service.reads.size(); ++i) {
    const ReadCheck& read = service.reads[i];
    out.append(i == 0 ? "{" : ",{");
    switch (read.kind) {
      case ReadCheck::Kind::charge:
        if (read.place >= run_end) {
          decide_run(service, i);
          run_begin = read.place;
          run_end = run_begin + service.decisions.size();
        }
        append_decided(out, service.charges[read.place].key, service.decisions[read.place - run_begin], service);
        break;
      case ReadCheck::Kind::later:
        decide_later(out, list, read.place, service);
        break;
      case ReadCheck::Kind::wrong:
        append_error(out, service.errors[read.place]);
        break;
    }
    out.append("}");
  }
}

constexpr std::string_view kBegin = "{\"answers\":[";
constexpr std::string_view kEnd = "]}\n";

bool are_many(const HttpService& service) {
  return std::ranges::count(service.reads, ReadCheck::Kind::later, &ReadCheck::kind) >
         static_cast<std::ptrdiff_t>(kChecksAtOnce);
}

}  // namespace

ChecksInPieces::ChecksInPieces(std::string_view body, std::size_t key_max)
    : body_(body), list_(body_, texts_, key_max), answer_(kBegin) {}

bool ChecksInPieces::go_on(HttpService& service) {
  service.limits.begin_request();
  service.now = service.limiter.now();
  std::optional<Error> wrong;
  for (std::size_t i = 0; i < kChecksAtOnce; ++i) {
    texts_.clear();
    if (!list_.next(service.item, wrong).value_or(false)) {
      answer_.append(kEnd);
      return false;
    }
    answer_.append(std::exchange(is_first_, false) ? "{" : ",{");
    if (wrong) {
      append_error(answer_, *wrong);
    } else {
      decide(answer_, service.item, service);
    }
    answer_.append("}");
  }
  return true;
}

HttpNext checks_route(const HttpCall& call, HttpService& service, HttpWork& work) {
  HttpAnswer& answer = service.answer;
  const auto has_id = [](const Attribute& field) { return equals_ignoring_case(field.name, "idempotency-key"); };
  if (std::ranges::any_of(call.fields, has_id)) {
    write_problem(answer, 400, "Bad request",
                  "Idempotency-Key cannot apply to many checks; give each check its own \"id\"");
    return HttpNext::answer;
  }
  if (auto read = read_all(call.body, service); !read) {
    if (service.reads.size() == service.bounds.checks_max && read.error().code == ErrorCode::out_of_range) {
      service.bounds.refuse(Refused::body);
      write_problem(answer, 413, "Too many checks", read.error().message);
    } else {
      write_refusal(service, read.error());
    }
    return HttpNext::answer;
  }
  if (are_many(service)) {
    work.pieces = std::make_unique<ChecksInPieces>(call.body, service.bounds.key_max);
    return HttpNext::pieces;
  }
  answer.body.append(kBegin);
  answer_all(call.body, service);
  answer.body.append(kEnd);
  return HttpNext::answer;
}

}  // namespace weir
