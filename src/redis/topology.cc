// Parses replies that describe the topology. See topology.h.
#include "redis/topology.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "redis/slot.h"

namespace weir::redis {
namespace {

using resp::Type;
using resp::Value;

constexpr std::size_t kHostMax = 255;

std::optional<std::uint16_t> port_of(std::int64_t number) {
  if (number < 1 || number > 65'535) return std::nullopt;
  return static_cast<std::uint16_t>(number);
}

std::optional<std::uint16_t> port_of(std::string_view digits) {
  const auto number = base::to_number<std::int64_t>(digits);
  return number ? port_of(*number) : std::nullopt;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

// Returns the host that a reply names. "?" means unknown.
std::optional<std::string> host_of(std::string_view text, const base::Endpoint& asked) {
  if (text.empty()) return asked.host;
  if (text == "?" || text.size() > kHostMax || !is_printable(text)) return std::nullopt;
  return std::string(text);
}

std::optional<base::Endpoint> endpoint_of(std::string_view host, std::string_view digits) {
  const auto port = port_of(digits);
  if (!port || host.empty() || host.size() > kHostMax || !is_printable(host)) return std::nullopt;
  return base::Endpoint{.host = std::string(host), .port = *port};
}

// Splits a text into exactly `Count` words separated by single blanks.
template <std::size_t Count>
std::optional<std::array<std::string_view, Count>> words_of(std::string_view text) {
  std::array<std::string_view, Count> words;
  for (std::string_view& word : words) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  if (!text.empty()) return std::nullopt;
  return words;
}

bool is_range(std::int64_t first, std::int64_t last) { return first >= 0 && first <= last && last < kSlots; }

// Finds a field of a RESP3 map, or of the flat array that RESP2 sends instead.
const Value* find_field(const Value& map, std::string_view name) {
  if (map.type != Type::map && map.type != Type::array) return nullptr;
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    if (map.items[i].text == name) return &map.items[i + 1];
  }
  return nullptr;
}

std::string_view text_of(const Value& map, std::string_view name) {
  const Value* const field = find_field(map, name);
  return field == nullptr ? std::string_view{} : std::string_view(field->text);
}

std::optional<base::Endpoint> endpoint_of_node(const Value& node, const base::Endpoint& asked, bool has_tls) {
  const Value* const port = find_field(node, has_tls ? "tls-port" : "port");
  if (port == nullptr || port->type != Type::integer) return std::nullopt;
  const Value* const endpoint = find_field(node, "endpoint");
  const bool is_told = endpoint != nullptr && endpoint->type != Type::null && endpoint->text != "?";
  const auto host = host_of(is_told ? std::string_view(endpoint->text) : text_of(node, "ip"), asked);
  const auto number = port_of(port->integer);
  if (!host || !number) return std::nullopt;
  return base::Endpoint{.host = *host, .port = *number};
}

std::vector<SlotRange> ranges_of(const Value* slots) {
  std::vector<SlotRange> ranges;
  if (slots == nullptr) return ranges;
  for (std::size_t i = 0; i + 1 < slots->items.size(); i += 2) {
    const std::int64_t first = slots->items[i].integer, last = slots->items[i + 1].integer;
    if (is_range(first, last)) ranges.push_back({static_cast<int>(first), static_cast<int>(last)});
  }
  return ranges;
}

// If several nodes claim to be master, the one that is online wins: after a failover the old one may still be listed.
Shard shard_of(const Value& nodes, const base::Endpoint& asked, bool has_tls) {
  Shard shard;
  bool is_well = false;
  for (const Value& node : nodes.items) {
    auto endpoint = endpoint_of_node(node, asked, has_tls);
    if (!endpoint) continue;
    const bool is_online = text_of(node, "health") == "online";
    if (text_of(node, "role") != "master" || (shard.master.port != 0 && (is_well || !is_online))) {
      shard.replicas.push_back(*std::move(endpoint));
      continue;
    }
    if (shard.master.port != 0) shard.replicas.push_back(shard.master);
    shard.master = *std::move(endpoint);
    is_well = is_online;
  }
  return shard;
}

}  // namespace

std::optional<ClusterMap> read_shards(const Value& value, const base::Endpoint& asked, bool has_tls) {
  if (value.type != Type::array) return std::nullopt;
  ClusterMap map;
  std::size_t nodes_seen = 0;
  for (const Value& item : value.items) {
    const Value* const nodes = find_field(item, "nodes");
    if (nodes == nullptr || nodes->type != Type::array) return std::nullopt;
    nodes_seen += nodes->items.size();
    if (nodes_seen > kClusterNodesMax) return std::nullopt;
    std::vector<SlotRange> ranges = ranges_of(find_field(item, "slots"));
    Shard shard = shard_of(*nodes, asked, has_tls);
    if (ranges.empty() || shard.master.port == 0) continue;
    shard.slots = std::move(ranges);
    map.shards.push_back(std::move(shard));
  }
  if (map.shards.empty()) return std::nullopt;
  return map;
}

std::optional<ClusterMap> read_slots(const Value& value, const base::Endpoint& asked) {
  if (value.type != Type::array) return std::nullopt;
  ClusterMap map;
  for (const Value& item : value.items) {
    if (item.type != Type::array || item.items.size() < 3) return std::nullopt;
    const std::int64_t first = item.items[0].integer, last = item.items[1].integer;
    if (!is_range(first, last)) return std::nullopt;
    std::vector<base::Endpoint> endpoints;
    for (std::size_t i = 2; i < item.items.size(); ++i) {
      const Value& node = item.items[i];
      if (node.type != Type::array || node.items.size() < 2) return std::nullopt;
      const auto host = host_of(node.items[0].text, asked);
      const auto port = port_of(node.items[1].integer);
      if (host && port) endpoints.push_back({.host = *host, .port = *port});
      if (i == 2 && endpoints.empty()) break;  // the master is unreachable
    }
    if (endpoints.empty()) continue;
    const auto known = std::ranges::find(map.shards, endpoints.front(), &Shard::master);
    Shard& shard = known != map.shards.end() ? *known : map.shards.emplace_back();
    if (known == map.shards.end() && map.shards.size() > kClusterNodesMax) return std::nullopt;
    shard.master = endpoints.front();
    shard.replicas.assign(endpoints.begin() + 1, endpoints.end());
    shard.slots.push_back({static_cast<int>(first), static_cast<int>(last)});
  }
  if (map.shards.empty()) return std::nullopt;
  return map;
}

std::optional<Redirection> read_redirection(std::string_view error, const base::Endpoint& from) {
  Redirection found;
  found.is_ask = error.starts_with("ASK ");
  if (!found.is_ask && !error.starts_with("MOVED ")) return std::nullopt;
  error.remove_prefix(error.find(' ') + 1);
  const std::size_t blank = error.find(' ');
  const auto slot = base::to_number<int>(error.substr(0, blank));
  if (!slot || *slot < 0 || *slot >= kSlots || blank == error.npos) return std::nullopt;
  const std::string_view address = error.substr(blank + 1);
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos) return std::nullopt;
  const auto host = host_of(address.substr(0, colon), from);
  const auto port = port_of(address.substr(colon + 1));
  if (!host || !port) return std::nullopt;
  found.slot = *slot;
  found.to = {.host = *host, .port = *port};
  return found;
}

std::optional<base::Endpoint> read_master_address(const Value& value) {
  if (value.type != Type::array || value.items.size() != 2) return std::nullopt;
  return endpoint_of(value.items[0].text, value.items[1].text);
}

std::optional<base::Endpoint> read_switch(std::string_view payload, std::string_view master_name) {
  const auto words = words_of<5>(payload);  // name, old host and port, new host and port
  return words && (*words)[0] == master_name ? endpoint_of((*words)[3], (*words)[4]) : std::nullopt;
}

std::optional<base::Endpoint> read_promotion(std::string_view payload, std::string_view master_name) {
  const auto words = words_of<8>(payload);  // slave, its name, its host and port, @, the master's name, host and port
  if (!words || (*words)[0] != "slave" || (*words)[4] != "@" || (*words)[5] != master_name) return std::nullopt;
  return endpoint_of((*words)[2], (*words)[3]);
}

}  // namespace weir::redis
