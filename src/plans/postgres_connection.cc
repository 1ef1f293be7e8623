// Uses libpq without ever waiting beyond a deadline. See postgres_connection.h.
#include "plans/postgres_connection.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/nearest.h"

namespace weir::plans {
namespace {

using std::chrono::ceil;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::size_t kMessageMax = 500;
constexpr std::size_t kNoticesMax = 20'000;  // beyond this: anything may have changed

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  if (what.empty()) return text;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// Finds the password in an address that cannot be parsed.
std::string_view password_in(std::string_view url) {
  const std::size_t user = url.find("//");
  if (user == url.npos) return {};
  const std::string_view rest = url.substr(user + 2);
  const std::size_t end = rest.rfind('@'), colon = rest.find(':');
  if (end == rest.npos || colon == rest.npos || colon > end) return {};
  return rest.substr(colon + 1, end - colon - 1);
}

// PQconnectStart looks up host names, and blocks for as long as the resolver likes. So it runs on a thread of its
// own, which is abandoned if it takes too long.
struct Opening {
  base::Mutex mutex;
  std::condition_variable done;
  PGconn* connection GUARDED_BY(mutex) = nullptr;
  bool is_abandoned GUARDED_BY(mutex) = false;
};

void ignore(void*, const char*) {}  // discards what libpq would write to stderr

PGconn* start(const std::string& url) {
  const std::array<const char*, 4> names = {"dbname", "fallback_application_name", "client_encoding", nullptr};
  const std::array<const char*, 4> values = {url.c_str(), "weir", "UTF8", nullptr};
  return PQconnectStartParams(names.data(), values.data(), 1);
}

PGconn* start_by(const std::string& url, nanoseconds most) {
  const auto opening = std::make_shared<Opening>();
  std::thread([opening, url] {
    PGconn* const connection = start(url);
    const base::MutexLock lock(opening->mutex);
    if (opening->is_abandoned) {
      PQfinish(connection);
    } else {
      opening->connection = connection;
      opening->done.notify_all();
    }
  }).detach();
  base::MutexLock lock(opening->mutex);
  opening->done.wait_for(lock, most, [&]() REQUIRES(opening->mutex) { return opening->connection != nullptr; });
  opening->is_abandoned = true;
  return opening->connection;
}

// Finds the state in a verbose libpq message: `FATAL:  28P01: password …`.
std::string state_in(std::string_view message) {
  for (std::size_t at = message.find(":  "); at != message.npos; at = message.find(":  ", at + 1)) {
    const std::string_view state = message.substr(at + 3, 5);
    const bool is_state = state.size() == 5 && std::ranges::all_of(state, [](char c) {
                            return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
                          });
    if (is_state && message.substr(at + 8, 2) == ": ") return std::string(state);
  }
  return "";
}

// Returns a fix for a state of PostgreSQL.
std::string_view help_for(std::string_view state) {
  static const std::map<std::string_view, std::string_view> kHelp = {
      {"28P01", "give the right password in the URL, or in the .pgpass file of the user that runs the server"},
      {"28000", "allow this user and address in pg_hba.conf"},
      {"3D000", "create the database, or name another one in the URL"},
      {"53300", "raise max_connections or close some connections; Weir needs one"},
      {"57P03", "PostgreSQL is starting or stopping; Weir retries by itself"},
      {"57P01", "PostgreSQL is shutting down; Weir retries by itself"},
      {"57014", "add an index on the column that the query compares with $1"},
      {"42P01", "create the table, or name another one in the query"},
      {"42703", "name a column that exists"},
      {"42601", "correct the query"},
      {"42501", "GRANT SELECT on the tables to this user, and INSERT, UPDATE, DELETE on those that it writes"},
      {"25006", "this server is read-only: write on the primary, or set default_transaction_read_only = off"},
      {"53100", "free space on the disk of PostgreSQL"},
  };
  const auto row = kHelp.find(state);
  return row == kHelp.end() ? std::string_view{} : row->second;
}

// Classes of states that the next query would get too: they concern the connection, permissions, tables,
// resources, prepared statements or the transaction.
constexpr auto kOfSession = std::to_array<std::string_view>(
    {"08", "0A", "25", "26", "28", "3D", "3F", "40", "42", "53", "55", "57", "58", "72", "F0", "XX"});
constexpr auto kOfValue = std::to_array<std::string_view>({"22021", "22P02", "22P05", "22003"});

// Whether a parameter value could not be read: `unnamed portal parameter $1 = '…'`. Quoted text is ignored, because a
// client may have chosen it.
bool tells_of_parameter(std::string_view context) {
  return context.substr(0, context.find_first_of("'\"")).find(" $") != context.npos;
}

}  // namespace

PostgresAnswer::Blame PostgresAnswer::blame() const {
  if (is_of_value_ && std::ranges::find(kOfValue, state_) != kOfValue.end()) return Blame::value;
  const bool is_of_session = std::ranges::find(kOfSession, std::string_view(state_).substr(0, 2)) != kOfSession.end();
  return is_of_session ? Blame::session : Blame::question;
}

void PostgresAnswer::Clear::operator()(pg_result* result) const { PQclear(result); }
int PostgresAnswer::rows() const { return PQntuples(result_.get()); }
int PostgresAnswer::columns() const { return PQnfields(result_.get()); }
int PostgresAnswer::parameters() const { return PQnparams(result_.get()); }
std::string PostgresAnswer::name(int column) const { return base::lower(PQfname(result_.get(), column)); }
unsigned PostgresAnswer::type(int column) const { return PQftype(result_.get(), column); }
std::string_view PostgresAnswer::touched() const { return PQcmdTuples(result_.get()); }
std::optional<std::string_view> PostgresAnswer::text(int row, int column) const {
  if (PQgetisnull(result_.get(), row, column) != 0) return std::nullopt;
  return std::string_view(PQgetvalue(result_.get(), row, column),
                          static_cast<std::size_t>(PQgetlength(result_.get(), row, column)));
}

PostgresConnection::~PostgresConnection() { close(); }

void PostgresConnection::close() {
  if (connection_ != nullptr) PQfinish(connection_);
  connection_ = nullptr;
}

Result<void> PostgresConnection::read_address() {
  char* complaint = nullptr;
  PQconninfoOption* const options = PQconninfoParse(url_.c_str(), &complaint);
  if (options == nullptr) {
    password_ = password_in(url_);
    const std::string message = scrubbed(complaint != nullptr ? complaint : "out of memory");
    PQfreemem(complaint);
    return fail(ErrorCode::invalid_argument,
                "invalid URL of the plan database: " + message + "; write postgresql://USER@HOST/DATABASE");
  }
  std::map<std::string_view, std::string> given;
  for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option) {
    if (option->val != nullptr) given[option->keyword] = option->val;
  }
  PQconninfoFree(options);
  password_ = given["password"];
  const std::string& host = given["host"];
  const bool is_number = host.find(':') != host.npos || host.find_first_not_of("0123456789.,") == host.npos;
  needs_names_ = given["hostaddr"].empty() && !is_number && host.front() != '/';
  name_ = "postgresql://" + (given["user"].empty() ? "" : given["user"] + "@") + host +
          (given["port"].empty() ? "" : ":" + given["port"]) + "/" + given["dbname"];
  return {};
}

