// Tests each finding about Redis with a hand-made state; tests/server/fleet_admin.sh tests the whole.
#include "cli/doctor.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "cli/doctor_fixture.h"

namespace weir::cli {
namespace {

using enum Finding::Level;

struct DoctorStoreTest : testing::Test {
  static std::vector<Finding> findings(const std::string& members, const std::string& redis = {}) {
    Patient patient;
    patient.nodes = *protocol::parse_json(
        R"({"store":"redis://r","since_seconds":7.5,"nodes":[{"id":"a"},{"id":"b"}],)" + members + R"(,"redis":[)" +
        (redis.empty() ? ""
                       : R"({"address":"r:1","software":"redis","version":"8.2.2","role":"master",)" + redis + "}") +
        "]}");
    std::vector<Finding> out;
    look_at_store(patient, out);
    return out;
  }
  static std::optional<Finding::Level> redis_found(const std::string& redis, const std::string& part) {
    return found(findings(R"("up":true)", redis), part);
  }
};

TEST_F(DoctorStoreTest, SaysNothingWithoutAStore) {
  Patient patient;
  patient.nodes = *protocol::parse_json(R"({"store":"memory"})");
  std::vector<Finding> out;
  look_at_store(patient, out);
  EXPECT_TRUE(out.empty());
}

TEST_F(DoctorStoreTest, FindsNoProblemInAHealthyServer) {
  for (const Finding& one : findings(R"("up":true)", R"("eviction":"noeviction","replicas":1)")) {
    EXPECT_EQ(one.level, fine) << one.what;
  }
}

TEST_F(DoctorStoreTest, ExplainsWhyRedisIsUnavailable) {
  const std::pair<const char*, const char*> causes[] = {
      {"NOPERM this user has no permissions", "its user lacks permissions"},
      {"NOAUTH Authentication required", "requires a password"},
      {"WRONGPASS invalid", "wrong user or password"},
      {"OOM command not allowed", "out of memory"},
      {"READONLY You can't write", "a replica"},
      {"MISCONF Redis is configured", "cannot save"},
      {"10.0.0.1:6379: connection refused", "nothing listens"},
      {"something else", "something else"}};
  for (const auto& [error, says] : causes) {
    const auto all = findings(R"("up":false,"last_error":")" + std::string(error) + '"');
    EXPECT_EQ(found(all, "has been unavailable for 7.5 s"), failure);
    EXPECT_EQ(found(all, says), failure) << error;
  }
}

TEST_F(DoctorStoreTest, BlamesTheAddressAndNotTheNetworkForAWrongAddress) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"r:1: the password file /run/pass cannot be opened: No such file or directory",
       "fix the file: the server reads it at each connect"},
      {"r:1: ca=/ca.pem cannot be read: Permission denied; name a file that the user who runs this program can read",
       "fix the file"},
      {"r:1: cannot connect: no answer in time; if this server does not use TLS, write redis://", "fix the address"},
      {"cannot read the cluster map: r:1: ERR This instance has cluster support disabled; it is of no cluster: write "
       "redis://",
       "fix the address"}};
  for (const auto& [error, advice] : mistakes) {
    const auto all = findings(R"("up":false,"last_error":")" + std::string(error) + '"');
    EXPECT_EQ(found(all, error), failure);
    EXPECT_NE(all.at(0).advice.find(advice), std::string::npos) << all.at(0).advice;
  }
}

TEST_F(DoctorStoreTest, WarnsOfAServerThatAdmitsWholeLimits) {
  const std::string whole = "admits each limit in full";
  EXPECT_EQ(found(findings(R"("up":false,"joined":false,"share_of":1)"), whole), warning);
  EXPECT_FALSE(found(findings(R"("up":false,"joined":false,"share_of":3)"), whole)) << "the server knows two others";
  EXPECT_FALSE(found(findings(R"("up":true,"joined":true,"share_of":1)"), whole));
  EXPECT_FALSE(found(findings(R"("up":true)"), whole)) << "an older server does not report it";
}

TEST_F(DoctorStoreTest, NamesServersOfAnotherKeyFormat) {
  const std::string others = R"(,"other_version":"1 server uses version 1")";
  EXPECT_EQ(found(findings(R"("up":false,"barred":true,"last_error":"refused")" + others), "does not join the fleet"),
            failure);
  EXPECT_FALSE(found(findings(R"("up":false,"barred":true,"last_error":"refused")" + others), "has been unavailable"));
  EXPECT_EQ(found(findings(R"("up":true,"barred":false)" + others), "admit twice as much: 1 server uses"), failure);
}

TEST_F(DoctorStoreTest, ReportsTheLastErrorForAMinute) {
  const std::string error = R"("up":true,"last_error":"OOM","last_error_age_seconds":)";
  EXPECT_EQ(found(findings(error + "7"), "failed 7 s ago: it is out of memory"), warning);
  EXPECT_FALSE(found(findings(error + "61"), "ago"));
}

