// Plans in a SQLite file: our tables, or a query over the user's, and detection of changes. Only sqlite_connection.cc
// includes SQLite. Ten times a second it checks for changes with `PRAGMA data_version`, which takes some microseconds,
// and checks whether the file was replaced by another.
//
// Reading and writing use separate connections, and the reading one does not write. A file or table that existed and
// is missing is never created again: all subjects would fall back to the default plan. Tested by sqlite_source_test.cc.
#include "plans/plan_source.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/descriptor.h"
#include "base/nearest.h"
#include "plans/sqlite_connection.h"

namespace weir::plans {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Access = SqliteConnection::Access;

constexpr milliseconds kLookEvery{100};  // how often to look for changes

constexpr const char* kMakePlans =
    "CREATE TABLE IF NOT EXISTS weir_plans (subject TEXT PRIMARY KEY, plan TEXT,"
    " updated TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))) WITHOUT ROWID";
constexpr const char* kMakeOverrides =
    "CREATE TABLE IF NOT EXISTS weir_overrides (subject TEXT PRIMARY KEY, limits TEXT, until TEXT) WITHOUT ROWID";

// Identifies the open files, because another file may replace them.
struct Files {
  dev_t device = 0;
  ino_t file = 0, log = 0;
  friend bool operator==(const Files&, const Files&) = default;
};

Result<Files> files_of(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) {
    const bool is_missing = errno == ENOENT;
    return fail(is_missing ? ErrorCode::not_found : ErrorCode::unavailable,
                "sqlite:" + path + ": " + (is_missing ? "no such file" : std::strerror(errno)));
  }
  Files files{about.st_dev, about.st_ino, 0};
  if (struct stat log{}; stat((path + "-wal").c_str(), &log) == 0) files.log = log.st_ino;
  return files;
}

const char* sql_of(PlanChange::Kind kind) {
  switch (kind) {
    case PlanChange::Kind::set_plan:
      return "INSERT INTO weir_plans (subject, plan, updated) VALUES (?1, ?2, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))"
             " ON CONFLICT (subject) DO UPDATE SET plan = excluded.plan, updated = excluded.updated";
    case PlanChange::Kind::remove_plan:
      return "DELETE FROM weir_plans WHERE subject = ?1";
    case PlanChange::Kind::set_override:
      return "INSERT INTO weir_overrides (subject, limits, until) VALUES (?1, ?2, ?3)"
             " ON CONFLICT (subject) DO UPDATE SET limits = excluded.limits, until = excluded.until";
    case PlanChange::Kind::remove_override:
      return "DELETE FROM weir_overrides WHERE subject = ?1";
  }
  return "";
}

class SqliteSource final : public PlanSource {
 public:
  SqliteSource(std::string file, const PlanSourceOptions& options)
      : query_(options.query),
        timeout_(options.timeout),
        reader_(std::move(file), options.timeout),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  Result<void> connect() override {
    reader_.begin();
    return open_reader();
  }

  Result<std::vector<PlanRow>> find(std::span<const std::string> subjects) override {
    reader_.begin();
    if (Result<void> is = open_still(); !is) return fail(is.error());
    std::vector<PlanRow> rows;
    Result<void> read = reader_.run("BEGIN");  // one lock for all reads
    if (!read) return fail(read.error());
    for (std::size_t i = 0; read && i < subjects.size(); ++i) {
      PlanRow row{.subject = subjects[i]};
      read = query_.empty() ? read_own(row) : read_theirs(row);
      if (!read && reader_.failure() == SqliteConnection::Failure::of_row) {
        row = {.subject = subjects[i], .error = read.error().message};
        read = {};
      }
      if (row.has_plan || row.has_override || !row.error.empty()) rows.push_back(std::move(row));
    }
    const Result<void> ended = reader_.run(read ? "COMMIT" : "ROLLBACK");
    if (!read) return fail(read.error());
    if (!ended) return fail(ended.error());
    return rows;
  }

