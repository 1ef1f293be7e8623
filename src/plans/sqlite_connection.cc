// SQLite's C interface, with deadlines and helpful errors. See sqlite_connection.h.
#include "plans/sqlite_connection.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/nearest.h"
#include "plans/plan_source.h"

namespace weir::plans {
namespace {

constexpr auto kLockedPause = std::chrono::milliseconds{2};
constexpr int kStepsBetweenLooks = 2'000;  // virtual machine instructions between two checks of the deadline

}  // namespace

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
bool SqliteStatement::only_reads() const { return sqlite3_stmt_readonly(statement_.get()) != 0; }
int SqliteStatement::columns() const { return sqlite3_column_count(statement_.get()); }
std::string SqliteStatement::column_name(int column) const {
  return base::lower(sqlite3_column_name(statement_.get(), column));
}
int SqliteStatement::parameters() const { return sqlite3_bind_parameter_count(statement_.get()); }
int SqliteStatement::parameter(const char* name) const { return sqlite3_bind_parameter_index(statement_.get(), name); }
std::string SqliteStatement::parameter_name(int place) const {
  const char* const name = sqlite3_bind_parameter_name(statement_.get(), place);
  return name != nullptr ? name : "?";
}

void SqliteConnection::Close::operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }

int SqliteConnection::stop_if_late(void* self) {
  return read_stopwatch() >= static_cast<const SqliteConnection*>(self)->deadline_ ? 1 : 0;
}

int SqliteConnection::wait_for_lock(void* self, int) {
  if (!static_cast<const SqliteConnection*>(self)->waits_for_locks_ || stop_if_late(self) != 0) return 0;
  std::this_thread::sleep_for(kLockedPause);
  return 1;
}

Error SqliteConnection::described(int code) {
  const std::string said = connection_ != nullptr ? sqlite3_errmsg(connection_.get()) : sqlite3_errstr(code);
  const std::string timeout_ms = std::to_string(std::chrono::ceil<std::chrono::milliseconds>(timeout_).count());
  const auto unavailable = [&](std::string what) {
    return Error{ErrorCode::unavailable, name() + " " + std::move(what)};
  };
  failure_ = Failure::other;
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      failure_ = Failure::locked;
      return unavailable("has been locked by another program for more than " + timeout_ms +
                         " ms; end its transaction, or use WAL mode, in which writers do not block readers");
    case SQLITE_NOTADB:
      return unavailable("is not a SQLite database; name another file, or restore this one from a backup");
    case SQLITE_CORRUPT:
      return unavailable("is damaged (" + said + "); restore it from a backup, or try: sqlite3 FILE .recover");
    case SQLITE_CANTOPEN:
      failure_ = Failure::cannot_open;
      return unavailable("cannot be opened; let this user read the file and, in WAL mode, write to its folder");
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return unavailable("cannot be written; give this user write permission on the file and on its folder");
    case SQLITE_FULL:
      return unavailable("cannot be written: the disk is full");
    case SQLITE_INTERRUPT:
      return unavailable("did not answer within " + timeout_ms +
                         " ms; add an index on the column that the query compares with $1");
    default:
      return unavailable("says: " + said);
  }
}

// A new file is created here, not by SQLite, which would make it readable by all users and follow a dangling link.
// If it cannot be created, SQLite reports why. Journals get the mode of the file.
Result<void> SqliteConnection::open(Access access) {
  if (access == Access::make) {
    const int made = ::open(file_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made >= 0) ::close(made);
  }
  const int flags = access == Access::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(file_.c_str(), &opened, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  connection_.reset(opened);
  if (code != SQLITE_OK) {
    Error error = described(code);
    close();
    return fail(std::move(error));
  }
  sqlite3_busy_handler(opened, wait_for_lock, this);
  sqlite3_progress_handler(opened, kStepsBetweenLooks, stop_if_late, this);
  return {};
}

Result<void> SqliteConnection::run(const char* sql) {
  const int code = sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail(described(code));
  return {};
}

Result<SqliteStatement> SqliteConnection::prepare(const std::string& sql) {
  sqlite3_stmt* made = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(connection_.get(), sql.c_str(), -1, &made, &rest);
  SqliteStatement statement(made);
  if (code != SQLITE_OK) return fail(described(code));
  if (std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "the query has more than one statement; write one SELECT");
  }
  return statement;
}

bool SqliteConnection::changed_nothing() const { return sqlite3_changes(connection_.get()) == 0; }

SqliteUse::~SqliteUse() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void SqliteUse::bind(int place, std::string_view text) const {
  if (place > 0) sqlite3_bind_text64(statement_, place, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}
void SqliteUse::bind(int place, const std::optional<std::string>& text) const {
  if (text) bind(place, std::string_view(*text));
}
void SqliteUse::bind(int place, std::size_t number) const {
  sqlite3_bind_int64(statement_, place, static_cast<sqlite3_int64>(number));
}

Result<bool> SqliteUse::step() const {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW || code == SQLITE_DONE) return code == SQLITE_ROW;
  Error error = connection_.described(code);
  // If the statement can still be prepared, its tables exist, so the failure comes from data in a row.
  const int kind = code & 0xff;
  const bool may_be_row = kind == SQLITE_ERROR || kind == SQLITE_MISMATCH || kind == SQLITE_TOOBIG;
  if (may_be_row && connection_.prepare(sqlite3_sql(statement_))) {
    connection_.failure_ = SqliteConnection::Failure::of_row;
  }
  return fail(std::move(error));
}

std::int64_t SqliteUse::number(int column) const { return sqlite3_column_int64(statement_, column); }

std::optional<std::string> SqliteUse::text(int column, std::string& error) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (bytes == nullptr) return std::nullopt;
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  if (size > kPlanTextMax) {
    error = "the column '" + std::string(sqlite3_column_name(statement_, column)) + "' has " + std::to_string(size) +
            " bytes; at most " + std::to_string(kPlanTextMax) + " are allowed";
  }
  return std::string(bytes, std::min(size, kPlanTextMax));
}

}  // namespace weir::plans
