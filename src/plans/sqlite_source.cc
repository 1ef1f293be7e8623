// Plans in a file of SQLite. See sqlite_source.h.
//
// Reading and writing have a connection each, and the reading one cannot write. A lock of another program and a slow
// query are waited for until the call's deadline, then given up. A file or a table that was there and is gone is never
// made anew: everybody would fall back to the default plan.
#include "plans/sqlite_source.h"

#include <poll.h>
#include <sqlite3.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "nearest.h"
#include "plans/merged_rows.h"
#include "plans/subject.h"

namespace weir {
namespace {

using std::chrono::nanoseconds;

constexpr Micros kLookEvery{100'000};  // for changes
constexpr auto kLockedPause = std::chrono::milliseconds{2};
constexpr int kStepsBetweenLooks = 2'000;  // of SQLite's machine, until the deadline is looked at

constexpr const char* kMakePlans =
    "CREATE TABLE IF NOT EXISTS weir_plans (subject TEXT PRIMARY KEY, plan TEXT,"
    " updated TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))) WITHOUT ROWID";
constexpr const char* kMakeOverrides =
    "CREATE TABLE IF NOT EXISTS weir_overrides (subject TEXT PRIMARY KEY, limits TEXT, until TEXT)"
    " WITHOUT ROWID";

// Until when a call may go on. Where SQLite waits for a lock or works on a query, it asks here.
struct Deadline {
  nanoseconds at{0};
  bool is_over() const { return read_stopwatch() >= at; }
};

int wait_for_lock(void* deadline, int) {
  if (static_cast<const Deadline*>(deadline)->is_over()) return 0;
  std::this_thread::sleep_for(kLockedPause);
  return 1;
}
int stop_if_late(void* deadline) { return static_cast<const Deadline*>(deadline)->is_over() ? 1 : 0; }

struct CloseSqlite {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
};
using SqliteConnection = std::unique_ptr<sqlite3, CloseSqlite>;

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// A statement in use: whatever happens, it gives up its lock at the end.
class Use {
 public:
  explicit Use(sqlite3_stmt* statement) : statement_(statement) {}
  ~Use() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  // The text must live until the end of the use. A place that the statement does not have is nobody's mistake.
  void bind(int place, std::string_view text) const {
    if (place > 0) sqlite3_bind_text64(statement_, place, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  void bind(int place, const std::optional<std::string>& text) const {
    if (text) bind(place, std::string_view(*text));
  }
  void bind(int place, std::size_t number) const {
    sqlite3_bind_int64(statement_, place, static_cast<sqlite3_int64>(number));
  }
  int step() const { return sqlite3_step(statement_); }
  bool is_true(int column) const { return sqlite3_column_int(statement_, column) != 0; }
  std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }

  // Nothing for NULL. What is too long to be meant is cut, and said in `error`.
  std::optional<std::string> text(int column, std::string& error) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    if (bytes == nullptr) return std::nullopt;
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
    if (size > kPlanTextMax) {
      error = "its column '" + std::string(sqlite3_column_name(statement_, column)) + "' has " + std::to_string(size) +
              " bytes; at most " + std::to_string(kPlanTextMax) + " make sense";
    }
    return std::string(bytes, std::min(size, kPlanTextMax));
  }

 private:
  sqlite3_stmt* statement_;
};

// Which files are read: another one may have been put in their place.
struct Files {
  dev_t device = 0;
  ino_t file = 0, log = 0;
  friend bool operator==(const Files&, const Files&) = default;
};

class SqliteSource final : public PlanSource {
 public:
  SqliteSource(std::string file, const PlanSourceOptions& options)
      : file_(std::move(file)),
        query_(options.query),
        patience_(options.patience),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~SqliteSource() override {
    close_all();
    if (wake_ >= 0) close(wake_);
  }

  Result<void> connect() override {
    begin_call();
    return open_reader();
  }

  Result<std::vector<PlanRow>> find(std::span<const std::string> subjects) override {
    begin_call();
    if (reader_ == nullptr) return fail(ErrorCode::unavailable, name() + " is not open");
    std::vector<PlanRow> rows;
    // One lock for all of them.
    if (const int code = sqlite3_exec(reader_.get(), "BEGIN", nullptr, nullptr, nullptr); code != SQLITE_OK) {
      return fail(described(reader_.get(), code));
    }
    Result<void> read;
    for (std::size_t i = 0; read && i < subjects.size(); ++i) {
      PlanRow row{.subject = subjects[i]};
      read = query_.empty() ? read_own(row) : read_theirs(row);
      if (row.has_plan || row.has_override || !row.error.empty()) rows.push_back(std::move(row));
    }
    sqlite3_exec(reader_.get(), "COMMIT", nullptr, nullptr, nullptr);
    if (!read) return fail(read.error());
    return rows;
  }

  Result<std::vector<PlanRow>> all(std::string_view after, std::size_t most) override {
    begin_call();
    if (!query_.empty()) return fail(ErrorCode::not_found, "a query knows subjects only one by one");
    if (reader_ == nullptr) return fail(ErrorCode::unavailable, name() + " is not open");
    Result<std::vector<PlanRow>> plans = page(all_.get(), after, most, [](const Use& use, PlanRow& row) {
      row.has_plan = true;
      row.plan = use.text(1, row.error);
    });
    if (!plans || !has_overrides_) return plans;
    Result<std::vector<PlanRow>> overrides = page(all_overrides_.get(), after, most, [](const Use& use, PlanRow& row) {
      row.has_override = true;
      row.limits = use.text(1, row.error);
      row.until = use.text(2, row.error);
    });
    if (!overrides) return overrides;
    return merged_rows(*std::move(plans), *std::move(overrides), most);
  }

  Result<Changes> wait(Micros most) override {
    const nanoseconds end = read_stopwatch() + most;
    for (;;) {
      Result<Changes> changes = look();
      if (!changes || changes->all) return changes;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - read_stopwatch());
      if (left.count() <= 0) return changes;
      const auto nap = std::min(left, std::chrono::duration_cast<std::chrono::milliseconds>(kLookEvery));
      pollfd wanted{wake_, POLLIN, 0};
      if (poll(&wanted, 1, static_cast<int>(nap.count())) > 0) {
        std::uint64_t times = 0;
        [[maybe_unused]] const ssize_t got = read(wake_, &times, sizeof times);
        return changes;
      }
    }
  }

  void wake() noexcept override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t put = ::write(wake_, &one, sizeof one);
  }

