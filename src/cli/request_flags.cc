// Converts flags to a request and to JSON. See request_flags.h.
#include "cli/request_flags.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/flags.h"

namespace weir::cli {
namespace {

// The help of each flag, in the order of kRequestFields.
constexpr std::array<const char*, base::kRequestFields.size()> kAbout = {
    "User of the request",      "API key of the request",
    "IP address of the client", "Tenant of the request",
    "Plan of the request",      "HTTP method: GET, POST, ...",
    "Host of the request",      "Path of the request, with its query"};

// Splits `name: value` or `name=value`.
bool split(const std::string& text, Attribute& out) {
  const std::size_t at = text.find_first_of(":=");
  if (at == 0 || at == text.npos) return false;
  out = {std::string_view(text).substr(0, at), std::string_view(text).substr(at + 1)};
  while (out.value.starts_with(' ')) out.value.remove_prefix(1);
  return true;
}

Result<void> split_all(const std::vector<std::string>& texts, std::vector<Attribute>& out, const char* advice) {
  out.clear();
  for (const std::string& text : texts) {
    if (!split(text, out.emplace_back())) return fail(ErrorCode::invalid_argument, advice);
  }
  return {};
}

}  // namespace

void RequestFlags::add(CLI::App& app) {
  add_attributes(app);
  app.add_option("--cost", cost_, "Permits that the request costs")->type_name("N")->capture_default_str();
}

void RequestFlags::add_attributes(CLI::App& app) {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    std::string name = "--" + std::string(base::kRequestFields[i].name);
    std::ranges::replace(name, '_', '-');
    text_flag(app, name.c_str(), texts_[i], "TEXT", kAbout[i]);
  }
  app.add_option("--header", headers_, "Header field; repeatable")->type_name("NAME:VALUE");
  app.add_option("--entry", entries_, "Descriptor entry; repeatable")->type_name("NAME=VALUE");
}

Result<Request> RequestFlags::request() {
  return split_all(headers_, header_fields_, "invalid --header; write it like --header x-org:acme")
      .and_then(
          [&] { return split_all(entries_, entry_fields_, "invalid --entry; write it like --entry remote=acme"); })
      .map([&] {
        Request request{.headers = header_fields_, .entries = entry_fields_, .cost = cost_};
        for (std::size_t i = 0; i < texts_.size(); ++i) request.*base::kRequestFields[i].value = texts_[i];
        return request;
      });
}

bool write_members(protocol::JsonWriter& json, const Request& request) {
  bool has_any = request.cost != 1;
  for (const auto& [name, value] : base::kRequestFields) {
    if ((request.*value).empty()) continue;
    json.text(name, request.*value);
    has_any = true;
  }
  for (const auto& [name, fields] : {std::pair{"headers", request.headers}, std::pair{"entries", request.entries}}) {
    if (fields.empty()) continue;
    json.begin_object(name);
    for (const Attribute& field : fields) json.text(field.name, field.value);
    json.end_object();
    has_any = true;
  }
  if (request.cost != 1) json.raw("cost", std::to_string(request.cost));
  return has_any;
}

}  // namespace weir::cli
