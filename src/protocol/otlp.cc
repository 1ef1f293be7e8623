// Writes spans as JSON. See otlp.h.
#include "protocol/otlp.h"

#include "base/json_text.h"
#include "base/text.h"

namespace weir::protocol {
namespace {

constexpr int kServer = 2;  // SPAN_KIND_SERVER
constexpr int kError = 2;   // STATUS_CODE_ERROR

void append_attribute(std::string& out, const SpanAttribute& attribute) {
  base::append_json_text(out.append("{\"key\":"), attribute.name);
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
    base::append_digits(out.append(",\"value\":{\"intValue\":\""), *number);
    out.append("\"}}");
  } else {
    base::append_json_text(out.append(",\"value\":{\"stringValue\":"), std::get<std::string>(attribute.value));
    out.append("}}");
  }
}

void append_attributes(std::string& out, std::span<const SpanAttribute> attributes) {
  out.append("\"attributes\":[");
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    if (i > 0) out.push_back(',');
    append_attribute(out, attributes[i]);
  }
  out.push_back(']');
}

void append_nanoseconds(std::string& out, std::string_view name, Micros time) {
  out.append(",\"").append(name).append("\":\"");
  base::append_digits(out, time.count());
  out.append("000\"");
}

void append_span(std::string& out, const TraceSpan& span) {
  base::append_json_text(out.append("{\"traceId\":"), span.trace_id);
  base::append_json_text(out.append(",\"spanId\":"), span.span_id);
  if (!span.parent_id.empty()) base::append_json_text(out.append(",\"parentSpanId\":"), span.parent_id);
  base::append_json_text(out.append(",\"name\":"), span.name);
  base::append_digits(out.append(",\"kind\":"), kServer);
  append_nanoseconds(out, "startTimeUnixNano", span.start);
  append_nanoseconds(out, "endTimeUnixNano", span.end);
  out.push_back(',');
  append_attributes(out, span.attributes);
  out.append(",\"status\":{");
  if (span.is_error) base::append_digits(out.append("\"code\":"), kError);
  out.append("}}");
}

}  // namespace

std::string write_otlp(const TraceResource& resource, std::span<const TraceSpan> spans) {
  const std::vector<SpanAttribute> about = {{"service.name", std::string("weir")},
                                            {"service.version", resource.version},
                                            {"service.instance.id", resource.instance}};
  std::string out = "{\"resourceSpans\":[{\"resource\":{";
  append_attributes(out, about);
  base::append_json_text(out.append("},\"scopeSpans\":[{\"scope\":{\"name\":\"weir\",\"version\":"), resource.version);
  out.append("},\"spans\":[");
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (i > 0) out.push_back(',');
    append_span(out, spans[i]);
  }
  return out.append("]}]}]}");
}

}  // namespace weir::protocol
