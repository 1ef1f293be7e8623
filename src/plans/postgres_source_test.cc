// Tests PostgreSQL as a database of plans, with a real server: reading, change reports, and failures.
#include "plans/plan_source.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "plans/plan_directory.h"
#include "plans/postgres_fixture.h"

namespace weir::plans {
namespace {

using Kind = PlanChange::Kind;

TEST(PostgresAddress, IsParsedWithoutAServerAndErrorsHideThePassword) {
  EXPECT_TRUE(make_plan_source({.url = "postgresql://weir@db.example/plans"}));
  EXPECT_TRUE(make_plan_source({.url = "postgres://weir@db.example/plans?sslmode=require"}));
  for (const char* url : {"postgresql://me:hunter2@[::1/plans", "postgresql://me:hunter2@there/plans?colour=red",
                          "postgresql://me:hunter2@there:port:7/plans?x"}) {
    const auto source = make_plan_source({.url = url});
    ASSERT_FALSE(source) << url;
    EXPECT_EQ(source.error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(has(source.error().message, "hunter2")) << source.error().message;
  }
}

TEST(PostgresAddress, ConnectionErrorsNameTheServerWithoutThePassword) {
  const auto source =
      make_plan_source({.url = "postgresql://me:hunter2@127.0.0.1:1/plans", .timeout = Micros{300'000}});
  ASSERT_TRUE(source);
  const Result<void> connected = (*source)->connect();
  ASSERT_FALSE(connected);
  EXPECT_TRUE(has(connected.error().message, "postgresql://me@127.0.0.1:1/plans")) << connected.error().message;
  EXPECT_FALSE(has(connected.error().message, "hunter2"));
  EXPECT_FALSE((*source)->wait(Micros{0}));
  const std::string subject = "user:1";
  EXPECT_FALSE((*source)->find({&subject, 1}));
  EXPECT_FALSE((*source)->write({Kind::set_plan, "user:1", "pro"}));
}

// A server that accepts connections, but never answers.
TEST(PostgresAddress, ConnectingTimesOutIfTheServerNeverAnswers) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const auto source = make_plan_source(
        {.url = "postgresql://me@" + host + ":" + std::to_string(ntohs(address.sin_port)) + "/plans?sslmode=disable",
         .timeout = Micros{300'000}});
    ASSERT_TRUE(source);
    const auto start = read_stopwatch();
    const Result<void> connected = (*source)->connect();
    const double took = seconds_since(start);
    ASSERT_FALSE(connected);
    EXPECT_TRUE(has(connected.error().message, "did not answer within 300 ms")) << connected.error().message;
    EXPECT_GE(took, 0.29);
  }
  close(listener);
}

struct PostgresTest : PlanSourceTest {
  std::optional<TestPostgres> server;

  void SetUp() override {
    if (TestPostgres::programs().empty()) GTEST_SKIP() << "PostgreSQL is not installed; ./dev setup installs it";
    server.emplace();
  }
  std::unique_ptr<PlanSource> make(const std::string& query = "", const std::string& user = "weir",
                                   const std::string& database = "postgres") const {
    auto source = make_plan_source({.url = server->url(user, database), .query = query, .timeout = Micros{2'000'000}});
    EXPECT_TRUE(source) << source.error().message;
    return *std::move(source);
  }
  std::unique_ptr<PlanSource> open(const std::string& query = "", const std::string& user = "weir") const {
    return opened(make(query, user));
  }
  // Collects all reported changes until no more arrive.
  static std::string changes_of(PlanSource& source) {
    std::set<std::string> subjects;
    for (int quiet = 0; quiet < 2;) {
      const auto changes = source.wait(Micros{200'000});
      EXPECT_TRUE(changes) << changes.error().message;
      if (!changes || (!changes->all && changes->subjects.empty())) {
        ++quiet;
        continue;
      }
      if (changes->all) subjects.insert("ALL");
      subjects.insert(changes->subjects.begin(), changes->subjects.end());
    }
    std::string text;
    for (const std::string& subject : subjects) text += subject + " ";
    return text;
  }

  std::unique_ptr<PlanDirectory> directory(const std::string& query = "") const {
    auto source = make_plan_source({.url = server->url(), .query = query});
    auto plans = std::make_unique<PlanDirectory>(*std::move(source), PlanDirectoryOptions{});
    EXPECT_TRUE(plans->wait_until_read(Micros{30'000'000})) << plans->status().error;
    return plans;
  }
};

TEST_F(PostgresTest, CreatesReadsAndWritesItsTablesAndReportsChanges) {
  const auto source = open();
  EXPECT_EQ(changes_of(*source), "");
  ASSERT_TRUE(source->write({Kind::set_plan, "user:1", "pro"}));
  EXPECT_EQ(changes_of(*source), "user:1 ");
  ASSERT_TRUE(source->write({Kind::set_override, "user:1", "", "5000/minute", "2026-12-31"}));
  PlanRow row = one(*source, "user:1");
  EXPECT_EQ(plan_of(row), "pro");
  EXPECT_EQ(row.limits, "5000/minute");
  EXPECT_EQ(row.until, "2026-12-31T00:00:00Z");
  ASSERT_TRUE(source->write({Kind::set_override, "user:1", "", "6/minute", "1800000000"}));
  EXPECT_EQ(one(*source, "user:1").until, "2027-01-15T08:00:00Z");
  ASSERT_TRUE(source->write({Kind::set_override, "user:2", "", "7/minute"}));
  EXPECT_EQ(one(*source, "user:2").until, std::nullopt);
  EXPECT_FALSE(one(*source, "user:2").has_plan);
  EXPECT_FALSE(source->write({Kind::set_override, "user:2", "", "7/minute", "tomorrow-ish"}));
  EXPECT_EQ(one(*source, "user:2").limits, "7/minute");

  server->sql("UPDATE weir_plans SET subject = 'user:9' WHERE subject = 'user:1'");
  EXPECT_EQ(changes_of(*source), "user:1 user:2 user:9 ");
  server->sql("INSERT INTO weir_plans SELECT 'many:' || i, 'free' FROM generate_series(1, 5000) AS i");
  EXPECT_EQ(changes_of(*source), "ALL ");
  server->sql("DELETE FROM weir_plans WHERE subject = 'many:7'");
  EXPECT_EQ(changes_of(*source), "many:7 ");
  server->sql("TRUNCATE weir_overrides");
  EXPECT_EQ(changes_of(*source), "ALL ");

  std::string after;
  std::size_t rows = 0;
  for (;;) {
    const auto page = source->all(after, 1'000);
    ASSERT_TRUE(page) << page.error().message;
    if (page->empty()) break;
    for (const PlanRow& each : *page) {
      EXPECT_LT(after, each.subject);
      after = each.subject;
      ++rows;
    }
  }
  EXPECT_EQ(rows, 5'000u);

  ASSERT_TRUE(source->write({Kind::remove_plan, "user:9"}));
  EXPECT_EQ(source->write({Kind::remove_plan, "user:9"}).error().code, ErrorCode::not_found);

  // Subjects are input from unknown clients.
  server->sql("INSERT INTO weir_plans VALUES ('user:a\"b\\c,{}''', 'odd')");
  const std::vector<std::string> odd = {
      "user:a\"b\\c,{}'", std::string("user:\0x", 7), "user:\xff\xfe", "", "user:ü", "many:8"};
  const auto found = source->find(odd);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ(plan_of(found->front()), "odd");

  server->sql("INSERT INTO weir_plans VALUES ('user:null', NULL), ('user:long', repeat('x', 100000))");
  EXPECT_TRUE(one(*source, "user:null").has_plan);
  EXPECT_EQ(one(*source, "user:null").plan, std::nullopt);
  EXPECT_TRUE(has(one(*source, "user:long").error, "100000 bytes"));
  server->sql("INSERT INTO weir_overrides VALUES ('user:ever', '1/s', 'infinity'), ('user:never', '1/s', '-infinity')");
  EXPECT_EQ(one(*source, "user:ever").until, std::nullopt);
  EXPECT_EQ(one(*source, "user:never").until, "-infinity");
  server->sql("UPDATE weir_overrides SET until = '2030-01-02 03:04:05.678901+02' WHERE subject = 'user:ever'");
  EXPECT_EQ(one(*source, "user:ever").until, "2030-01-02T01:04:05Z");
}

TEST_F(PostgresTest, AQueryReadsTheTablesOfTheUser) {
  server->sql(
      "CREATE TABLE users (user_id integer, tier text, cap text, ends timestamp);"
      "INSERT INTO users VALUES (42, 'pro', NULL, NULL), (43, NULL, '9/second', '2027-01-01 10:00:00.5'), (44, 'a', "
      "NULL, "
      "NULL), (44, 'b', NULL, NULL);"
      "INSERT INTO users SELECT i, 'free' FROM generate_series(1000, 1999) AS i");
  const auto source = open("SELECT tier, cap AS limits, ends AS until FROM users WHERE user_id = $1 AND $2 = 'user'");
  EXPECT_EQ(plan_of(one(*source, "user:42")), "pro");
  EXPECT_FALSE(one(*source, "tenant:42").has_plan);
  EXPECT_EQ(one(*source, "user:43").plan, std::nullopt);
  EXPECT_EQ(one(*source, "user:43").until, "2027-01-01T10:00:00Z");
  EXPECT_TRUE(has(one(*source, "user:44").error, "more than one row"));
  EXPECT_EQ(source->all("", 10).error().code, ErrorCode::not_found);
  EXPECT_EQ(source->write({Kind::set_plan, "user:42", "free"}).error().code, ErrorCode::invalid_argument);

  // A value that is no number matches nothing, and does not fail the other subjects.
  std::vector<std::string> subjects = {"user:nobody", "user:99999999999999999999", "user:42; DROP TABLE users"};
  for (int i = 1'000; i < 1'250; ++i) subjects.push_back("user:" + std::to_string(i));
  const auto rows = source->find(subjects);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->size(), 250u);

  ASSERT_TRUE(source->write({Kind::set_override, "user:43", "", "1/second"}));
  EXPECT_EQ(one(*source, "user:43").limits, "1/second");
  EXPECT_EQ(changes_of(*source), "user:43 ");
  server->sql("NOTIFY weir_plans, 'user:1000'");
  EXPECT_EQ(changes_of(*source), "user:1000 ");
  server->sql("NOTIFY weir_plans");
  EXPECT_EQ(changes_of(*source), "ALL ");
}

TEST_F(PostgresTest, ASubjectWhoseQueryFailsIsRefusedAlone) {
  server->sql(
      "CREATE TABLE users (id integer, plan text, share integer);"
      "INSERT INTO users SELECT i, 'pro', 1 FROM generate_series(1, 9) AS i;"
      "INSERT INTO users VALUES (10, 'pro', 0), (11, 'x11', 1), (12, 'a', 1), (12, 'b', 1);"
      "CREATE FUNCTION plan_of(integer) RETURNS text LANGUAGE plpgsql AS $$ BEGIN"
      " IF $1 = 9 THEN RAISE EXCEPTION 'nine is under review'; END IF;"
      " RETURN (SELECT CASE WHEN plan LIKE 'x%' THEN plan::integer::text ELSE plan END FROM users WHERE id = $1"
      "  AND 1 / share = 1); END $$");
  const auto source = open("SELECT plan_of($1::integer)");
  ASSERT_TRUE(source->write({Kind::set_override, "user:1", "", "7/minute"}));
  const std::vector<std::string> subjects = {"user:\xff", "user:1", "user:9",  "user:10",    "user:11",
                                             "user:12",   "user:2", "user:ab", "user:\xc3(", "user:99999999999"};
  const auto rows = source->find(subjects);
  ASSERT_TRUE(rows) << rows.error().message;
  std::map<std::string, PlanRow> found;
  for (const PlanRow& row : *rows) found[row.subject] = row;
  EXPECT_EQ(found.size(), 6u);
  EXPECT_EQ(plan_of(found["user:1"]), "pro");
  EXPECT_EQ(found["user:1"].limits, "7/minute")
      << "a subject that is not UTF-8 must not affect the overrides of others";
  EXPECT_EQ(plan_of(found["user:2"]), "pro");
  EXPECT_EQ(found["user:2"].error, "");
  EXPECT_TRUE(has(found["user:9"].error, "nine is under review")) << found["user:9"].error;
  EXPECT_TRUE(has(found["user:10"].error, "division by zero")) << found["user:10"].error;
  EXPECT_TRUE(has(found["user:11"].error, "x11")) << "a value of the table is not the subject's name";
  EXPECT_TRUE(has(found["user:12"].error, "more than one row")) << found["user:12"].error;
}

// Under our own table names, a view can contain anything.
TEST_F(PostgresTest, ReadsAViewOneByOneIfOneRowFails) {
  server->sql(
      "CREATE TABLE users (id text PRIMARY KEY, plan text, share integer);"
      "INSERT INTO users SELECT 'user:' || i, 'pro', i FROM generate_series(0, 19999) AS i; ANALYZE users;"
      "CREATE VIEW weir_plans AS SELECT id AS subject, CASE WHEN 1 / share >= 0 THEN plan END AS plan FROM users");
  const auto source = open();
  EXPECT_EQ(source->all("", 30'000).error().code, ErrorCode::not_found);
  std::vector<std::string> subjects = {"user:\xff"};
  for (int i = 0; i < 100; ++i) subjects.push_back(user(i));
  const auto rows = source->find(subjects);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->size(), 100u);
  for (const PlanRow& row : *rows) {
    if (row.subject == "user:0") {
      EXPECT_TRUE(has(row.error, "division by zero")) << row.error;
    } else {
      EXPECT_EQ(plan_of(row), "pro") << row.error;
    }
  }
}

TEST_F(PostgresTest, ErrorsNameTheCauseAndTheFix) {
  open();
  server->sql(
      "CREATE TABLE users (id text, plan text); INSERT INTO users VALUES ('1', 'pro');"
      "CREATE ROLE guest LOGIN PASSWORD 'right'");
  EXPECT_TRUE(has(error_of(make("", "weir", "nowhere")->connect()), "create the database"));
  EXPECT_TRUE(has(error_of(make("SELECT plan FROM clients WHERE id = $1")->connect()), "create the table"));
  EXPECT_TRUE(has(error_of(make("SELECT plan FROM users WHERE mail = $1")->connect()), "name a column"));
  const Result<void> typo = make("SELECT plan FRM users WHERE id = $1")->connect();
  ASSERT_FALSE(typo);
  EXPECT_EQ(typo.error().code, ErrorCode::invalid_argument) << typo.error().message;
  EXPECT_FALSE(make("SELECT plan FROM users WHERE id = $1; DELETE FROM users")->connect());

  // A query cannot make it write.
  const auto deletes = open("WITH gone AS (DELETE FROM users WHERE id = $1 RETURNING plan) SELECT plan FROM gone");
  const std::string first = "user:1";
  EXPECT_FALSE(deletes->find({&first, 1}));
  const auto slow = open("SELECT pg_sleep(20)::text FROM users WHERE id = $1");
  const auto late = slow->find({&first, 1});
  ASSERT_FALSE(late);

  const auto guest = make("SELECT plan FROM users WHERE id = $1", "guest");
  EXPECT_TRUE(guest->connect());
  const auto denied = guest->find({&first, 1});
  ASSERT_FALSE(denied);
  EXPECT_TRUE(has(denied.error().message, "GRANT SELECT")) << denied.error().message;
  server->sql("GRANT SELECT ON users TO guest; GRANT SELECT ON weir_overrides TO guest");
  EXPECT_EQ(plan_of(one(*guest, "user:1")), "pro");
  EXPECT_TRUE(has(error_of(guest->write({Kind::set_override, "user:1", "", "1/second"})), "GRANT"));
  EXPECT_EQ(plan_of(one(*guest, "user:1")), "pro");

  server->sql("ALTER DATABASE postgres SET default_transaction_read_only = on");
  const auto read_only = open("SELECT plan FROM users WHERE id = $1");
  EXPECT_EQ(plan_of(one(*read_only, "user:1")), "pro");
  const std::string why = error_of(read_only->write({Kind::set_override, "user:1", "", "1/second"}));
  EXPECT_TRUE(has(why, "read-only")) << why;
  EXPECT_EQ(plan_of(one(*read_only, "user:1")), "pro");
  EXPECT_EQ(plan_of(one(*open(), "user:1")), "NULL");

  std::string rules;
  {
    std::ifstream in(server->data() + "/pg_hba.conf");
    rules.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::ofstream(server->data() + "/pg_hba.conf") << "local all guest scram-sha-256\n" << rules;
  server->sql("SELECT pg_reload_conf()");
  until([&] { return !make("SELECT plan FROM users WHERE id = $1", "guest")->connect(); });
  const std::string wrong = error_of(make("SELECT plan FROM users WHERE id = $1", "guest:hunter2")->connect());
  EXPECT_TRUE(has(wrong, "give the right password")) << wrong;
  EXPECT_FALSE(has(wrong, "hunter2")) << wrong;
  EXPECT_TRUE(make("SELECT plan FROM users WHERE id = $1", "guest:right")->connect());
}

TEST_F(PostgresTest, KeepsThePlansDuringFailuresAndIsUpToDateSoonAfterwards) {
  server->sql("SELECT 1");
  const auto plans = directory();
  ASSERT_TRUE(plans->write({Kind::set_plan, "user:1", "a"}));
  const auto fresh = [&](const char* after, const std::string& plan) {
    const double took = until([&] { return plans->find("user:1").plan == plan; });
    std::printf("fresh %.0f ms after it was %s\n", took * 1e3, after);
  };
  const auto set = [&](const std::string& plan) { server->sql("UPDATE weir_plans SET plan = '" + plan + "'"); };
  const auto is_away = [&] { return !plans->status().is_up; };

  set("b");
  fresh("told", "b");

  server->stop();
  until(is_away);
  EXPECT_EQ(plans->find("user:1").plan, "b");
  EXPECT_FALSE(plans->write({Kind::set_plan, "user:1", "x"}));
  server->start();
  set("c");
  fresh("killed and started", "c");

  server->freeze();
  const double noticed = until(is_away);
  std::printf("frozen: noticed after %.0f ms\n", noticed * 1e3);
  EXPECT_EQ(plans->find("user:1").plan, "c");
  EXPECT_TRUE(has(plans->status().error, "did not answer within 1000 ms")) << plans->status().error;
  EXPECT_GT(plans->status().age, Micros{900'000});
  server->resume();
  std::printf("back %.0f ms after it was frozen\n", until([&] { return plans->status().is_up; }) * 1e3);
  set("d");
  fresh("frozen", "d");

  {
    std::vector<std::unique_ptr<PostgresConnection>> others;
    const auto more = [&] {
      others.push_back(std::make_unique<PostgresConnection>(server->url(), Micros{5'000'000}));
      EXPECT_TRUE(others.back()->read_address());
      others.back()->begin();
      const bool is_open = others.back()->open().has_value();
      if (!is_open) others.pop_back();
      return is_open;
    };
    ASSERT_TRUE(more());
    // Takes all connections, then ends ours, until ours is the one that gets none.
    until([&] {
      while (more()) {
      }
      others.front()->begin();
      EXPECT_TRUE(
          others.front()->run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                              " WHERE application_name = 'weir' AND query LIKE '%weir_plans LIMIT 1%'"
                              " AND pid <> pg_backend_pid()"));
      while (more()) {
      }
      return is_away() && has(plans->status().error, "max_connections");
    });
    EXPECT_EQ(plans->find("user:1").plan, "d");
    others.front()->begin();
    EXPECT_TRUE(others.front()->run("UPDATE weir_plans SET plan = 'e'"));
  }
  fresh("full", "e");

  server->sql("ALTER TABLE weir_plans RENAME TO gone");
  until(is_away);
  EXPECT_EQ(plans->find("user:1").plan, "e");
  EXPECT_FALSE(plans->wait_until_read(Micros{0}) && plans->status().is_up);
  server->sql("ALTER TABLE gone RENAME TO weir_plans; UPDATE weir_plans SET plan = 'f'");
  fresh("without its table", "f");
  EXPECT_GE(plans->status().failures, 4u);
}

// A standby can neither LISTEN nor write, but the changes it replays are noticed.
TEST_F(PostgresTest, ReadsAStandbyAndSeesItsChanges) {
  open()->write({Kind::set_plan, "user:1", "a"});
  TestPostgres standby(*server);
  auto source = make_plan_source({.url = standby.url()});
  PlanDirectory plans(*std::move(source), {});
  ASSERT_TRUE(plans.wait_until_read(Micros{30'000'000})) << plans.status().error;
  EXPECT_EQ(plans.find("user:1").plan, "a");
  server->sql("UPDATE weir_plans SET plan = 'b'");
  const double took = until([&] { return plans.find("user:1").plan == "b"; });
  std::printf("a standby's change was seen within %.0f ms\n", took * 1e3);
  const Result<void> written = plans.write({Kind::set_plan, "user:1", "c"});
  ASSERT_FALSE(written);
  EXPECT_TRUE(has(written.error().message, "write on the primary")) << written.error().message;
  EXPECT_TRUE(plans.status().is_up);
}

TEST_F(PostgresTest, SeesOneChangeOrAHundredThousandAtOnce) {
  const auto maker = open();
  server->sql("INSERT INTO weir_plans SELECT 'user:' || i, 'free' FROM generate_series(0, " +
              std::to_string(kManySubjects - 1) + ") AS i");
  const auto plans = directory();
  ASSERT_EQ(plans->status().subjects, std::size_t{kManySubjects});
  double longest = 0;
  for (int i = 0; i < 5; ++i) {
    const std::string subject = "user:" + std::to_string(i * kManySubjects / 6);
    server->sql("UPDATE weir_plans SET plan = 'pro' WHERE subject = '" + subject + "'");
    longest = std::max(longest, until([&] { return plans->find(subject).plan == "pro"; }));
  }
  std::printf("an upgrade among %d was seen within %.0f ms\n", kManySubjects, longest * 1e3);

  std::atomic<bool> is_done{false};
  Questions questions;
  std::thread asking([&] {
    for (int i = 0; !is_done.load(); i = (i + 7'919) % kManySubjects) {
      questions.ask(*plans, "user:" + std::to_string(i));
    }
  });
  server->sql("UPDATE weir_plans SET plan = 'enterprise'");
  const double took = until([&] { return plans->status().changes >= std::uint64_t{kManySubjects} + 5; });
  is_done = true;
  asking.join();
  for (int i = 0; i < kManySubjects; ++i) ASSERT_EQ(plans->find("user:" + std::to_string(i)).plan, "enterprise");
  std::printf("%d changes were seen within %.0f ms; meanwhile ", kManySubjects, took * 1e3);
  questions.expect_none_held_up(took);
}

}  // namespace
}  // namespace weir::plans