  Result<std::vector<PlanRow>> all(std::string_view after, std::size_t most) override {
    reader_.begin();
    if (!query_.empty())
      return fail(ErrorCode::not_found, "`plans.query` finds subjects only one by one, so plans cannot be listed");
    if (Result<void> is = open_still(); !is) return fail(is.error());
    Result<std::vector<PlanRow>> plans = page(all_, after, most, [](const SqliteUse& use, PlanRow& row) {
      row.has_plan = true;
      row.plan = use.text(1, row.error);
    });
    if (!plans || !has_overrides_) return plans;
    Result<std::vector<PlanRow>> overrides =
        page(all_overrides_, after, most, [](const SqliteUse& use, PlanRow& row) { take_override(use, 1, row); });
    if (!overrides) return overrides;
    return merged_rows(*std::move(plans), *std::move(overrides), most);
  }

  Result<Changes> wait(Micros most) override {
    const nanoseconds end = read_stopwatch() + most;
    for (;;) {
      Result<Changes> changes = look();
      if (!changes || changes->all) return changes;
      const auto left = std::chrono::ceil<milliseconds>(end - read_stopwatch());
      if (left.count() <= 0) return changes;
      pollfd wanted{wake_.get(), POLLIN, 0};
      if (poll(&wanted, 1, static_cast<int>(std::min(left, kLookEvery).count())) > 0) {
        std::uint64_t times = 0;
        [[maybe_unused]] const ssize_t got = read(wake_.get(), &times, sizeof times);
        return changes;
      }
    }
  }

