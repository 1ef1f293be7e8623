// Splits and decodes targets. See query.h.
#include "protocol/query.h"

#include "base/nearest.h"
#include "protocol/request_error.h"

namespace weir::protocol {

Target split_target(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (!target.starts_with('/') && base::lower(target.substr(0, kScheme.size())) == kScheme) {
    const std::size_t begin = target.find_first_of("/?", kScheme.size());
    if (begin == target.npos) return {"/", {}};
    if (target[begin] == '?') return {"/", target.substr(begin + 1)};
    target.remove_prefix(begin);
  }
  const std::size_t mark = target.find('?');
  if (mark == target.npos) return {target, {}};
  return {target.substr(0, mark), target.substr(mark + 1)};
}

Result<std::vector<Parameter>> parse_query(std::string_view query) {
  std::vector<Parameter> parameters;
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view part = query.substr(0, end);
    query.remove_prefix(end == query.npos ? query.size() : end + 1);
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    auto name = base::percent_decoded(part.substr(0, equals));
    auto value = base::percent_decoded(equals == part.npos ? std::string_view() : part.substr(equals + 1));
    if (!name || !value) {
      return wrong("in the query, % must be followed by two hexadecimal digits: " + base::in_quotes(part));
    }
    if (parameters.size() == kQueryParametersMax) {
      return fail(ErrorCode::out_of_range,
                  "the query has more than " + std::to_string(kQueryParametersMax) + " parameters");
    }
    parameters.push_back({*std::move(name), *std::move(value)});
  }
  return parameters;
}

}  // namespace weir::protocol
