// POST /v1/checks: many checks in one request, each decided independently. See http_routes.h.
//
// The whole body is parsed first; if it is invalid, nothing is charged. Consecutive checks with their own limits are
// decided together, which makes this fast. The others are parsed again, one by one, when they are answered. If those
// are many, they would delay the loop: then the body is copied and answered in pieces.
#include "base/json_text.h"
#include "server/http/http_routes.h"

#include <algorithm>
#include <utility>

#include "protocol/problem.h"

namespace weir::server::http {
namespace {

void note_wrong(HttpContext& context, Error error) {
  context.reads.push_back({ReadCheck::Kind::wrong, context.errors.size()});
  context.errors.push_back(std::move(error));
}

void note(HttpContext& context, std::size_t place) {
  const protocol::CheckItem& item = context.item;
  auto limit = item.by_rules ? Result<const Limit*>(nullptr) : inline_limit(item, WantedLimit::rate, context);
  if (!limit) return note_wrong(context, std::move(limit.error()));
  if (item.by_rules || !item.id.empty()) {
    context.reads.push_back({ReadCheck::Kind::later, place});
    return;
  }
  context.reads.push_back({ReadCheck::Kind::charge, context.charges.size()});
  context.charges.push_back({item.key, *limit, item.cost});
}

// Parses every check of the body; an error concerns the whole body.
Result<void> read_all(std::string_view body, HttpContext& context) {
  context.reads.clear();
  context.charges.clear();
  context.errors.clear();
  context.texts.clear();
  context.limits.end_round();
  protocol::CheckList list(body, context.texts, context.service.bounds.key_max);
  std::optional<Error> wrong;
  while (true) {
    const auto more = list.next(context.item, wrong);
    if (!more) return fail(more.error());
    if (!*more) return {};
    if (context.reads.size() == context.service.bounds.checks_max) {
      return fail(ErrorCode::out_of_range, "the request has more than " +
                                               std::to_string(context.service.bounds.checks_max) +
                                               " checks; split them over several requests");
    }
    if (wrong) {
      note_key(context);
      note_wrong(context, *std::move(wrong));
    } else {
      note(context, list.place());
    }
  }
}

void append_error(std::string& out, const Error& error) {
  out.append("\"error\":\"").append(error.code == ErrorCode::exhausted ? "Out of capacity" : "Bad check");
  base::append_json_text(out.append("\",\"detail\":"), error.message);
}

void append_decided(std::string& out, std::string_view key, const Result<Decision>& decision, HttpContext& context) {
  if (!decision) return append_error(out, decision.error());
  context.denials.note(context.now, key, *decision);
  protocol::append_decision_members(out, *decision);
}

// Decides one check at once.
void decide(std::string& out, const protocol::CheckItem& item, HttpContext& context) {
  if (item.by_rules) {
    if (auto asked = ask_rules(item, Charging::charges, context); !asked) return append_error(out, asked.error());
    context.denials.note(context.now, context.by_rules, item.request());
    return protocol::append_check(out, {.by_rules = &context.by_rules});
  }
  const auto limit = inline_limit(item, WantedLimit::rate, context);
  if (!limit) return append_error(out, limit.error());
  append_decided(out, item.key, ask_limiter(item, **limit, Charging::charges, context), context);
}

void decide_later(std::string& out, protocol::CheckList& list, std::size_t place, HttpContext& context) {
  std::optional<Error> wrong;
  list.go_back(place);
  if (!list.next(context.item, wrong).value_or(false)) return;  // parsed before
  decide(out, context.item, context);
}

// Decides the charges from this check up to the next one with Kind::later: checks after that must be decided after
// it.
void decide_run(HttpContext& context, std::size_t from) {
  const auto reads = std::span(context.reads).subspan(from);
  const auto end = std::ranges::find(reads, ReadCheck::Kind::later, &ReadCheck::kind);
  const auto count =
      std::count_if(reads.begin(), end, [](const ReadCheck& read) { return read.kind == ReadCheck::Kind::charge; });
  const auto run = std::span(context.charges).subspan(reads.front().place, static_cast<std::size_t>(count));
  const Micros now = context.service.limiter.check_many(run, context.decisions);
  if (context.service.counting != nullptr) context.service.counting->count_inline(run, context.decisions, now);
}

void answer_all(std::string_view body, HttpContext& context) {
  protocol::CheckList list(body, context.texts);
  std::string& out = context.answer.body;
  std::size_t run_begin = 0, run_end = 0;  // the decided charges
  for (std::size_t i = 0; i < context.reads.size(); ++i) {
    const ReadCheck& read = context.reads[i];
    out.append(i == 0 ? "{" : ",{");
    switch (read.kind) {
      case ReadCheck::Kind::charge:
        if (read.place >= run_end) {
          decide_run(context, i);
          run_begin = read.place;
          run_end = run_begin + context.decisions.size();
        }
        append_decided(out, context.charges[read.place].key, context.decisions[read.place - run_begin], context);
        break;
      case ReadCheck::Kind::later:
        decide_later(out, list, read.place, context);
        break;
      case ReadCheck::Kind::wrong:
        append_error(out, context.errors[read.place]);
        break;
    }
    out.append("}");
  }
}

constexpr std::string_view kBegin = "{\"answers\":[";
constexpr std::string_view kEnd = "]}\n";

}  // namespace

ChecksInPieces::ChecksInPieces(std::string_view body, std::size_t key_max)
    : body_(body), list_(body_, texts_, key_max), answer_(kBegin) {}

bool ChecksInPieces::go_on(HttpContext& context) {
  context.limits.end_round();
  context.now = context.service.limiter.now();
  std::optional<Error> wrong;
  for (std::size_t i = 0; i < kChecksAtOnce; ++i) {
    texts_.clear();
    if (!list_.next(context.item, wrong).value_or(false)) {
      answer_.append(kEnd);
      return false;
    }
    answer_.append(std::exchange(is_first_, false) ? "{" : ",{");
    if (wrong) {
      append_error(answer_, *wrong);
    } else {
      decide(answer_, context.item, context);
    }
    answer_.append("}");
  }
  return true;
}

HttpNext checks_route(const HttpCall& call, HttpContext& context, HttpWork& work) {
  const auto has_id = [](const Attribute& field) {
    return protocol::equals_ignoring_case(field.name, "idempotency-key");
  };
  if (std::ranges::any_of(call.fields, has_id)) {
    return answer_problem(context, 400, "Bad request",
                          "Idempotency-Key cannot apply to many checks; give each check its own \"id\"");
  }
  if (auto read = read_all(call.body, context); !read) {
    const bool are_too_many = context.reads.size() == context.service.bounds.checks_max;
    if (!are_too_many || read.error().code != ErrorCode::out_of_range) return refuse(context, read.error());
    context.service.bounds.refuse(loop::Refused::body);
    return answer_problem(context, 413, "Too many checks", read.error().message);
  }
  const auto later = std::ranges::count(context.reads, ReadCheck::Kind::later, &ReadCheck::kind);
  if (later > static_cast<std::ptrdiff_t>(kChecksAtOnce)) {
    work.pieces = std::make_unique<ChecksInPieces>(call.body, context.service.bounds.key_max);
    return HttpNext::pieces;
  }
  context.answer.body.append(kBegin);
  answer_all(call.body, context);
  context.answer.body.append(kEnd);
  return HttpNext::answer;
}

}  // namespace weir::server::http