  void wake() noexcept override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t put = ::write(wake_.get(), &one, sizeof one);
  }

  Result<void> write(const PlanChange& change) override {
    if (!is_override(change) && !query_.empty()) return fail(not_ours());
    SqliteConnection writer(reader_.file(), timeout_);
    writer.begin();
    if (Result<void> opened = writer.open(Access::write); !opened) return opened;
    if (is_override(change) && !has_overrides_) {
      if (Result<void> made = writer.run(kMakeOverrides); !made) return made;
    }
    Result<void> written = put(writer, change);
    if (written && is_override(change) && !has_overrides_) {
      reader_.begin();
      written = open_reader();
      seen_version_ = -1;  // unknown: other processes may have changed rows since the last query
    }
    return written;
  }

 private:
  Result<void> open_still() const {
    if (!reader_.is_open()) return fail(ErrorCode::unavailable, reader_.name() + " is not connected");
    return {};
  }

  void close_all() {
    for (SqliteStatement* statement : {&find_, &override_, &all_, &all_overrides_, &version_}) statement->drop();
    reader_.close();
  }

  Result<bool> has_table(const std::string& table) {
    Result<SqliteStatement> statement =
        reader_.prepare("SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = '" + table + "'");
    if (!statement) return fail(statement.error());
    return SqliteUse(reader_, *statement).step();
  }

  // Creates the file and our own tables. Called at most once in the life of a source.
  Result<void> make_tables() const {
    SqliteConnection writer(reader_.file(), timeout_);
    writer.begin();
    if (Result<void> opened = writer.open(Access::make); !opened) return opened;
    if (Result<void> made = writer.run(kMakePlans); !made) return made;
    return writer.run(kMakeOverrides);
  }

  Result<void> open_reader() {
    close_all();
    Result<Files> before = files_of(reader_.file());
    const bool is_missing = !before && before.error().code == ErrorCode::not_found;
    if (is_missing && query_.empty() && !was_open_) {
      if (Result<void> made = make_tables(); !made) return made;
      before = files_of(reader_.file());
    }
    if (!before) {
      return fail(ErrorCode::unavailable, before.error().message + (was_open_ ? "; the file existed before: restore it"
                                                                              : "; name an existing file"));
    }
    if (Result<void> opened = open_and_look(); !opened) {
      close_all();
      return opened;
    }
    read_ = *before;
    if (const Result<Files> now = files_of(reader_.file())) read_.log = now->log;
    was_open_ = true;
    last_look_ = read_stopwatch();
    return {};
  }

  Result<void> open_and_look() {
    // A file in WAL mode may need a writable connection even to be read.
    Result<bool> has_plans = false;
    for (const Access access : {Access::read, Access::write}) {
      if (Result<void> opened = reader_.open(access); !opened) return opened;
      has_plans = has_table("weir_plans");
      if (has_plans || reader_.failure() != SqliteConnection::Failure::cannot_open) break;
    }
    if (!has_plans) return fail(has_plans.error());
    if (query_.empty() && !*has_plans && was_open_) {
      return fail(ErrorCode::unavailable, reader_.name() +
                                              " has lost its table weir_plans; restore it, or restart the server "
                                              "to create an empty one");
    }
    Result<bool> has_overrides = has_table("weir_overrides");
    if (has_overrides && query_.empty() && !was_open_ && !(*has_plans && *has_overrides)) {
      const Result<void> made = make_tables();
      if (!made && !*has_plans) return made;
      has_overrides = has_table("weir_overrides");
    }
    if (!has_overrides) return fail(has_overrides.error());
    has_overrides_ = *has_overrides;
    if (Result<void> made = query_.empty() ? prepare_own() : prepare_theirs(); !made) return made;
    if (Result<void> made = prepare(version_, "PRAGMA data_version"); !made) return made;
    const SqliteUse use(reader_, version_);
    if (const Result<bool> row = use.step(); !row) return fail(row.error());
    seen_version_ = use.number(0);
    return {};
  }

  Result<void> prepare(SqliteStatement& place, const std::string& sql) {
    Result<SqliteStatement> made = reader_.prepare(sql);
    if (!made) return fail(made.error());
    place = *std::move(made);
    return {};
  }

  Result<void> prepare_own() {
    const std::string overrides = has_overrides_ ? "weir_overrides" : "(SELECT NULL subject, NULL limits, NULL until)";
    const std::string find =
        "SELECT p.subject IS NOT NULL, p.plan, o.subject IS NOT NULL, o.limits, o.until FROM (SELECT ?1 subject) s"
        " LEFT JOIN weir_plans p ON p.subject = s.subject LEFT JOIN " +
        overrides + " o ON o.subject = s.subject";
    const std::string first = " WHERE subject > ?1 AND typeof(subject) = 'text' ORDER BY subject LIMIT ?2";
    if (Result<void> made = prepare(find_, find); !made) return made;
    if (Result<void> made = prepare(all_, "SELECT subject, plan FROM weir_plans" + first); !made) return made;
    if (!has_overrides_) return {};
    return prepare(all_overrides_, "SELECT subject, limits, until FROM weir_overrides" + first);
  }

  Result<void> prepare_theirs() {
    if (Result<void> made = prepare(find_, query_); !made) {
      return fail(made.error().code, "the query cannot be used: " + made.error().message);
    }
    if (find_.is_there() && !find_.only_reads()) {
      return fail(ErrorCode::invalid_argument, "the query would change the database; write one SELECT");
    }
    if (!find_.is_there() || find_.columns() < 1) {
      return fail(ErrorCode::invalid_argument, "the query returns no column; its first column must be the plan");
    }
    value_place_ = find_.parameter("$1");
    kind_place_ = find_.parameter("$2");
    for (int place = 1; place <= find_.parameters(); ++place) {
      if (place == value_place_ || place == kind_place_) continue;
      return fail(ErrorCode::invalid_argument, "the query uses the parameter " +
                                                   base::in_quotes(find_.parameter_name(place)) +
                                                   "; write $1 for the subject's value and $2 for its kind");
    }
    limits_column_ = until_column_ = -1;
    for (int column = 1; column < find_.columns(); ++column) {
      if (find_.column_name(column) == "limits") limits_column_ = column;
      if (find_.column_name(column) == "until") until_column_ = column;
    }
    if (!has_overrides_) return {};
    return prepare(override_, "SELECT limits, until FROM weir_overrides WHERE subject = ?1");
  }

  static void take_override(const SqliteUse& use, int limits, PlanRow& row) {
    row.has_override = true;
    row.limits = use.text(limits, row.error);
    row.until = use.text(limits + 1, row.error);
  }

  // Reads the single row of a subject. Two rows are an error.
  template <class Take>
  Result<void> read_one(const SqliteUse& use, PlanRow& row, Take take) {
    Result<bool> is_more = use.step();
    if (is_more && *is_more) {
      take();
      is_more = use.step();
      if (is_more && *is_more) row.error = "the query returns more than one row for this subject";
    }
    if (!is_more) return fail(is_more.error());
    return {};
  }

  Result<void> read_own(PlanRow& row) {
    const SqliteUse use(reader_, find_);
    use.bind(1, std::string_view(row.subject));
    return read_one(use, row, [&] {
      row.has_plan = use.is_true(0);
      row.plan = use.text(1, row.error);
      if (use.is_true(2)) take_override(use, 3, row);
    });
  }

  Result<void> read_theirs(PlanRow& row) {
    const SqliteUse use(reader_, find_);
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
    if (!read || !has_overrides_) return read;
    const SqliteUse instead(reader_, override_);
    instead.bind(1, std::string_view(row.subject));
    return read_one(instead, row, [&] { take_override(instead, 0, row); });
  }

  // Returns the first rows of a table after a subject.
  template <class Take>
  Result<std::vector<PlanRow>> page(const SqliteStatement& statement, std::string_view after, std::size_t most,
                                    Take take) {
    const SqliteUse use(reader_, statement);
    use.bind(1, after);
    use.bind(2, most);
    std::vector<PlanRow> rows;
    Result<bool> is_more = use.step();
    for (; is_more && *is_more; is_more = use.step()) {
      PlanRow& row = rows.emplace_back();
      row.subject = use.text(0, row.error).value_or("");
      take(use, row);
    }
    if (!is_more) {
      // A page may fail because of one row. Then not_found makes the reader ask for each subject.
      const bool is_of_row = reader_.failure() == SqliteConnection::Failure::of_row;
      return fail(is_of_row ? ErrorCode::not_found : is_more.error().code, is_more.error().message);
    }
    return rows;
  }

  // Checks for changes. A lock is an error only after it has lasted for the time-out.
  Result<Changes> look() {
    reader_.begin_without_waiting();
    if (Result<void> is = open_still(); !is) return fail(is.error());
    const Result<Files> now = files_of(reader_.file());
    if (!now) return fail(ErrorCode::unavailable, now.error().message + "; the file existed before: restore it");
    if (*now != read_) return open_again();
    const Result<std::int64_t> version = data_version();
    if (!version) {
      const bool is_locked = reader_.failure() == SqliteConnection::Failure::locked;
      if (is_locked && read_stopwatch() - last_look_ < timeout_) return Changes{};
      return fail(version.error());
    }
    last_look_ = read_stopwatch();
    if (*version == seen_version_) return Changes{};
    seen_version_ = *version;
    if (has_overrides_) return Changes{.all = true};
    reader_.begin();
    const Result<bool> has_overrides = has_table("weir_overrides");
    if (!has_overrides) return fail(has_overrides.error());
    if (*has_overrides) return open_again();
    return Changes{.all = true};
  }

  Result<std::int64_t> data_version() {
    const SqliteUse use(reader_, version_);
    const Result<bool> row = use.step();
    if (!row) return fail(row.error());
    return use.number(0);
  }

  Result<Changes> open_again() {
    reader_.begin();
    if (Result<void> opened = open_reader(); !opened) return fail(opened.error());
    return Changes{.all = true};
  }

  static Result<void> put(SqliteConnection& writer, const PlanChange& change) {
    Result<SqliteStatement> statement = writer.prepare(sql_of(change.kind));
    if (!statement) return fail(statement.error());
    const SqliteUse use(writer, *statement);
    use.bind(1, std::string_view(change.subject));
    if (change.kind == PlanChange::Kind::set_plan) use.bind(2, std::string_view(change.plan));
    if (change.kind == PlanChange::Kind::set_override) {
      use.bind(2, std::string_view(change.limits));
      use.bind(3, change.until);
    }
    if (const Result<bool> done = use.step(); !done) return fail(done.error());
    if (writer.changed_nothing()) {
      return fail(ErrorCode::not_found,
                  writer.name() + " has no row for " + base::in_quotes(change.subject) + " to remove");
    }
    return {};
  }

  const std::string query_;
  const Micros timeout_;
  SqliteConnection reader_;
  SqliteStatement find_, override_, all_, all_overrides_, version_;  // end before the connection does
  const base::Descriptor wake_;
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

}  // namespace weir::plans
