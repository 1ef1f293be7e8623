// Tests each finding with a hand-made state; tests/server/doctor.sh tests the whole.
#include "cli/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "cli/doctor_fixture.h"

namespace weir::cli {
namespace {

using enum Finding::Level;

constexpr Micros kNow{1'800'000'000'000'000};

protocol::JsonValue status(const std::string& members = {}) {
  return *protocol::parse_json(
      R"({"version":"1","pid":7,"ready":true,"state":"/var/lib/weir/state","uptime_seconds":3600,)" +
      (members.empty() ? R"("table":{"keys":10,"fill":0.1},)" : members + ",") +
      R"("listeners":[{"name":"http","connections":1,"connections_max":1000}]})");
}

protocol::JsonValue rules(const std::string& last_hit, const std::string& mode = "enforce") {
  return *protocol::parse_json(R"({"rules":[{"name":"login","mode":")" + mode + R"(","configured_mode":")" + mode +
                               R"(","last_hit":)" + last_hit + "}]}");
}

struct DoctorTest : testing::Test {
  // The level of the finding with this text; nothing if there is none.
  std::optional<Finding::Level> found(const std::string& part) const { return cli::found(examine(patient), part); }
  void certificate_ends_in(int days) {
    patient.metrics = "\nweir_tls_certificate_expiry_timestamp_seconds " +
                      std::to_string(kNow.count() / 1'000'000 + days * 86'400 + 1'000) + "\n";
  }

  Patient patient{.status = status(),
                  .rules = rules(R"("2027-01-01T00:00:00Z")"),
                  .metrics = "\nprocess_max_fds 65536\n",
                  .now = kNow,
                  .filesystem = "ext4",
                  .version = "1"};
};

TEST_F(DoctorTest, FindsNoProblemInAHealthyServer) {
  for (const Finding& one : examine(patient)) EXPECT_EQ(one.level, fine) << one.what;
}

TEST_F(DoctorTest, ReportsProblemsOfThePlanDatabase) {
  EXPECT_FALSE(found("plan database"));
  patient.policy.plans.source = "sqlite:plans.db";
  patient.metrics += "weir_plans_up 1\nweir_plans_subjects 10\n";
  EXPECT_EQ(found("plan database answers"), fine);
  EXPECT_FALSE(found("the plan cache is nearly full"));
  patient.metrics =
      "\nweir_plans_up 0\nweir_plans_age_seconds 90.5\nweir_plans_refused_total 3\nweir_plans_subjects 99000\n";
  EXPECT_EQ(found("the plan database has not answered for 1 min 31 s"), failure);
  EXPECT_EQ(found("3 invalid rows in the plan database"), warning);
  EXPECT_EQ(found("the plan cache is nearly full"), warning);
}

TEST_F(DoctorTest, WarnsOfARuleThatNeverMatchedAfterAMinuteOfUptime) {
  patient.rules = rules("null");
  EXPECT_EQ(found("rule login has never matched"), warning);
  patient.rules = rules("null", "off");
  EXPECT_FALSE(found("never matched"));
  patient.rules = rules("null");
  patient.status = *protocol::parse_json(R"({"uptime_seconds":59})");
  EXPECT_FALSE(found("never matched"));
}

TEST_F(DoctorTest, ReportsTheKillSwitchOnce) {
  const std::string changed =
      R"({"rules":[{"name":"login","mode":"off","configured_mode":"enforce","last_hit":null}]})";
  patient.rules = *protocol::parse_json(changed);
  EXPECT_EQ(found("rule login was changed to off at runtime"), warning);
  EXPECT_EQ(found("no rule is enforced"), warning);
  patient.status = status(R"("kill_switch":true)");
  EXPECT_EQ(found("the kill switch is on: all rules and bans are off"), failure);
  EXPECT_EQ(std::ranges::count(examine(patient), warning, &Finding::level), 0);
}

TEST_F(DoctorTest, WarnsOfARuleThatHasExpired) {
  patient.policy.rules.push_back({.name = "sale", .expires_at = kNow + Micros{1}});
  EXPECT_FALSE(found("has expired"));
  patient.policy.rules[0].expires_at = kNow;
  EXPECT_EQ(found("rule sale has expired"), warning);
}

