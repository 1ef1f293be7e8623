// POST /v1/checks: many checks in one request, each decided on its own. See http_check.h.
//
// The whole body is read first, and nothing is charged if it cannot be. Those with a limit of their own are then
// decided together, which is what makes this fast; the others are read again, one by one, as they are answered.
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "protocol/problem.h"
#include "server/http_check.h"

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

// Every check of the body; an error is one of the whole.
Result<void> read_all(std::string_view body, HttpService& service) {
  service.reads.clear();
  service.charges.clear();
  service.errors.clear();
  service.texts.clear();
  service.limits.begin_request();
  CheckList list(body, service.texts);
  std::optional<Error> wrong;
  while (true) {
    const auto more = list.next(service.item, wrong);
    if (!more) return fail(more.error());
    if (!*more) return {};
    if (service.reads.size() == kChecksMax) {
      return fail(ErrorCode::out_of_range,
                  "there are more than " + std::to_string(kChecksMax) + " checks; send them in several requests");
    }
    if (wrong) {
      note_wrong(service, *std::move(wrong));
    } else {
      note(service, list.place());
    }
  }
}

void append_error(std::string& out, const Error& error) {
  out.append("\"error\":\"").append(error.code == ErrorCode::exhausted ? "Out of room" : "Bad check");
  append_json_text(out.append("\",\"detail\":"), error.message);
}

void append_decided(std::string& out, const Result<Decision>& decision) {
  if (!decision) return append_error(out, decision.error());
  append_decision_members(out, *decision);
}

void decide_later(std::string& out, CheckList& list, std::size_t place, HttpService& service) {
  std::optional<Error> wrong;
  list.go_back(place);
  if (!list.next(service.item, wrong).value_or(false)) return;  // it was read before
  const CheckItem& item = service.item;
  if (item.by_rules) {
    if (auto asked = ask_rules(item, Charging::charges, service); !asked) return append_error(out, asked.error());
    return append_check(out, {.by_rules = &service.by_rules});
  }
  const auto limit = inline_limit(item, WantedLimit::rate, service);
  if (!limit) return append_error(out, limit.error());
  append_decided(out, ask_limiter(item, **limit, Charging::charges, service));
}

}  // namespace

HttpNext checks_route(const HttpCall& call, HttpService& service, HttpWork&) {
  HttpAnswer& answer = service.answer;
  if (auto read = read_all(call.body, service); !read) {
    if (service.reads.size() == kChecksMax && read.error().code == ErrorCode::out_of_range) {
      write_problem(answer, 413, "Too many checks", read.error().message);
    } else {
      write_refusal(service, read.error());
    }
    return HttpNext::answer;
  }
  service.limiter.check_many(service.charges, service.decisions);
  CheckList list(call.body, service.texts);
  std::string& out = answer.body;
  out.append("{\"answers\":[");
  for (const ReadCheck& read : service.reads) {
    out.append("{");
    switch (read.kind) {
      case ReadCheck::Kind::charge:
        append_decided(out, service.decisions[read.place]);
        break;
      case ReadCheck::Kind::later:
        decide_later(out, list, read.place, service);
        break;
      case ReadCheck::Kind::wrong:
        append_error(out, service.errors[read.place]);
        break;
    }
    out.append("},");
  }
  if (!service.reads.empty()) out.pop_back();
  out.append("]}\n");
  return HttpNext::answer;
}

}  // namespace weir
