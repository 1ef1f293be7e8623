// Converts flags to a request and to JSON. See request_flags.h.
#include "cli/request_flags.h"

#include <string_view>
#include <utility>

#include "protocol/problem.h"

namespace weir {
namespace {

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

void append_name(std::string& out, std::string_view name) {
  if (!out.empty() && out.back() != '{') out += ',';
  append_json_text(out, name);
  out += ':';
}

void append_fields(std::string& out, std::string_view name, const std::vector<Attribute>& fields) {
  if (fields.empty()) return;
  append_name(out, name);
  out += '{';
  for (const Attribute& field : fields) {
    append_name(out, field.name);
    append_json_text(out, field.value);
  }
  out += '}';
}

}  // namespace

void RequestFlags::add(CLI::App& app) {
  const auto text = [&app](const char* name, std::string& value, const char* about) {
    app.add_option(name, value, about)->type_name("TEXT");
  };
  text("--user", user_, "User of the request");
  text("--api-key", api_key_, "API key of the request");
  text("--ip", ip_, "IP address of the client");
  text("--tenant", tenant_, "Tenant of the request");
  text("--plan", plan_, "Plan of the request");
  text("--method", method_, "HTTP method: GET, POST, ...");
  text("--host", host_, "Host of the request");
  text("--path", path_, "Path of the request, with its query");
  app.add_option("--header", headers_, "Header field; repeatable")->type_name("NAME:VALUE");
  app.add_option("--entry", entries_, "Descriptor entry; repeatable")->type_name("NAME=VALUE");
  app.add_option("--cost", cost_, "Permits that the request costs")->type_name("N")->capture_default_str();
}

Result<Request> RequestFlags::request() {
  return split_all(headers_, header_fields_, "invalid --header; write it like --header x-org:acme")
      .and_then(
          [&] { return split_all(entries_, entry_fields_, "invalid --entry; write it like --entry remote=acme"); })
      .map([&] {
        return Request{.user = user_,
                       .api_key = api_key_,
                       .ip = ip_,
                       .tenant = tenant_,
                       .plan = plan_,
                       .method = method_,
                       .host = host_,
                       .path = path_,
                       .headers = header_fields_,
                       .entries = entry_fields_,
                       .cost = cost_};
      });
}

Result<std::string> RequestFlags::json_members() {
  const auto request = this->request();
  if (!request) return fail(request.error());
  std::string out;
  const std::pair<std::string_view, std::string_view> plain[] = {
      {"user", request->user}, {"api_key", request->api_key}, {"ip", request->ip},     {"tenant", request->tenant},
      {"plan", request->plan}, {"method", request->method},   {"host", request->host}, {"path", request->path}};
  for (const auto& [name, value] : plain) {
    if (value.empty()) continue;
    append_name(out, name);
    append_json_text(out, value);
  }
  append_fields(out, "headers", header_fields_);
  append_fields(out, "entries", entry_fields_);
  if (cost_ != 1) {
    append_name(out, "cost");
    out += std::to_string(cost_);
  }
  return out;
}

}  // namespace weir
