// Introduces the servers to each other (CLUSTER MEET), and waits until they form a cluster. See redis_fleet.h.
#include "redis_fleet.h"

#include <cstdlib>

#include "until.h"

namespace weir::test {
namespace {

constexpr std::size_t kMasters = 3;

// How long a server may be silent, in milliseconds.
const std::string kStall = "60000", kClusterLoss = "1000", kSentinelLoss = "400";

std::string number(std::size_t n) { return std::to_string(n); }

bool has(const resp::Value& value, const std::string& text) { return value.text.find(text) != std::string::npos; }

bool is_in_sync(const RedisServer& replica) {
  return has(call_redis(replica.port(), {"INFO", "replication"}), "master_link_status:up");
}

std::string joined(const std::vector<std::unique_ptr<RedisServer>>& servers) {
  std::string text;
  for (const auto& server : servers) text += (text.empty() ? "" : ",") + server->address();
  return text;
}

tl::unexpected<Error> not_ready(const std::string& what) { return fail(ErrorCode::unavailable, what); }

}  // namespace

bool is_master(const RedisServer& server) {
  const resp::Value role = call_redis(server.port(), {"ROLE"});
  return !role.items.empty() && role.items[0].text == "master";
}

Result<std::unique_ptr<RedisCluster>> RedisCluster::start(std::vector<std::string> settings) {
  std::unique_ptr<RedisCluster> cluster(new RedisCluster);
  settings.insert(settings.end(), {"--cluster-enabled", "yes", "--cluster-node-timeout", kStall,
                                   "--repl-diskless-sync-delay", "0", "--enable-debug-command", "yes",
                                   "--repl-diskless-load", "swapdb", "--cluster-replica-validity-factor", "0"});
  for (std::size_t i = 0; i < 2 * kMasters; ++i) {
    auto server = RedisServer::start({.settings = settings});
    if (!server) return fail(server.error());
    cluster->servers_.push_back(*std::move(server));
  }
  cluster->expect_failover();  // servers also talk more often
  if (auto formed = cluster->form(); !formed) return fail(formed.error());
  cluster->expect_stalls();
  return cluster;
}

void RedisCluster::set_timeout(const std::string& ms) const {
  for (const auto& server : servers_) call_redis(server->port(), {"CONFIG", "SET", "cluster-node-timeout", ms});
}
void RedisCluster::expect_failover() const { set_timeout(kClusterLoss); }
void RedisCluster::expect_stalls() const { set_timeout(kStall); }

Result<void> RedisCluster::form() {
  constexpr std::size_t kSlotsOfAll = 16'384;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    call_redis(servers_[i]->port(), {"CLUSTER", "SET-CONFIG-EPOCH", number(i + 1)});
    if (i < kMasters) {
      const std::size_t first = i * kSlotsOfAll / kMasters, last = (i + 1) * kSlotsOfAll / kMasters - 1;
      std::vector<std::string> words{"CLUSTER", "ADDSLOTS"};
      for (std::size_t slot = first; slot <= last; ++slot) words.push_back(number(slot));
      RedisClient(servers_[i]->port()).call(words);
    }
    for (std::size_t k = 0; k < i; ++k) {
      call_redis(servers_[i]->port(), {"CLUSTER", "MEET", "127.0.0.1", number(servers_[k]->port())});
    }
  }
  for (const auto& server : servers_) {
    const auto knows_all = [&] {
      const resp::Value info = call_redis(server->port(), {"CLUSTER", "INFO"});
      return has(info, "cluster_known_nodes:6") && has(info, "cluster_state:ok") && has(info, "cluster_size:3") &&
             !has(call_redis(server->port(), {"CLUSTER", "NODES"}), "handshake");
    };
    if (!until(knows_all)) return not_ready("the nodes of the cluster do not find each other");
  }
  for (std::size_t i = 0; i < kMasters; ++i) {
    const std::string id = call_redis(servers_[i]->port(), {"CLUSTER", "MYID"}).text;
    const auto follows = [&] { return call_redis(replica(i).port(), {"CLUSTER", "REPLICATE", id}).text == "OK"; };
    if (!until(follows)) return not_ready("a replica of the cluster does not follow its master");
  }
  for (std::size_t i = 0; i < kMasters; ++i) {
    if (!until([&] { return is_in_sync(replica(i)); })) return not_ready("a replica of the cluster is not in sync");
  }
  // Every node must have heard who is a replica, or it will not vote for one.
  for (const auto& server : servers_) {
    const auto knows_replicas = [&] {
      const std::string nodes = call_redis(server->port(), {"CLUSTER", "NODES"}).text;
      std::size_t count = 0;
      for (std::size_t at = nodes.find("slave "); at != nodes.npos; at = nodes.find("slave ", at + 1)) ++count;
      return count == kMasters;
    };
    if (!until(knows_replicas)) return not_ready("a node of the cluster does not hear of the replicas");
  }
  return {};
}

