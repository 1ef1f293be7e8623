// Fuzzes the bodies of HTTP requests: any bytes give values within their bounds, or an error with a message.
//
// The first byte of an input selects the kind of body. The problem document with an error must be one line of text,
// whatever bytes the body has. The answer to a list is JSON and has an answer for each check.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz.h"
#include "protocol/check_json.h"
#include "protocol/problem.h"
#include "protocol/request_error.h"
#include "server/http/http_routes.h"
#include "weir/verdict.h"

namespace {

void require_sound(const weir::protocol::CheckItem& item) {
  WEIR_ASSERT(item.cost >= -weir::protocol::kRequestCostMax && item.cost <= weir::protocol::kRequestCostMax);
  WEIR_ASSERT(item.id.size() <= weir::protocol::kIdBytesMax);
  WEIR_ASSERT(item.headers.size() <= weir::protocol::kJsonAttributesMax &&
              item.entries.size() <= weir::protocol::kJsonAttributesMax);
  WEIR_ASSERT(item.by_rules == item.key.empty());
  WEIR_ASSERT(item.key.size() <= weir::kKeyBytesMax);
  WEIR_ASSERT(item.request().path == item.path);
}

void require_message(const weir::Error& error) {
  WEIR_ASSERT(!error.message.empty() && error.message.size() < 1000);
  const std::string problem = weir::protocol::problem_body({400, "Bad request", error.message});
  for (const char c : problem.substr(0, problem.size() - 1)) WEIR_ASSERT(static_cast<unsigned char>(c) >= 0x20);
}

// A list of checks, through its route.
void answer_list(std::string_view body) {
  static const auto clock = std::make_shared<weir::ManualClock>(weir::Micros{1'000'000});
  static weir::Limiter limiter{weir::LimiterOptions{clock, 1000}};
  static weir::server::http::HttpService service{limiter};
  service.home.answer.clear();
  weir::server::http::HttpWork work;
  WEIR_ASSERT(weir::server::http::checks_route({"POST", "/v1/checks", body, {}, {}}, service.home, work) ==
              weir::server::http::HttpNext::answer);
  weir::protocol::JsonTexts texts;
  weir::protocol::JsonReader json(service.home.answer.body, texts);
  WEIR_ASSERT(json.skip_value() && json.at_end());
  if (service.home.answer.status != 200) return;
  weir::protocol::CheckList list(body, texts);
  weir::protocol::CheckItem item;
  std::optional<weir::Error> wrong;
  std::size_t count = 0;
  for (auto more = list.next(item, wrong); more.value(); more = list.next(item, wrong)) {
    if (wrong) {
      require_message(*wrong);
    } else {
      require_sound(item);
    }
    ++count;
  }
  WEIR_ASSERT(count == service.home.reads.size());
}

}  // namespace

void fuzz(std::string_view body) {
  if (body.empty()) return;
  const unsigned kind = take_byte(body) % 5;
  if (kind == 4) return answer_list(body);
  weir::protocol::JsonTexts texts;
  weir::protocol::CheckItem item;
  const auto read = weir::protocol::parse_check(body, static_cast<weir::protocol::CheckShape>(kind), item, texts);
  if (!read) return require_message(read.error());
  require_sound(item);
  weir::protocol::JsonReader json(body, texts);
  WEIR_ASSERT(json.skip_value() && json.at_end());
}