  Result<void> write(const PlanChange& change) override {
    begin_call();
    const bool is_override =
        change.kind == PlanChange::Kind::set_override || change.kind == PlanChange::Kind::remove_override;
    if (!is_override && !query_.empty()) {
      return fail(ErrorCode::invalid_argument,
                  "plans are read by a query from tables that are not ours: change them there. Overrides can be set");
    }
    Result<SqliteConnection> writer = open(SQLITE_OPEN_READWRITE);
    if (!writer) return fail(writer.error());
    if (is_override && !has_overrides_) {
      if (Result<void> made = run(writer->get(), kMakeOverrides); !made) return made;
    }
    Result<void> written = put(writer->get(), change);
    if (written && is_override && !has_overrides_) {
      written = open_reader();
      seen_version_ = -1;  // what others have changed meanwhile was seen by nobody
    }
    return written;
  }

 private:
  std::string name() const { return "sqlite:" + file_; }
  void begin_call() { deadline_.at = read_stopwatch() + patience_; }

  void close_all() {
    find_.reset();
    override_.reset();
    all_.reset();
    all_overrides_.reset();
    version_.reset();
    reader_.reset();
  }

  // What is wrong, and what helps.
  Error described(sqlite3* connection, int code) const {
    const std::string said = connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
    const std::string patience_ms = std::to_string(std::chrono::ceil<std::chrono::milliseconds>(patience_).count());
    const auto away = [&](std::string what) { return Error{ErrorCode::unavailable, name() + " " + std::move(what)}; };
    switch (code & 0xff) {
      case SQLITE_BUSY:
      case SQLITE_LOCKED:
        return away("is locked by another program, for longer than " + patience_ms +
                    " ms; end its transaction, or let it write in WAL mode, which does not lock readers out");
      case SQLITE_NOTADB:
        return away("is not a database of SQLite; name another file, or restore this one from a backup");
      case SQLITE_CORRUPT:
        return away("is damaged (" + said + "); restore it from a backup, or try: sqlite3 FILE .recover");
      case SQLITE_CANTOPEN:
        return away("cannot be opened; may this user read the file, and write the folder if it is in WAL mode?");
      case SQLITE_READONLY:
      case SQLITE_PERM:
        return away("cannot be written; give this user write permission on the file and on its folder");
      case SQLITE_FULL:
        return away("cannot be written: the disk is full");
      case SQLITE_INTERRUPT:
        return away("did not answer within " + patience_ms +
                    " ms; an index on the column that the query compares with $1 helps");
      default:
        return away("says: " + said);
    }
  }

