// Encodes the health service's messages with protozero. See health.h.
#include "protocol/health.h"

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include <algorithm>

namespace weir {

bool is_health_service(std::string_view name) {
  return std::ranges::find(kHealthServices, name) != kHealthServices.end();
}

Result<std::string_view> read_health_request(std::string_view message) try {
  std::string_view service;
  protozero::pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    if (reader.tag_and_type() == protozero::tag_and_type(1, protozero::pbf_wire_type::length_delimited)) {
      const protozero::data_view view = reader.get_view();
      service = {view.data(), view.size()};
    } else {
      reader.skip();
    }
  }
  return service;
} catch (const protozero::exception& wrong) {
  return fail(ErrorCode::invalid_argument, std::string("invalid HealthCheckRequest: ") + wrong.what());
}

void append_health_response(ServingStatus status, std::string& out) {
  protozero::pbf_writer(out).add_enum(1, static_cast<std::int32_t>(status));
}

void append_health_list(ServingStatus status, std::string& out) {
  protozero::pbf_writer writer(out);
  for (const std::string_view name : kHealthServices) {
    protozero::pbf_writer entry(writer, 1);
    entry.add_bytes(1, name.data(), name.size());
    protozero::pbf_writer value(entry, 2);
    value.add_enum(1, static_cast<std::int32_t>(status));
  }
}

}  // namespace weir
