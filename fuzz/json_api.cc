// The bodies of the HTTP port: any bytes give values within their bounds, or an error that says something.
//
// The first byte picks the kind of body. An error is put into a problem document, which must stay one line of text
// whatever the body held; a list gives as many answers as it has checks, and the whole is JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/check_json.h"
#include "protocol/problem.h"
#include "protocol/request_cost.h"
#include "server/http/http_check.h"
#include "weir/verdict.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void require_sound(const weir::CheckItem& item) {
  require(item.cost >= -weir::kRequestCostMax && item.cost <= weir::kRequestCostMax);
  require(item.id.size() <= weir::kIdBytesMax);
  require(item.headers.size() <= weir::kJsonAttributesMax && item.entries.size() <= weir::kJsonAttributesMax);
  require(item.by_rules == item.key.empty());
  require(item.key.size() <= weir::kKeyBytesMax);
  require(item.request().path == item.path);
}

void require_told(const weir::Error& error) {
  require(!error.message.empty() && error.message.size() < 1000);
  const std::string problem = weir::problem_body({400, "Bad request", error.message});
  for (const char c : problem.substr(0, problem.size() - 1)) require(static_cast<unsigned char>(c) >= 0x20);
}

// Many checks, through their route.
void answer_list(std::string_view body) {
  static const auto clock = std::make_shared<weir::ManualClock>(weir::Micros{1'000'000});
  static weir::Limiter limiter{weir::LimiterOptions{clock, 1000}};
  static weir::HttpService service{limiter};
  service.answer.clear();
  weir::HttpWork work;
  require(weir::checks_route({"POST", "/v1/checks", body, {}, {}}, service, work) == weir::HttpNext::answer);
  weir::JsonTexts texts;
  weir::JsonReader json(service.answer.body, texts);
  require(json.skip_value() && json.at_end());
  if (service.answer.status != 200) return;
  weir::CheckList list(body, texts);
  weir::CheckItem item;
  std::optional<weir::Error> wrong;
  std::size_t count = 0;
  for (auto more = list.next(item, wrong); more.value(); more = list.next(item, wrong)) {
    if (wrong) {
      require_told(*wrong);
    } else {
      require_sound(item);
    }
    ++count;
  }
  require(count == service.reads.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const unsigned kind = data[0] % 5;
  if (kind == 4) {
    answer_list(body);
    return 0;
  }
  weir::JsonTexts texts;
  weir::CheckItem item;
  const auto read = weir::parse_check(body, static_cast<weir::CheckShape>(kind), item, texts);
  if (!read) {
    require_told(read.error());
    return 0;
  }
  require_sound(item);
  weir::JsonReader json(body, texts);
  require(json.skip_value() && json.at_end());
  return 0;
}