  Result<Files> files() const {
    struct stat about {};
    if (stat(file_.c_str(), &about) != 0) {
      if (errno == ENOENT) return fail(ErrorCode::not_found, name() + ": there is no such file");
      return fail(ErrorCode::unavailable, name() + ": " + std::strerror(errno));
    }
    Files files{about.st_dev, about.st_ino, 0};
    if (struct stat log{}; stat((file_ + "-wal").c_str(), &log) == 0) files.log = log.st_ino;
    return files;
  }

  Result<SqliteConnection> open(int flags) {
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(file_.c_str(), &opened, flags | SQLITE_OPEN_NOMUTEX, nullptr);
    SqliteConnection connection(opened);
    if (code != SQLITE_OK) return fail(described(opened, code));
    sqlite3_busy_handler(opened, wait_for_lock, &deadline_);
    sqlite3_progress_handler(opened, kStepsBetweenLooks, stop_if_late, &deadline_);
    return connection;
  }

  Result<void> run(sqlite3* connection, const char* sql) const {
    const int code = sqlite3_exec(connection, sql, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return fail(described(connection, code));
    return {};
  }

  Result<Statement> prepare(const std::string& sql) const {
    sqlite3_stmt* made = nullptr;
    const char* rest = nullptr;
    const int code = sqlite3_prepare_v2(reader_.get(), sql.c_str(), -1, &made, &rest);
    Statement statement(made);
    if (code != SQLITE_OK) return fail(described(reader_.get(), code));
    if (std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string_view::npos) {
      return fail(ErrorCode::invalid_argument, "the query is more than one statement; give one SELECT");
    }
    return statement;
  }

  Result<bool> has_table(const char* table) const {
    Result<Statement> statement =
        prepare("SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = '" + std::string(table) + "'");
    if (!statement) return fail(statement.error());
    const Use use(statement->get());
    const int code = use.step();
    if (code != SQLITE_ROW && code != SQLITE_DONE) return fail(described(reader_.get(), code));
    return code == SQLITE_ROW;
  }

  // Makes the file and our own tables, once in the life of a source.
  Result<void> make_tables() {
    Result<SqliteConnection> writer = open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (!writer) return fail(writer.error());
    if (Result<void> made = run(writer->get(), kMakePlans); !made) return made;
    return run(writer->get(), kMakeOverrides);
  }

  Result<void> open_reader() {
    close_all();
    Result<Files> before = files();
    const bool is_missing = !before && before.error().code == ErrorCode::not_found;
    if (is_missing && query_.empty() && !was_open_) {
      if (Result<void> made = make_tables(); !made) return made;
      before = files();
    }
    if (!before) {
      return fail(ErrorCode::unavailable,
                  before.error().message + (was_open_ ? "; it was there before: put it back" : "; name one that is"));
    }
    if (Result<void> opened = open_and_look(); !opened) {
      close_all();
      return opened;
    }
    read_ = *before;
    if (const Result<Files> now = files()) read_.log = now->log;
    was_open_ = true;
    last_look_ = read_stopwatch();
    return {};
  }

  Result<void> open_and_look() {
    // A file in WAL mode can need a writable connection to be read.
    Result<bool> has_plans = false;
    for (const int flags : {SQLITE_OPEN_READONLY, SQLITE_OPEN_READWRITE}) {
      Result<SqliteConnection> opened = open(flags);
      if (!opened) return fail(opened.error());
      reader_ = *std::move(opened);
      has_plans = has_table("weir_plans");
      if (has_plans || (sqlite3_errcode(reader_.get()) & 0xff) != SQLITE_CANTOPEN) break;
    }
    if (!has_plans) return fail(has_plans.error());
    if (query_.empty() && !*has_plans && was_open_) {
      return fail(ErrorCode::unavailable,
                  name() + " has lost its table weir_plans; restore it, or restart to begin with an empty one");
    }
    Result<bool> has_overrides = has_table("weir_overrides");
    if (!has_overrides) return fail(has_overrides.error());
    if (query_.empty() && !was_open_ && !(*has_plans && *has_overrides)) {
      const Result<void> made = make_tables();
      if (!made && !*has_plans) return made;
      has_overrides = has_table("weir_overrides");
      if (!has_overrides) return fail(has_overrides.error());
    }
    has_overrides_ = *has_overrides;
    return prepare_all();
  }

  Result<void> prepare_all() {
    if (query_.empty()) {
      const std::string overrides =
          has_overrides_ ? "weir_overrides" : "(SELECT NULL subject, NULL limits, NULL until)";
      if (Result<void> made =
              keep(find_,
                   "SELECT p.subject IS NOT NULL, p.plan, o.subject IS NOT NULL, o.limits, o.until FROM (SELECT "
                   "?1 subject) s LEFT JOIN weir_plans p ON p.subject = s.subject LEFT JOIN " +
                       overrides + " o ON o.subject = s.subject");
          !made) {
        return made;
      }
      const std::string first = " WHERE subject > ?1 AND typeof(subject) = 'text' ORDER BY subject LIMIT ?2";
      if (Result<void> made = keep(all_, "SELECT subject, plan FROM weir_plans" + first); !made) return made;
      if (has_overrides_) {
        if (Result<void> made = keep(all_overrides_, "SELECT subject, limits, until FROM weir_overrides" + first);
            !made) {
          return made;
        }
      }
    } else {
      if (Result<void> made = prepare_query(); !made) return made;
      if (has_overrides_) {
        if (Result<void> made = keep(override_, "SELECT limits, until FROM weir_overrides WHERE subject = ?1"); !made) {
          return made;
        }
      }
    }
    if (Result<void> made = keep(version_, "PRAGMA data_version"); !made) return made;
    const Use use(version_.get());
    if (const int code = use.step(); code != SQLITE_ROW) return fail(described(reader_.get(), code));
    seen_version_ = use.number(0);
    return {};
  }

  Result<void> keep(Statement& place, const std::string& sql) const {
    Result<Statement> made = prepare(sql);
    if (!made) return fail(made.error());
    place = *std::move(made);
    return {};
  }

  Result<void> prepare_query() {
    if (Result<void> made = keep(find_, query_); !made) {
      return fail(made.error().code, "the query cannot be used. " + made.error().message);
    }
    sqlite3_stmt* const made = find_.get();
    if (made == nullptr || sqlite3_stmt_readonly(made) == 0 || sqlite3_column_count(made) < 1) {
      return fail(ErrorCode::invalid_argument, "the query would change the database; give one SELECT");
    }
    value_place_ = sqlite3_bind_parameter_index(made, "$1");
    kind_place_ = sqlite3_bind_parameter_index(made, "$2");
    for (int place = 1; place <= sqlite3_bind_parameter_count(made); ++place) {
      if (place == value_place_ || place == kind_place_) continue;
      const char* const unknown = sqlite3_bind_parameter_name(made, place);
      return fail(ErrorCode::invalid_argument, "the query asks for " + in_quotes(unknown != nullptr ? unknown : "?") +
                                                   "; there are $1, a subject's value, and $2, its kind");
    }
    limits_column_ = until_column_ = -1;
    for (int column = 1; column < sqlite3_column_count(made); ++column) {
      const std::string called = lower(sqlite3_column_name(made, column));
      if (called == "limits") limits_column_ = column;
      if (called == "until") until_column_ = column;
    }
    return {};
  }

  static void take(const Use& use, PlanRow& row) {
    row.has_plan = use.is_true(0);
    row.plan = use.text(1, row.error);
    row.has_override = use.is_true(2);
    row.limits = use.text(3, row.error);
    row.until = use.text(4, row.error);
  }

  // Reads the one row of a subject, and refuses to choose where there are two.
  template <class Take>
  Result<void> read_one(const Use& use, PlanRow& row, Take take_row) {
    int code = use.step();
    if (code == SQLITE_ROW) {
      take_row();
      code = use.step();
      if (code == SQLITE_ROW) row.error = "the query finds more than one row for it";
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE) return fail(described(reader_.get(), code));
    return {};
  }

  Result<void> read_own(PlanRow& row) {
    const Use use(find_.get());
    use.bind(1, std::string_view(row.subject));
    return read_one(use, row, [&] { take(use, row); });
  }

  Result<void> read_theirs(PlanRow& row) {
    const Use use(find_.get());
    const SubjectParts parts = parts_of_subject(row.subject);
    use.bind(value_place_, parts.value);
    use.bind(kind_place_, parts.kind);
    Result<void> read = read_one(use, row, [&] {
      row.has_plan = true;
      row.plan = use.text(0, row.error);
      if (limits_column_ >= 0) row.limits = use.text(limits_column_, row.error);
      if (until_column_ >= 0 && row.limits) row.until = use.text(until_column_, row.error);
      row.has_override = row.limits.has_value();
    });
    if (!read || override_ == nullptr) return read;
    const Use instead(override_.get());
    instead.bind(1, std::string_view(row.subject));
    return read_one(instead, row, [&] {
      row.has_override = true;
      row.limits = instead.text(0, row.error);
      row.until = instead.text(1, row.error);
    });
  }

  // The first rows of a table after a subject.
  template <class Take>
  Result<std::vector<PlanRow>> page(sqlite3_stmt* statement, std::string_view after, std::size_t most, Take take_row) {
    const Use use(statement);
    use.bind(1, after);
    use.bind(2, most);
    std::vector<PlanRow> rows;
    int code = SQLITE_ROW;
    while ((code = use.step()) == SQLITE_ROW) {
      PlanRow& row = rows.emplace_back();
      row.subject = use.text(0, row.error).value_or("");
      take_row(use, row);
    }
    if (code != SQLITE_DONE) return fail(described(reader_.get(), code));
    return rows;
  }

  // Whether anything has changed. A lock is no error before it has lasted as long as a call may.
  Result<Changes> look() {
    deadline_.at = nanoseconds{0};
    if (reader_ == nullptr) return fail(ErrorCode::unavailable, name() + " is not open");
    const Result<Files> now = files();
    if (!now) return fail(ErrorCode::unavailable, now.error().message + "; it was there before: put it back");
    if (*now != read_) {
      begin_call();
      if (Result<void> opened = open_reader(); !opened) return fail(opened.error());
      return Changes{.all = true};
    }
    // No progress handler could let this one through, and it is done in microseconds.
    sqlite3_progress_handler(reader_.get(), 0, nullptr, nullptr);
    int code = SQLITE_OK;
    std::int64_t version = 0;
    {
      const Use use(version_.get());
      code = use.step();
      if (code == SQLITE_ROW) version = use.number(0);
    }
    sqlite3_progress_handler(reader_.get(), kStepsBetweenLooks, stop_if_late, &deadline_);
    if ((code & 0xff) == SQLITE_BUSY) {
      if (read_stopwatch() - last_look_ < patience_) return Changes{};
      return fail(described(reader_.get(), code));
    }
    if (code != SQLITE_ROW) return fail(described(reader_.get(), code));
    last_look_ = read_stopwatch();
    if (version == seen_version_) return Changes{};
    seen_version_ = version;
    if (!has_overrides_) {
      begin_call();
      Result<bool> has_overrides = has_table("weir_overrides");
      if (!has_overrides) return fail(has_overrides.error());
      if (*has_overrides) {
        if (Result<void> opened = open_reader(); !opened) return fail(opened.error());
      }
    }
    return Changes{.all = true};
  }

  Result<void> put(sqlite3* writer, const PlanChange& change) const {
    const char* sql = nullptr;
    switch (change.kind) {
      case PlanChange::Kind::set_plan:
        sql =
            "INSERT INTO weir_plans (subject, plan, updated) VALUES (?1, ?2, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))"
            " ON CONFLICT (subject) DO UPDATE SET plan = excluded.plan, updated = excluded.updated";
        break;
      case PlanChange::Kind::remove_plan:
        sql = "DELETE FROM weir_plans WHERE subject = ?1";
        break;
      case PlanChange::Kind::set_override:
        sql =
            "INSERT INTO weir_overrides (subject, limits, until) VALUES (?1, ?2, ?3)"
            " ON CONFLICT (subject) DO UPDATE SET limits = excluded.limits, until = excluded.until";
        break;
      case PlanChange::Kind::remove_override:
        sql = "DELETE FROM weir_overrides WHERE subject = ?1";
        break;
    }
    sqlite3_stmt* made = nullptr;
    int code = sqlite3_prepare_v2(writer, sql, -1, &made, nullptr);
    const Statement statement(made);
    if (code != SQLITE_OK) return fail(described(writer, code));
    const Use use(made);
    const bool is_plan = change.kind == PlanChange::Kind::set_plan;
    use.bind(1, std::string_view(change.subject));
    if (is_plan) use.bind(2, std::string_view(change.plan));
    if (change.kind == PlanChange::Kind::set_override) {
      use.bind(2, std::string_view(change.limits));
      use.bind(3, change.until);
    }
    code = use.step();
    if (code != SQLITE_DONE) return fail(described(writer, code));
    if (sqlite3_changes(writer) == 0) {
      return fail(ErrorCode::not_found, name() + " has nothing of " + in_quotes(change.subject) + " to remove");
    }
    return {};
  }

  const std::string file_, query_;
  const Micros patience_;
  const int wake_;
  Deadline deadline_;
  SqliteConnection reader_;
  Statement find_, override_, all_, all_overrides_, version_;
  int value_place_ = 0, kind_place_ = 0, limits_column_ = -1, until_column_ = -1;
  bool has_overrides_ = false, was_open_ = false;
  Files read_;
  std::int64_t seen_version_ = 0;
  nanoseconds last_look_{0};
};

}  // namespace

std::unique_ptr<PlanSource> make_sqlite_source(std::string file, const PlanSourceOptions& options) {
  return std::make_unique<SqliteSource>(std::move(file), options);
}

}  // namespace weir
