// The fleet as a table. See nodes_command.h.
#include "command/nodes_command.h"

#include <string>

#include "command/complain.h"
#include "command/table_text.h"

namespace weir {

const char* const kNodesExamples =
    "  weir nodes                   who shares limits with the server on this machine, with which rules\n"
    "  weir nodes --json | jq       for programs\n"
    "\n";

namespace {

std::string fleet_words(const JsonValue& fleet) {
  const std::string& store = fleet.at("store").text;
  if (fleet.at("nodes").kind != JsonValue::Kind::array) {
    return "counts are in this server's memory, and nobody shares them; weir serve --store redis://HOST shares them\n";
  }
  TableText table({"node", "host", ">pid", "version", "policy", ">rules", ">change", ">seen"});
  for (const JsonValue& node : fleet.at("nodes").items) {
    table.add({node.at("id").text + (node.at("self").is_true ? " (asked)" : ""), node.at("host").text,
               node.at("pid").text, node.at("version").text, node.at("policy").text, node.at("rules").text,
               node.at("change").text, node.at("age_seconds").text + " s ago"});
  }
  std::string out = table.text() + "\n" + std::to_string(table.rows()) + (table.rows() == 1 ? " node" : " nodes") +
                    " on " + printable(store) + ", which " + (fleet.at("up").is_true ? "is asked" : "is NOT asked") +
                    " for " + fleet.at("since_seconds").text + " s\n";
  if (!fleet.at("up").is_true) out += "the last error: " + printable(fleet.at("last_error").text) + "\n";
  if (fleet.at("mixed").is_true) {
    out += "a mixed fleet: not all have the same version and policy; in a rollout that passes\n";
  }
  return out;
}

}  // namespace

NodesCommand::NodesCommand(CLI::App& app) {
  nodes_ = server_.add_subcommand(app, "nodes", "The servers of a fleet, and the Redis between them");
}

std::optional<int> NodesCommand::run() {
  if (!*nodes_) return std::nullopt;
  const auto done = server_.print({"GET", "/admin/v1/nodes"}, fleet_words);
  if (!done) return complain(done.error().message, kCouldNot);
  return *done;
}

}  // namespace weir