std::string PostgresConnection::scrubbed(std::string_view message) const {
  std::string text(message.substr(0, message.find("\nLOCATION")));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text = replaced(std::move(text), url_, "postgresql://...");
  text = replaced(std::move(text), password_, "***");
  text = replaced(std::move(text), "\n\t", "; ");
  text = replaced(std::move(text), "\n", "; ");
  return text.substr(0, kMessageMax);
}

Error PostgresConnection::described(std::string_view state, std::string_view message) const {
  std::string text = name_ + ": " + scrubbed(message);
  if (const std::string_view help = help_for(state); !help.empty()) text += "; " + std::string(help);
  return {state == "42601" ? ErrorCode::invalid_argument : ErrorCode::unavailable, std::move(text)};
}

Error PostgresConnection::described(const PostgresAnswer& answer) const {
  return described(answer.state(), answer.message());
}

Error PostgresConnection::lost(std::string_view why) {
  const std::string message =
      connection_ != nullptr && *PQerrorMessage(connection_) != '\0' ? PQerrorMessage(connection_) : std::string(why);
  Error error = described(state_in(message), message);
  close();
  return error;
}

Error PostgresConnection::late() {
  close();
  return {ErrorCode::unavailable,
          name_ + " did not answer within " + std::to_string(ceil<milliseconds>(timeout_).count()) + " ms"};
}