TEST_F(DoctorTest, WarnsOfATableThatIsNearlyFull) {
  patient.status = status(R"("table":{"keys":799,"fill":0.7999})");
  EXPECT_EQ(found("the table is"), fine);
  patient.status = status(R"("table":{"keys":800,"fill":0.8})");
  EXPECT_EQ(found("the table is 80.0 % full"), warning);
  EXPECT_FALSE(found("evicted"));
  patient.metrics += "weir_evictions_total 3\n";
  EXPECT_EQ(found("3 live keys evicted"), warning);
  EXPECT_FALSE(found("denied early"));
  EXPECT_FALSE(found("no_room"));
  patient.metrics += "weir_early_denials_total 4\nweir_no_room_total 5\n";
  EXPECT_EQ(found("4 requests of new keys denied early"), warning);
  EXPECT_EQ(found("5 requests denied because the table was full (no_room)"), warning);
  EXPECT_FALSE(found("log arena"));
  patient.metrics += "weir_compacted_logs_total 6\n";
  EXPECT_EQ(found("the log arena was full: 6 keys of sliding_log"), warning);
}

TEST_F(DoctorTest, ChecksTheFileSystemOfTheStateFile) {
  for (const char* const remote : {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse", "fuse.sshfs"}) {
    patient.filesystem = remote;
    EXPECT_EQ(found("the state is in /var/lib/weir/state, on "), failure) << remote;
  }
  for (const char* const in_memory : {"tmpfs", "ramfs"}) {
    patient.filesystem = in_memory;
    EXPECT_EQ(found("the state is in"), warning) << in_memory;
  }
  for (const char* const local : {"ext4", "xfs", "btrfs", "zfs", "overlay", "fuseblk", ""}) {
    patient.filesystem = local;
    EXPECT_EQ(found("the state is in"), fine) << local;
  }
}

TEST_F(DoctorTest, WarnsTwoWeeksBeforeACertificateEnds) {
  EXPECT_FALSE(found("certificate"));
  certificate_ends_in(14);
  EXPECT_EQ(found("the TLS certificate expires in 14 days"), fine);
  certificate_ends_in(13);
  EXPECT_EQ(found("the TLS certificate expires in 13 days"), warning);
  certificate_ends_in(-1);
  EXPECT_EQ(found("the TLS certificate has expired"), failure);
}

TEST_F(DoctorTest, FindsTrustThatIsTooWide) {
  for (const char* const all : {"0.0.0.0/0", "::/0"}) {
    patient.policy.trusted_proxies = {all};
    EXPECT_EQ(found("covers every address"), failure) << all;
  }
  for (const char* const many : {"8.0.0.0/7", "2001::/16"}) {
    patient.policy.trusted_proxies = {many};
    EXPECT_EQ(found("covers very many addresses"), warning) << many;
  }
  patient.policy.trusted_proxies = {"10.0.0.0/8", "fd00::/48", "192.0.2.1"};
  EXPECT_EQ(found("3 trusted proxy ranges"), fine);
}

TEST_F(DoctorTest, WarnsOfTooFewDescriptors) {
  patient.metrics = "\nprocess_max_fds 1063\n";
  EXPECT_EQ(found("file descriptor limit 1063, connections may need 1064"), warning);
  patient.metrics = "\nprocess_max_fds 1064\n";
  EXPECT_EQ(found("file descriptor limit 1064, connections may need 1064"), fine);
}

TEST_F(DoctorTest, ChecksClockAndDiskOfItsOwnMachineOnly) {
  EXPECT_EQ(found("the clock is synchronized"), fine);
  patient.is_clock_kept = false;
  EXPECT_EQ(found("this machine's clock is not synchronized"), warning);
  patient.is_here = false;
  EXPECT_EQ(found("clock and disk not checked"), fine);
  EXPECT_FALSE(found("synchronized"));
}

TEST_F(DoctorTest, ReportsAConfigThatCouldNotBeRead) {
  patient.policy_problem = "config:3:1: no";
  EXPECT_EQ(found("the config in effect could not be read: config:3:1: no"), warning);
  EXPECT_FALSE(found("trusted proxy"));
}

}  // namespace
}  // namespace weir::cli
