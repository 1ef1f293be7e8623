// gRPC's health service, version 1: its few messages, and the names of our services.
//
// proto/grpc/health/v1/health.proto defines them. Pure; any thread may call it. Tested by health_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir {

enum class ServingStatus : std::uint8_t { unknown = 0, serving = 1, not_serving = 2, service_unknown = 3 };

// Known names: the server as a whole, Envoy's service, and the name that the reference server uses.
inline constexpr std::array<std::string_view, 3> kHealthServices = {"", "envoy.service.ratelimit.v3.RateLimitService",
                                                                    "ratelimit"};

bool is_health_service(std::string_view name);

// Returns the requested service, as a view of the message.
Result<std::string_view> read_health_request(std::string_view message);

void append_health_response(ServingStatus status, std::string& out);
// Appends the same status for every known name.
void append_health_list(ServingStatus status, std::string& out);

}  // namespace weir