Result<void> PostgresConnection::poll_until_ready(short events) {
  for (;;) {
    const auto left = ceil<milliseconds>(deadline_ - read_stopwatch());
    if (left.count() <= 0) return fail(late());
    pollfd wanted{PQsocket(connection_), events, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(left.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return fail(lost("cannot wait for the socket"));
  }
}

Result<void> PostgresConnection::open() {
  close();
  connection_ = needs_names_ ? start_by(url_, deadline_ - read_stopwatch()) : start(url_);
  if (connection_ == nullptr) return fail(late());
  if (PQstatus(connection_) == CONNECTION_BAD) return fail(lost("cannot connect"));
  PQsetNoticeProcessor(connection_, ignore, nullptr);
  PQsetErrorVerbosity(connection_, PQERRORS_VERBOSE);  // includes the state, which decides the suggested fix
  for (PostgresPollingStatusType wants = PGRES_POLLING_WRITING; wants != PGRES_POLLING_OK;) {
    if (Result<void> ready = poll_until_ready(wants == PGRES_POLLING_READING ? POLLIN : POLLOUT); !ready) return ready;
    wants = PQconnectPoll(connection_);
    if (wants == PGRES_POLLING_FAILED) return fail(lost("cannot connect"));
  }
  PQsetnonblocking(connection_, 1);
  notices_.clear();
  return {};
}

// Reads while sending; libpq keeps what is read. A server whose replies are not read stops reading too.
Result<void> PostgresConnection::flush() {
  for (;;) {
    const int left = PQflush(connection_);
    if (left == 0) return {};
    if (left < 0) return fail(lost("the connection was lost"));
    if (Result<void> ready = poll_until_ready(POLLIN | POLLOUT); !ready) return ready;
    if (PQconsumeInput(connection_) == 0) return fail(lost("the connection was lost"));
  }
}

Result<pg_result*> PostgresConnection::next() {
  while (PQisBusy(connection_) != 0) {
    if (Result<void> ready = poll_until_ready(POLLIN); !ready) return fail(ready.error());
    if (PQconsumeInput(connection_) == 0) return fail(lost("the connection was lost"));
  }
  return PQgetResult(connection_);
}

void PostgresConnection::note_failure(PostgresAnswer& answer) const {
  pg_result* const result = answer.result_.get();
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return;
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* const message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  answer.state_ = state != nullptr ? state : "XX000";
  answer.message_ = message != nullptr ? message : PQresultErrorMessage(result);
  const char* const context = PQresultErrorField(result, PG_DIAG_CONTEXT);
  answer.is_of_value_ = context != nullptr && tells_of_parameter(context);
}

// Returns the last answer to what was sent, or the first failed one. A server that ends the session says why first.
// libpq sends nothing if there is no connection.
Result<PostgresAnswer> PostgresConnection::answer(bool is_sent) {
  if (!is_open()) return fail(ErrorCode::unavailable, name_ + " is not connected");
  if (!is_sent) return fail(lost("the connection was lost"));
  if (Result<void> sent = flush(); !sent) return fail(sent.error());
  PostgresAnswer last(nullptr);
  for (;;) {
    const Result<pg_result*> result = next();
    if (!result) return fail(result.error());
    if (*result == nullptr) break;
    PostgresAnswer one(*result);
    note_failure(one);
    if (last.state().empty()) last = std::move(one);
  }
  collect_notices();
  if (PQstatus(connection_) == CONNECTION_BAD || last.result_ == nullptr) {
    return fail(lost(last.message().empty() ? "the connection was lost" : last.message()));
  }
  return last;
}

namespace {

struct Values {
  explicit Values(const PostgresConnection::Parameters& parameters) {
    for (const auto& one : parameters) values.push_back(one ? one->c_str() : nullptr);
  }
  int count() const { return static_cast<int>(values.size()); }
  std::vector<const char*> values;
};

}  // namespace

Result<PostgresAnswer> PostgresConnection::ask(const std::string& statement, const Parameters& parameters) {
  const Values given(parameters);
  return answer(PQsendQueryParams(connection_, statement.c_str(), given.count(), nullptr, given.values.data(), nullptr,
                                  nullptr, 0) != 0);
}

Result<PostgresAnswer> PostgresConnection::run(const std::string& script) {
  return answer(PQsendQuery(connection_, script.c_str()) != 0);
}

Result<PostgresAnswer> PostgresConnection::prepare(const std::string& name, const std::string& statement) {
  Result<PostgresAnswer> prepared =
      answer(PQsendPrepare(connection_, name.c_str(), statement.c_str(), 0, nullptr) != 0);
  if (!prepared || !prepared->state().empty()) return prepared;
  return answer(PQsendDescribePrepared(connection_, name.c_str()) != 0);
}

Result<PostgresAnswer> PostgresConnection::ask_prepared(const std::string& name, const Parameters& parameters) {
  const Values given(parameters);
  return answer(
      PQsendQueryPrepared(connection_, name.c_str(), given.count(), given.values.data(), nullptr, nullptr, 0) != 0);
}

Result<std::vector<PostgresAnswer>> PostgresConnection::ask_many(const std::string& name,
                                                                 std::span<const Parameters> questions) {
  std::vector<PostgresAnswer> answers;
  if (!is_open()) return fail(ErrorCode::unavailable, name_ + " is not connected");
  if (PQenterPipelineMode(connection_) == 0) return fail(lost("the connection is busy"));
  for (const Parameters& question : questions) {
    const Values given(question);
    const bool is_sent =
        PQsendQueryPrepared(connection_, name.c_str(), given.count(), given.values.data(), nullptr, nullptr, 0) != 0 &&
        PQpipelineSync(connection_) != 0;
    if (!is_sent) return fail(lost("the connection was lost"));
  }
  if (Result<void> sent = flush(); !sent) return fail(sent.error());
  // Each query has an answer, its end, and a sync. After the sync, a failure does not affect the next query.
  for (std::size_t i = 0; i < questions.size(); ++i) {
    for (bool is_synced = false; !is_synced;) {
      const Result<pg_result*> result = next();
      if (!result) return fail(result.error());
      if (*result == nullptr) {
        if (PQstatus(connection_) == CONNECTION_BAD) return fail(lost("the connection was lost"));
        continue;
      }
      PostgresAnswer one(*result);
      is_synced = PQresultStatus(*result) == PGRES_PIPELINE_SYNC;
      if (is_synced) continue;
      note_failure(one);
      if (answers.size() == i) answers.push_back(std::move(one));
    }
    if (answers.size() == i) return fail(lost("a reply is missing"));
  }
  if (PQexitPipelineMode(connection_) == 0) return fail(lost("the connection is busy"));
  collect_notices();
  return answers;
}

Result<void> PostgresConnection::wait(int other, Micros most) {
  if (!is_open()) return fail(ErrorCode::unavailable, name_ + " is not connected");
  std::array<pollfd, 2> wanted = {{{PQsocket(connection_), POLLIN, 0}, {other, POLLIN, 0}}};
  const int ready =
      poll(wanted.data(), wanted.size(), static_cast<int>(std::max<std::int64_t>(ceil<milliseconds>(most).count(), 0)));
  if (ready > 0 && wanted[0].revents != 0 && PQconsumeInput(connection_) == 0) {
    return fail(lost("the connection was lost"));
  }
  collect_notices();
  return {};
}

void PostgresConnection::collect_notices() {
  if (connection_ == nullptr) return;
  while (PGnotify* const notice = PQnotifies(connection_)) {
    if (notices_.size() < kNoticesMax) {
      notices_.emplace_back(notice->extra);
    } else {
      notices_.back().clear();
    }
    PQfreemem(notice);
  }
}

std::vector<std::string> PostgresConnection::take_notices() { return std::exchange(notices_, {}); }

}  // namespace weir::plans
