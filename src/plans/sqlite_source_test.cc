// Tests SQLite as a database of plans, with real files: reading, noticing changes, and failures.
#include "plans/plan_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/utf8.h"
#include "plans/plans_fixture.h"

namespace weir::plans {
namespace {

using Kind = PlanChange::Kind;

struct SqliteTest : PlanSourceTest {
  base::TestFolder folder;
  std::string file = folder.at("plans.db");

  std::unique_ptr<PlanSource> make(const std::string& query = "", Micros timeout = Micros{300'000}) {
    auto source = make_plan_source({.url = "sqlite:" + file, .query = query, .timeout = timeout});
    EXPECT_TRUE(source) << source.error().message;
    return source ? *std::move(source) : nullptr;
  }
  std::unique_ptr<PlanSource> open(const std::string& query = "") { return opened(make(query)); }
};

TEST(PlanSource, TheAddressSelectsTheDatabase) {
  EXPECT_TRUE(make_plan_source({.url = "sqlite:plans.db"}));
  EXPECT_TRUE(make_plan_source({.url = "sqlite:///var/lib/weir/plans.db"}));
  const auto typo = make_plan_source({.url = "sqllite:plans.db"});
  ASSERT_FALSE(typo);
  EXPECT_TRUE(has(typo.error().message, "did you mean 'sqlite'?")) << typo.error().message;
  EXPECT_FALSE(make_plan_source({.url = "plans.db"}));
  EXPECT_FALSE(make_plan_source({.url = "sqlite:"}));
  const auto secret = make_plan_source({.url = "mysql://me:hunter2@there/plans"});
  ASSERT_FALSE(secret);
  EXPECT_FALSE(has(secret.error().message, "hunter2"));
}

TEST(PlanSource, RefusesAnInvalidQueryAtOnce) {
  for (const char* query : {"DELETE FROM users WHERE id = $1", "plan", "SELECT plan FROM users"}) {
    const auto source = make_plan_source({.url = "sqlite:plans.db", .query = query});
    ASSERT_FALSE(source) << query;
    EXPECT_EQ(source.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_TRUE(make_plan_source({.url = "sqlite:plans.db",
                                .query = " with x as (select 1) SELECT plan FROM x, u "
                                         "WHERE id = $1 "}));
}

TEST(PlanSource, ASubjectHasAKindAndAValue) {
  EXPECT_EQ(parts_of_subject("user:42").kind, "user");
  EXPECT_EQ(parts_of_subject("user:4:2").value, "4:2");
  EXPECT_EQ(parts_of_subject("42").value, "42");
}

TEST(PlanSource, RecognizesUtf8) {
  for (const char* text :
       {"", "user:1", "user:ü", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"}) {
    EXPECT_TRUE(base::is_utf8(text)) << text;
  }
  for (const char* text : {"user:\xff", "\xc3", "\xc1\xbf", "\x80", "\xe2\x82", "\xe0\x9f\xbf", "\xed\xa0\x80",
                           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3(", "\xf0\x9f\x98z"}) {
    EXPECT_FALSE(base::is_utf8(text)) << text;
  }
}

TEST_F(SqliteTest, ANewFileIsReadableByItsOwnerOnly) {
  const mode_t before = umask(0);
  auto source = open();
  umask(before);
  ASSERT_TRUE(source->write({.kind = Kind::set_plan, .subject = "user:42", .plan = "pro"}));
  struct stat about {};
  ASSERT_EQ(stat(file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U) << "other users must not see who is on which plan";
}

TEST_F(SqliteTest, CreatesNoFileThroughADanglingLink) {
  std::filesystem::create_symlink(folder.at("elsewhere.db"), file);
  EXPECT_FALSE(make()->connect());
  EXPECT_FALSE(std::filesystem::exists(folder.at("elsewhere.db")));
}

TEST_F(SqliteTest, AnExistingFileKeepsItsMode) {
  OtherProgram(file).run("CREATE TABLE t (a)");
  ASSERT_EQ(chmod(file.c_str(), 0640), 0);
  open();
  struct stat about {};
  ASSERT_EQ(stat(file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0640U);
}

TEST_F(SqliteTest, CreatesAMissingFileWithItsTables) {
  const auto source = open();
  EXPECT_EQ(one(*source, "user:1").has_plan, false);
  ASSERT_TRUE(source->write({Kind::set_plan, "user:1", "pro"}));
  EXPECT_EQ(plan_of(one(*source, "user:1")), "pro");
  ASSERT_TRUE(source->write({Kind::set_plan, "user:1", "free"}));
  ASSERT_TRUE(source->write({Kind::set_override, "user:1", "", "5000/minute", "2026-12-31"}));
  const PlanRow row = one(*source, "user:1");
  EXPECT_EQ(plan_of(row), "free");
  EXPECT_TRUE(row.has_override);
  EXPECT_EQ(row.limits, "5000/minute");
  EXPECT_EQ(row.until, "2026-12-31");
  ASSERT_TRUE(source->write({Kind::remove_override, "user:1"}));
  ASSERT_TRUE(source->write({Kind::remove_plan, "user:1"}));
  EXPECT_FALSE(one(*source, "user:1").has_plan);
  const Result<void> again = source->write({Kind::remove_plan, "user:1"});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::not_found);
}

TEST_F(SqliteTest, ListsAllSubjectsInOrderPageByPage) {
  const auto source = open();
  OtherProgram other(file);
  other.run("INSERT INTO weir_plans (subject, plan) VALUES ('user:1', 'pro'), ('user:3', NULL), ('tenant:a', 'free')");
  other.run("INSERT INTO weir_overrides VALUES ('user:2', '5/second', NULL), ('user:3', '6/second', '2030-01-01')");
  other.run("INSERT INTO weir_plans (subject, plan) VALUES (x'ff00', 'pro')");  // never requested
  std::string after, all;
  for (int pages = 0; pages < 9; ++pages) {
    const auto page = source->all(after, 2);
    ASSERT_TRUE(page) << page.error().message;
    if (page->empty()) break;
    for (const PlanRow& row : *page) {
      all += row.subject + "=" + (row.has_plan ? plan_of(row) : "-") + "/" +
             (row.has_override ? row.limits.value_or("NULL") : "-") + " ";
    }
    after = page->back().subject;
  }
  EXPECT_EQ(all, "tenant:a=free/- user:1=pro/- user:2=-/5/second user:3=NULL/6/second ");
}

TEST_F(SqliteTest, AQueryReadsTheTablesOfTheUser) {
  OtherProgram other(file);
  other.run("CREATE TABLE users (user_id INTEGER PRIMARY KEY, tier TEXT, cap TEXT, ends TEXT)");
  other.run("INSERT INTO users VALUES (42, 'pro', NULL, NULL), (43, NULL, '9/second', '2027-01-01'), (44, -5, '', 0)");
  const auto source = open("SELECT tier, cap AS limits, ends AS until FROM users WHERE user_id = $1 AND 'user' = $2;");
  EXPECT_EQ(plan_of(one(*source, "user:42")), "pro");
  EXPECT_FALSE(one(*source, "user:42").has_override);
  EXPECT_FALSE(one(*source, "tenant:42").has_plan);
  EXPECT_FALSE(one(*source, "user:nobody").has_plan);
  EXPECT_FALSE(one(*source, "user:42 OR 1=1").has_plan);
  EXPECT_TRUE(one(*source, "user:43").has_plan);
  EXPECT_EQ(one(*source, "user:43").plan, std::nullopt);
  EXPECT_EQ(one(*source, "user:43").limits, "9/second");
  EXPECT_EQ(one(*source, "user:43").until, "2027-01-01");
  EXPECT_EQ(plan_of(one(*source, "user:44")), "-5");
  EXPECT_EQ(source->all("", 10).error().code, ErrorCode::not_found);
  EXPECT_FALSE(source->write({Kind::set_plan, "user:42", "free"}));

  // Overrides are in our own table, created when the first is set, and take precedence over the columns.
  ASSERT_TRUE(source->write({Kind::set_override, "user:43", "", "1/second"}));
  EXPECT_EQ(one(*source, "user:43").limits, "1/second");
  EXPECT_EQ(one(*source, "user:43").until, std::nullopt);
  EXPECT_EQ(plan_of(one(*source, "user:42")), "pro");
  const auto changes = source->wait(Micros{0});
  EXPECT_TRUE(changes && changes->all);
}

TEST_F(SqliteTest, RefusesTwoRowsOfOneSubject) {
  OtherProgram other(file);
  other.run("CREATE TABLE users (id TEXT, plan TEXT)");
  other.run("INSERT INTO users VALUES ('1', 'pro'), ('2', 'pro'), ('2', 'free')");
  const auto source = open("SELECT plan FROM users WHERE id = $1");
  const std::vector<std::string> subjects = {"user:1", "user:2", "user:3"};
  const auto rows = source->find(subjects);
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ(rows->at(0).error, "");
  EXPECT_TRUE(has(rows->at(1).error, "more than one row"));
}

TEST_F(SqliteTest, ASubjectWhoseQueryFailsIsRefusedAlone) {
  OtherProgram other(file);
  other.run("CREATE TABLE users (id TEXT, about TEXT)");
  other.run("INSERT INTO users VALUES ('1', '{\"plan\":\"pro\"}'), ('2', '{\"plan\":'), ('3', '{\"plan\":\"free\"}')");
  const auto source = open("SELECT json_extract(about, '$.plan') FROM users WHERE id = $1");
  const std::vector<std::string> subjects = {"user:1", "user:2", "user:3"};
  const auto rows = source->find(subjects);
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ(plan_of(rows->at(0)), "pro");
  EXPECT_TRUE(has(rows->at(1).error, "malformed JSON")) << rows->at(1).error;
  EXPECT_EQ(rows->at(2).error, "");
  EXPECT_EQ(plan_of(rows->at(2)), "free");
  other.run("DROP TABLE users");
  const auto without = source->find(subjects);
  ASSERT_FALSE(without) << "a missing table is not an error of one row";
  EXPECT_TRUE(has(without.error().message, "no such table")) << without.error().message;
}

TEST_F(SqliteTest, ReadsAViewOneByOneIfOneRowFails) {
  OtherProgram other(file);
  other.run(
      "CREATE TABLE users (id TEXT, about TEXT); INSERT INTO users VALUES ('user:1', '{\"plan\":\"pro\"}'), ('user:2', "
      "'{');"
      "CREATE VIEW weir_plans AS SELECT id AS subject, json_extract(about, '$.plan') AS plan FROM users");
  const auto source = open();
  EXPECT_EQ(source->all("", 10).error().code, ErrorCode::not_found);
  EXPECT_EQ(plan_of(one(*source, "user:1")), "pro");
  EXPECT_TRUE(has(one(*source, "user:2").error, "malformed JSON"));
}

TEST_F(SqliteTest, RefusesAQueryThatWritesOrUsesOtherParameters) {
  OtherProgram(file).run("CREATE TABLE users (id TEXT, plan TEXT)");
  const std::pair<const char*, const char*> wrong[] = {
      {"SELECT plan FROM users WHERE id = $1; DELETE FROM users", "more than one statement"},
      {"WITH x AS (SELECT 1) DELETE FROM users WHERE id = $1", "would change the database"},
      {"WITH x AS (SELECT 1) DELETE FROM users WHERE id = $1 RETURNING plan", "would change the database"},
      {"SELECT plan FROM users WHERE id = $1 AND plan = $3", "uses the parameter '$3'"},
      {"SELECT plan FROM users WHERE id = $1 AND plan = ?", "uses the parameter '?'"},
      {"SAVEPOINT a", "returns no column"},
      {"-- SELECT $1", "returns no column"},
  };
  for (const auto& [query, why] : wrong) {
    const Result<void> connected = make_sqlite_source(file, {.query = query})->connect();
    ASSERT_FALSE(connected) << query;
    EXPECT_EQ(connected.error().code, ErrorCode::invalid_argument) << query << ": " << connected.error().message;
    EXPECT_TRUE(has(connected.error().message, why)) << query << ": " << connected.error().message;
  }
  const std::string missing = error_of(make("SELECT plan FROM clients WHERE id = $1")->connect());
  EXPECT_TRUE(has(missing, "no such table: clients")) << missing;
}

TEST_F(SqliteTest, SeesAChangeByAnotherProgram) {
  const auto source = open();
  ASSERT_TRUE(source->wait(Micros{0}));
  OtherProgram other(file);
  std::thread writing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    other.run("INSERT INTO weir_plans (subject, plan) VALUES ('user:1', 'pro')");
  });
  const auto changes = source->wait(Micros{60'000'000});
  writing.join();
  ASSERT_TRUE(changes);
  EXPECT_TRUE(changes->all);
  EXPECT_FALSE(source->wait(Micros{0})->all);
}

TEST_F(SqliteTest, WakeEndsAWait) {
  const auto source = open();
  source->wake();
  EXPECT_TRUE(source->wait(Micros{3'600'000'000}));
}

TEST_F(SqliteTest, SeesThatAnotherFileReplacedIt) {
  const auto source = open();
  ASSERT_TRUE(source->write({Kind::set_plan, "user:1", "pro"}));
  ASSERT_TRUE(source->wait(Micros{0}));
  const std::string next = folder.at("next.db");
  OtherProgram(next).run(
      "CREATE TABLE weir_plans (subject TEXT PRIMARY KEY, plan TEXT);"
      "INSERT INTO weir_plans VALUES ('user:1', 'enterprise')");
  std::filesystem::rename(next, file);
  const auto changes = source->wait(Micros{1'000'000});
  ASSERT_TRUE(changes) << changes.error().message;
  EXPECT_TRUE(changes->all);
  EXPECT_EQ(plan_of(one(*source, "user:1")), "enterprise");
}

TEST_F(SqliteTest, AMissingFileIsAnErrorAndIsNotRecreated) {
  const auto source = open();
  std::filesystem::remove(file);
  const auto changes = source->wait(Micros{0});
  ASSERT_FALSE(changes);
  EXPECT_TRUE(has(changes.error().message, file)) << changes.error().message;
  EXPECT_TRUE(has(error_of(source->connect()), "restore it"));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(has(error_of(make("SELECT plan FROM users WHERE id = $1")->connect()), "no such file"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(SqliteTest, AMissingTableIsNotRecreated) {
  const auto source = open();
  OtherProgram(file).run("DROP TABLE weir_plans");
  const std::string subject = "user:1";
  EXPECT_FALSE(source->find({&subject, 1}));
  EXPECT_TRUE(has(error_of(source->connect()), "lost its table weir_plans"));
}

TEST_F(SqliteTest, ReadsAWriteAheadLogAndSeesItsRemoval) {
  OtherProgram other(file);
  other.run("PRAGMA journal_mode = WAL");
  const auto source = open();
  other.run("INSERT INTO weir_plans (subject, plan) VALUES ('user:1', 'pro')");
  EXPECT_TRUE(source->wait(Micros{1'000'000})->all);
  EXPECT_EQ(plan_of(one(*source, "user:1")), "pro");
  other.run("PRAGMA wal_checkpoint(TRUNCATE)");
  std::filesystem::remove(file + "-wal");
  std::filesystem::remove(file + "-shm");
  const auto changes = source->wait(Micros{1'000'000});
  ASSERT_TRUE(changes) << changes.error().message;
  EXPECT_TRUE(changes->all);
  EXPECT_EQ(plan_of(one(*source, "user:1")), "pro");
  OtherProgram(file).run("UPDATE weir_plans SET plan = 'free'");
  EXPECT_TRUE(source->wait(Micros{1'000'000})->all);
  EXPECT_EQ(plan_of(one(*source, "user:1")), "free");
}

TEST_F(SqliteTest, WaitsForALockedFileUntilTheDeadline) {
  const auto source = open();
  OtherProgram other(file);
  other.run("BEGIN EXCLUSIVE");
  const std::string subject = "user:1";
  const auto start = read_stopwatch();
  const auto rows = source->find({&subject, 1});
  const double took = seconds_since(start);
  ASSERT_FALSE(rows);
  EXPECT_TRUE(has(rows.error().message, "locked by another program")) << rows.error().message;
  EXPECT_GE(took, 0.29);
  EXPECT_TRUE(has(error_of(source->write({Kind::set_plan, "user:1", "pro"})), "locked"));
  const auto changes = source->wait(Micros{5'000'000});
  EXPECT_FALSE(changes);
  other.run("COMMIT");
  EXPECT_TRUE(source->connect());
  EXPECT_TRUE(source->find({&subject, 1}));
}

TEST_F(SqliteTest, ASlowQueryIsStopped) {
  OtherProgram(file).run("CREATE TABLE users (id TEXT, plan TEXT)");
  const auto source =
      make("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n WHERE '1' = $1");
  ASSERT_TRUE(source->connect());
  const std::string subject = "user:1";
  const auto rows = source->find({&subject, 1});
  ASSERT_FALSE(rows);
  EXPECT_TRUE(has(rows.error().message, "did not answer within 300 ms")) << rows.error().message;
  EXPECT_TRUE(source->wait(Micros{0}));
}

// SQLite checks the deadline every few thousand steps, counted over all uses of a statement.
TEST_F(SqliteTest, CanLookForChangesAnyNumberOfTimes) {
  const auto source = open();
  for (int i = 0; i < 3'000; ++i) {
    const auto changes = source->wait(Micros{0});
    ASSERT_TRUE(changes) << changes.error().message << ", look " << i;
  }
}

TEST_F(SqliteTest, ReportsADamagedFileAndOneThatIsNoDatabase) {
  std::ofstream(file) << std::string(9'000, 'x');
  EXPECT_TRUE(has(error_of(make()->connect()), "sqlite:" + file + " is not a SQLite database"));
  std::filesystem::remove(file);
  {
    const auto source = open();
    OtherProgram(file).run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
        " INSERT INTO weir_plans (subject, plan) SELECT 'user:' || i, 'pro' FROM n");
  }
  {
    std::fstream damage(file, std::ios::in | std::ios::out | std::ios::binary);
    const std::string junk(60'000, '\x5a');
    damage.seekp(8'192);
    damage.write(junk.data(), static_cast<std::streamsize>(junk.size()));
  }
  const auto source = make();
  const Result<void> connected = source->connect();
  if (connected) {
    const auto rows = source->all("", 10'000);
    ASSERT_FALSE(rows);
    EXPECT_TRUE(has(rows.error().message, "is damaged")) << rows.error().message;
  } else {
    EXPECT_TRUE(has(connected.error().message, "is damaged")) << connected.error().message;
  }
}

TEST_F(SqliteTest, ReadsAFileThatItCannotWrite) {
  open();
  OtherProgram(file).run("INSERT INTO weir_plans (subject, plan) VALUES ('user:1', 'pro')");
  std::filesystem::permissions(folder.path(), std::filesystem::perms{0555});
  std::filesystem::permissions(file, std::filesystem::perms{0444});
  const bool is_root = geteuid() == 0;  // root may write any file
  ASSERT_TRUE(!is_root || seteuid(65'534) == 0);
  const auto source = open();
  EXPECT_EQ(plan_of(one(*source, "user:1")), "pro");
  EXPECT_TRUE(has(error_of(source->write({Kind::set_plan, "user:1", "free"})), "cannot be written"));
  EXPECT_EQ(plan_of(one(*source, "user:1")), "pro");
  ASSERT_TRUE(!is_root || seteuid(0) == 0);
  std::filesystem::permissions(folder.path(), std::filesystem::perms{0755});
}

TEST_F(SqliteTest, RefusesOnlyTheRowWithAnOverlongText) {
  const auto source = open();
  OtherProgram(file).run(
      "INSERT INTO weir_plans (subject, plan) VALUES ('user:1', hex(zeroblob(1000000))), ('user:2', 'pro')");
  const PlanRow row = one(*source, "user:1");
  EXPECT_TRUE(has(row.error, "2000000 bytes")) << row.error;
  EXPECT_LE(row.plan->size(), kPlanTextMax);
  EXPECT_EQ(one(*source, "user:2").error, "");
}

}  // namespace
}  // namespace weir::plans