TEST_F(DoctorStoreTest, WarnsOfAMixedFleetAndOfClockSkew) {
  EXPECT_EQ(found(findings(R"("up":true,"mixed":true)"), "do not all have the same"), warning);
  EXPECT_EQ(found(findings(R"("up":true,"clock_skew_seconds":-3.25)"), "3.3 s apart"), warning);
  EXPECT_FALSE(found(findings(R"("up":true,"clock_skew_seconds":0.5)"), "apart"));
}

TEST_F(DoctorStoreTest, ExplainsWhyNoDenialIsCached) {
  const auto all = findings(R"("up":true,"prefix":"limits:","channel_error":"r:1: SUBSCRIBE: NOPERM no")");
  EXPECT_EQ(found(all, "servers cache no denials: r:1: SUBSCRIBE: NOPERM no"), warning);
  EXPECT_NE(advice_of(all, "servers cache no denials").find("&limits:*"), std::string::npos);
  const auto old = findings(R"("up":true,"channel_error":"r:1: SUBSCRIBE: needs RESP3")");
  EXPECT_NE(advice_of(old, "servers cache no denials").find("HELLO"), std::string::npos);
}

TEST_F(DoctorStoreTest, ReportsTheFleetOnlyIfItIsKnown) {
  EXPECT_EQ(found(findings(R"("up":true)"), "all with the same config"), fine);
  EXPECT_FALSE(found(findings(R"("up":false)"), "all with the same config"));
  const auto late = findings(R"("up":true,"heard_seconds":7)");
  EXPECT_EQ(found(late, "has not answered this server's heartbeat for 7 s"), warning);
  const auto mute =
      findings(R"("up":true,"prefix":"limits:","heartbeat_error":"r:1: ERR The user executing the script can't run")");
  EXPECT_EQ(found(mute, "refuses this server's heartbeat"), failure);
  EXPECT_FALSE(found(mute, "all with the same config"));
  EXPECT_NE(advice_of(mute, "heartbeat").find("+hset +hdel +hgetall +pexpire ~limits:*"), std::string::npos);
}

TEST_F(DoctorStoreTest, ExplainsWhyChangesDoNotReachAllServers) {
  const auto all = findings(R"("up":true,"mixed":true,"prefix":"limits:","changes_error":"refused: NOPERM no")");
  EXPECT_EQ(found(all, "changes do not reach all servers: refused: NOPERM no"), failure);
  EXPECT_NE(advice_of(all, "do not reach").find("+zadd +zremrangebyscore ~limits:*"), std::string::npos);
  EXPECT_FALSE(found(all, "do not all have the same")) << "the cause was reported already";
  Patient patient;
  patient.nodes = *protocol::parse_json(R"({"store":"redis://r","up":true,"mixed":true,"nodes":[{"id":"a","self":true},
                                  {"id":"b","host":"h","own_changes":"2"}]})");
  std::vector<Finding> out;
  look_at_store(patient, out);
  EXPECT_EQ(found(out, "server b has runtime changes that other servers lack: 2"), warning);
  EXPECT_FALSE(found(out, "do not all have the same"));
}

TEST_F(DoctorStoreTest, ChecksEachRedis) {
  EXPECT_EQ(redis_found(R"("eviction":"allkeys-lru","memory":1,"memory_max":9)", "evicts keys"), failure);
  EXPECT_EQ(redis_found(R"("eviction":"allkeys-lru","memory":1)", "would evict keys"), warning);
  EXPECT_EQ(redis_found(R"("evicted":12)", "has evicted 12 keys"), warning);
  EXPECT_EQ(redis_found(R"("memory":95,"memory_max":100)", "95.0 %"), failure);
  EXPECT_EQ(redis_found(R"("replicas":1,"behind_bytes":2000000)", "2000000 bytes behind"), warning);
  EXPECT_EQ(redis_found(R"("replicas":1,"lag_seconds":11)", "last answered 11 s ago"), warning);
  EXPECT_FALSE(redis_found(R"("replicas":1,"lag_seconds":1,"behind_bytes":10)", "behind"));
  EXPECT_EQ(redis_found(R"("saving_broken":true)", "could not save"), warning);
  EXPECT_EQ(redis_found(R"("error":"Redis: NOPERM no info")", "refuses INFO"), warning);
}

TEST_F(DoctorStoreTest, KnowsVulnerableVersions) {
  for (const char* version : {"6.2.19", "7.0.15", "7.2.10", "7.4.5", "8.0.3", "8.2.1", "5.0.14"}) {
    EXPECT_NE(known_vulnerability("redis", version), "") << version;
  }
  for (const char* version : {"6.2.20", "7.2.11", "7.4.6", "8.0.4", "8.2.2", "8.4.0", "9.0.0", "", "x"}) {
    EXPECT_EQ(known_vulnerability("redis", version), "") << version;
  }
  EXPECT_NE(known_vulnerability("valkey", "8.0.1"), "");
  EXPECT_EQ(known_vulnerability("valkey", "8.1.4"), "");
}

}  // namespace
}  // namespace weir::cli