std::string RedisCluster::addresses() const { return joined(servers_); }

int RedisCluster::reshard(std::size_t from, std::size_t to, int slots) const {
  const std::string from_id = call_redis(servers_[from]->port(), {"CLUSTER", "MYID"}).text;
  const std::string to_id = call_redis(servers_[to]->port(), {"CLUSTER", "MYID"}).text;
  const std::string check = "redis-cli --cluster check " + servers_[from]->address() + " > /dev/null 2>&1";
  if (!until([&] { return std::system(check.c_str()) == 0; })) return -1;  // all must agree before slots move
  const std::string command = "redis-cli --cluster reshard " + servers_[from]->address() + " --cluster-from " +
                              from_id + " --cluster-to " + to_id + " --cluster-slots " + std::to_string(slots) +
                              " --cluster-yes --cluster-pipeline 1 > " + servers_[from]->folder() + "/reshard 2>&1";
  return std::system(command.c_str());
}

Result<std::unique_ptr<RedisSentinels>> RedisSentinels::start(const std::string& sentinel_password) {
  std::unique_ptr<RedisSentinels> all(new RedisSentinels);
  std::vector<std::string> settings{"--repl-diskless-sync-delay", "0", "--repl-diskless-load", "swapdb"};
  for (int i = 0; i < 3; ++i) {
    auto server = RedisServer::start({.settings = settings});
    if (!server) return fail(server.error());
    all->servers_.push_back(*std::move(server));
    if (i == 0) settings.insert(settings.end(), {"--replicaof", "127.0.0.1", number(all->master().port())});
  }
  for (int i = 0; i < 2; ++i) {
    if (!until([&] { return is_in_sync(all->replica(static_cast<std::size_t>(i))); })) {
      return not_ready("a replica is not in sync");
    }
  }
  std::string config = "sentinel monitor main 127.0.0.1 " + number(all->master().port()) +
                       " 2\nsentinel down-after-milliseconds main " + kStall +
                       "\nsentinel failover-timeout main 1000\n";
  if (!sentinel_password.empty()) {
    config += "requirepass " + sentinel_password + "\nsentinel sentinel-pass " + sentinel_password + "\n";
  }
  for (int i = 0; i < 3; ++i) {
    auto sentinel = RedisServer::start({.config = config, .is_sentinel = true});
    if (!sentinel) return fail(sentinel.error());
    all->sentinels_.push_back(*std::move(sentinel));
  }
  for (const auto& sentinel : all->sentinels_) {
    const auto knows_all = [&] {
      RedisClient client(sentinel->port());
      if (!sentinel_password.empty()) client.call({"AUTH", sentinel_password});
      return has(client.call({"INFO", "sentinel"}), "status=ok") &&
             has(client.call({"INFO", "sentinel"}), "slaves=2,sentinels=3");
    };
    if (!until(knows_all)) return not_ready("the sentinels do not find each other");
  }
  return all;
}

void RedisSentinels::expect_failover() const {
  for (const auto& sentinel : sentinels_) {
    call_redis(sentinel->port(), {"SENTINEL", "SET", "main", "down-after-milliseconds", kSentinelLoss});
  }
}

std::string RedisSentinels::addresses() const { return joined(sentinels_); }

}  // namespace weir::test
