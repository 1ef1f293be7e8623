// Plans in PostgreSQL: our tables, or a query over the user's, and changes reported by NOTIFY weir_plans. The payload
// is a subject, or empty if anything may have changed. Only postgres_connection.cc includes libpq.
//
// The session is read-only except while it writes. Our tables are created at most once in the life of a source. If
// they disappear later, creating them again would put all subjects back on the default plan. Tested by
// postgres_source_test.cc.
#include "plans/plan_source.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/descriptor.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "plans/postgres_connection.h"

namespace weir::plans {
namespace {

constexpr Micros kPingEvery{1'000'000};
constexpr Micros kLookAtLogEvery{250'000};                                      // where changes are noticed that way
constexpr unsigned kDate = 1082, kTimestamp = 1114, kTimestampWithZone = 1184;  // PostgreSQL's type numbers

// Many changes at once are reported as a change of everything.
constexpr const char* kMakeTelling = R"(
SELECT pg_advisory_xact_lock(7018981);
CREATE OR REPLACE FUNCTION weir_changed() RETURNS trigger LANGUAGE plpgsql AS $weir$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    PERFORM pg_notify('weir_plans', '');
  ELSIF (SELECT count(*) FROM (SELECT FROM changed LIMIT 101) AS few) > 100 THEN
    PERFORM pg_notify('weir_plans', '');
  ELSE
    PERFORM pg_notify('weir_plans', left(subject, 1024)) FROM changed;
    IF TG_OP = 'UPDATE' THEN PERFORM pg_notify('weir_plans', left(subject, 1024)) FROM before; END IF;
  END IF;
  RETURN NULL;
END $weir$;)";

std::string make_table(const std::string& table, const std::string& columns) {
  std::string sql = "CREATE TABLE IF NOT EXISTS " + table + " (" + columns + ");";
  const auto trigger = [&](const std::string& event, const std::string& tables) {
    const std::string name = "weir_tell_" + base::lower(event);
    sql += "DROP TRIGGER IF EXISTS " + name + " ON " + table + "; CREATE TRIGGER " + name + " AFTER " + event + " ON " +
           table + tables + " FOR EACH STATEMENT EXECUTE FUNCTION weir_changed();";
  };
  trigger("INSERT", " REFERENCING NEW TABLE AS changed");
  trigger("UPDATE", " REFERENCING OLD TABLE AS before NEW TABLE AS changed");
  trigger("DELETE", " REFERENCING OLD TABLE AS changed");
  trigger("TRUNCATE", "");
  return sql;
}

std::string make_plans() {
  return make_table("weir_plans",
                    "subject text COLLATE \"C\" PRIMARY KEY, plan text, updated timestamptz DEFAULT now()");
}
std::string make_overrides() {
  return make_table("weir_overrides", "subject text COLLATE \"C\" PRIMARY KEY, limits text, until timestamptz");
}

std::string array_of(std::span<const std::string> texts) {
  std::string out = "{";
  for (const std::string& text : texts) {
    out += out.size() > 1 ? ",\"" : "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  return out + "}";
}

bool has_zero_byte(const std::string& text) { return text.find('\0') != text.npos; }

// Whether PostgreSQL accepts the text. One bad text would fail the query for all subjects in it.
bool can_be_text(const std::string& text) { return !has_zero_byte(text) && base::is_utf8(text); }

// Converts a time to RFC 3339 in whole seconds; the session's time zone is UTC.
std::optional<std::string> time_text(std::optional<std::string> text, unsigned type) {
  if (!text || (type != kDate && type != kTimestamp && type != kTimestampWithZone)) return text;
  if (*text == "infinity") return std::nullopt;
  if (const std::size_t blank = text->find(' '); blank != text->npos) (*text)[blank] = 'T';
  if (const std::size_t dot = text->find('.'); dot != text->npos) {
    text->erase(dot, text->find_first_not_of("0123456789", dot + 1) - dot);
  }
  if (text->ends_with("+00")) text->replace(text->size() - 3, 3, "Z");
  if (type == kTimestamp) *text += 'Z';
  return text;
}

class PostgresSource final : public PlanSource {
 public:
  explicit PostgresSource(const PlanSourceOptions& options)
      : query_(options.query),
        timeout_(options.timeout),
        connection_(options.url, options.timeout),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  Result<void> read_address() { return connection_.read_address(); }

  Result<void> connect() override {
    connection_.begin();
    Result<void> opened = connection_.open();
    if (opened) opened = set_up();
    if (!opened) {
      connection_.close();
      return opened;
    }
    was_open_ = true;
    return {};
  }

  Result<std::vector<PlanRow>> find(std::span<const std::string> subjects) override {
    connection_.begin();
    std::vector<std::string> sound;
    for (const std::string& subject : subjects) {
      if (can_be_text(subject)) sound.push_back(subject);
    }
    return query_.empty() ? find_own(sound) : find_theirs(sound);
  }

  Result<std::vector<PlanRow>> all(std::string_view after, std::size_t most) override {
    if (!query_.empty())
      return fail(ErrorCode::not_found, "`plans.query` finds subjects only one by one, so plans cannot be listed");
    connection_.begin();
    const PostgresConnection::Parameters given = {std::string(after), std::to_string(most)};
    Result<PostgresAnswer> plans = connection_.ask_prepared("weir_all", given);
    if (Result<void> is = well_of_page(plans); !is) return fail(is.error());
    std::vector<PlanRow> rows;
    for (int i = 0; i < plans->rows(); ++i) {
      PlanRow& row =
          rows.emplace_back(PlanRow{.subject = std::string(plans->text(i, 0).value_or("")), .has_plan = true});
      row.plan = bounded(*plans, i, 1, row.error);
    }
    if (!has_overrides_) return rows;
    Result<PostgresAnswer> instead = connection_.ask_prepared("weir_all_overrides", given);
    if (Result<void> is = well_of_page(instead); !is) return fail(is.error());
    std::vector<PlanRow> overrides;
    for (int i = 0; i < instead->rows(); ++i) {
      PlanRow& row = overrides.emplace_back(PlanRow{.subject = std::string(instead->text(i, 0).value_or(""))});
      take_override(*instead, i, 1, row);
    }
    return merged_rows(std::move(rows), std::move(overrides), most);
  }

  Result<Changes> wait(Micros most) override {
    const auto end = read_stopwatch() + most;
    for (;;) {
      Result<Changes> changes = take_changes();
      if (!changes || changes->all || !changes->subjects.empty()) return changes;
      if (read_stopwatch() >= ping_at_) {
        connection_.begin();
        Result<bool> moved = ping();
        if (!moved) return fail(moved.error());
        if (*moved) return Changes{.all = true};
        continue;
      }
      const auto left = std::min(end, ping_at_) - read_stopwatch();
      const bool is_last = end <= ping_at_;
      if (Result<void> waited = connection_.wait(wake_.get(), std::chrono::ceil<Micros>(left)); !waited) {
        return fail(waited.error());
      }
      std::uint64_t times = 0;
      const bool is_woken = read(wake_.get(), &times, sizeof times) > 0;
      if (is_woken || (is_last && read_stopwatch() >= end)) return take_changes();
    }
  }

  void wake() noexcept override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t put = ::write(wake_.get(), &one, sizeof one);
  }

  Result<void> write(const PlanChange& change) override {
    if (!is_override(change) && !query_.empty()) return fail(not_ours());
    connection_.begin();
    if (Result<void> is = well(connection_.ask("RESET default_transaction_read_only")); !is) return is;
    Result<void> written = put(change);
    if (!connection_.is_open()) return written;
    if (Result<void> is = well(connection_.ask("SET default_transaction_read_only = on")); !is) return is;
    return written;
  }

 private:
  // Converts a failed statement to an error.
  Result<void> well(const Result<PostgresAnswer>& answer) const {
    if (!answer) return fail(answer.error());
    if (!answer->state().empty()) return fail(connection_.described(*answer));
    return {};
  }

  // A page may fail because of one row. Then not_found makes the reader ask for each subject.
  Result<void> well_of_page(const Result<PostgresAnswer>& answer) const {
    Result<void> is = well(answer);
    if (!is && answer && answer->blame() != PostgresAnswer::Blame::session) is.error().code = ErrorCode::not_found;
    return is;
  }

  Result<void> set_up() {
    Result<PostgresAnswer> set = connection_.run(
        "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET client_min_messages = error; SET statement_timeout = " +
        std::to_string(std::chrono::ceil<std::chrono::milliseconds>(timeout_).count()));
    if (Result<void> is = well(set); !is) return is;
    // A standby cannot LISTEN; there we watch the position of its replayed log.
    Result<PostgresAnswer> listens = connection_.ask("LISTEN weir_plans");
    if (!listens) return fail(listens.error());
    can_listen_ = listens->state().empty();
    if (Result<void> is = find_tables(); !is) return is;
    if (query_.empty() && !was_open_ && !(has_plans_ && has_overrides_ && has_triggers_)) {
      // Without the permission to create tables, the existing tables must be enough.
      Result<PostgresAnswer> made = connection_.run(kMakeTelling + make_plans() + make_overrides());
      if (!made) return fail(made.error());
      if (!made->state().empty() && !has_plans_) {
        return fail(ErrorCode::unavailable,
                    connection_.described(*made).message + "; the table weir_plans is missing and cannot be created");
      }
      if (Result<void> is = find_tables(); !is) return is;
    }
    if (query_.empty() && !has_plans_) {
      return fail(ErrorCode::unavailable, connection_.name() +
                                              " has lost its table weir_plans; restore it, or restart the server "
                                              "to create an empty one");
    }
    if (Result<void> is = well(connection_.ask("SET default_transaction_read_only = on")); !is) return is;
    if (Result<void> is = prepare_all(); !is) return is;
    seen_log_.clear();
    const Result<bool> pinged = ping();
    if (!pinged) return fail(pinged.error());
    return {};
  }

  Result<void> find_tables() {
    Result<PostgresAnswer> there = connection_.ask(
        "SELECT to_regclass('weir_plans') IS NOT NULL, to_regclass('weir_overrides') IS NOT NULL,"
        " (SELECT count(*) FROM pg_trigger WHERE tgname = 'weir_tell_truncate'"
        " AND tgrelid IN (to_regclass('weir_plans'), to_regclass('weir_overrides'))) = 2");
    if (Result<void> is = well(there); !is) return is;
    has_plans_ = there->is_true(0, 0);
    has_overrides_ = there->is_true(0, 1);
    has_triggers_ = there->is_true(0, 2);
    return {};
  }

  Result<void> prepare(const std::string& name, const std::string& statement) {
    return well(connection_.prepare(name, statement));
  }

  Result<void> prepare_all() {
    if (Result<void> is = well(connection_.ask("DEALLOCATE ALL")); !is) return is;
    if (has_overrides_) {
      if (Result<void> is =
              prepare("weir_overrides_of",
                      "SELECT subject, limits, until FROM weir_overrides WHERE subject = ANY ($1::text[])");
          !is) {
        return is;
      }
    }
    if (!query_.empty()) return prepare_query();
    const std::string overrides =
        has_overrides_ ? "weir_overrides"
                       : "(SELECT NULL::text AS subject, NULL::text AS limits, NULL::timestamptz AS until WHERE false)";
    const std::string columns =
        "SELECT s.subject, p.subject IS NOT NULL, p.plan, o.subject IS NOT NULL, o.limits, o.until FROM ";
    const std::string joined =
        " LEFT JOIN weir_plans p ON p.subject = s.subject LEFT JOIN " + overrides + " o ON o.subject = s.subject ";
    if (Result<void> is = prepare("weir_find", columns + "unnest($1::text[]) AS s(subject)" + joined +
                                                   "WHERE p.subject IS NOT NULL OR o.subject IS NOT NULL");
        !is) {
      return is;
    }
    // Sort by bytes, whatever collation the database uses.
    const std::string first = " WHERE subject COLLATE \"C\" > $1::text ORDER BY subject COLLATE \"C\" LIMIT $2::bigint";
    if (has_overrides_) {
      if (Result<void> is = prepare("weir_all_overrides", "SELECT subject, limits, until FROM weir_overrides" + first);
          !is) {
        return is;
      }
    }
    return prepare("weir_all", "SELECT subject, plan FROM weir_plans" + first);
  }

  Result<void> prepare_query() {
    const Result<PostgresAnswer> prepared = connection_.prepare("weir_query", query_);
    if (Result<void> is = well(prepared); !is) {
      return fail(is.error().code, "the query cannot be used: " + is.error().message);
    }
    parameters_ = prepared->parameters();
    if (parameters_ < 1 || parameters_ > 2 || prepared->columns() < 1) {
      return fail(ErrorCode::invalid_argument,
                  "the query must use $1 (the subject's value), may use $2 (its kind), and must return a column");
    }
    limits_column_ = until_column_ = -1;
    for (int column = 1; column < prepared->columns(); ++column) {
      if (prepared->name(column) == "limits") limits_column_ = column;
      if (prepared->name(column) == "until") until_column_ = column;
    }
    return {};
  }

  static std::optional<std::string> bounded(const PostgresAnswer& answer, int row, int column, std::string& error) {
    const std::optional<std::string_view> text = answer.text(row, column);
    if (!text) return std::nullopt;
    if (text->size() > kPlanTextMax) {
      error = "the column '" + answer.name(column) + "' has " + std::to_string(text->size()) + " bytes; at most " +
              std::to_string(kPlanTextMax) + " are allowed";
    }
    return std::string(text->substr(0, kPlanTextMax));
  }

  static void take_override(const PostgresAnswer& answer, int i, int limits, PlanRow& row) {
    row.has_override = true;
    row.limits = bounded(answer, i, limits, row.error);
    row.until = time_text(bounded(answer, i, limits + 1, row.error), answer.type(limits + 1));
  }

  static std::vector<PlanRow> own_rows(const PostgresAnswer& answer) {
    std::vector<PlanRow> rows;
    for (int i = 0; i < answer.rows(); ++i) {
      PlanRow row;
      row.subject = std::string(answer.text(i, 0).value_or(""));
      row.has_plan = answer.is_true(i, 1);
      row.plan = bounded(answer, i, 2, row.error);
      if (answer.is_true(i, 3)) take_override(answer, i, 4, row);
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::string complaint(const PostgresAnswer& answer) const { return connection_.described(answer).message; }

  // A subject whose lookup fails must not fail the others: we halve the query until that subject is alone.
  Result<std::vector<PlanRow>> find_own(std::span<const std::string> subjects) {
    if (subjects.empty()) return std::vector<PlanRow>{};
    Result<PostgresAnswer> answer = connection_.ask_prepared("weir_find", {array_of(subjects)});
    if (!answer) return fail(answer.error());
    if (answer->state().empty()) return own_rows(*answer);
    if (answer->blame() == PostgresAnswer::Blame::session) return fail(connection_.described(*answer));
    if (subjects.size() == 1) {
      std::vector<PlanRow> refused;
      if (answer->blame() == PostgresAnswer::Blame::question) {
        refused.push_back({.subject = subjects.front(), .error = complaint(*answer)});
      }
      return refused;
    }
    const std::size_t half = subjects.size() / 2;
    Result<std::vector<PlanRow>> rows = find_own(subjects.first(half));
    if (!rows) return rows;
    Result<std::vector<PlanRow>> others = find_own(subjects.subspan(half));
    if (!others) return others;
    std::ranges::move(*others, std::back_inserter(*rows));
    return rows;
  }

  Result<std::vector<PlanRow>> find_theirs(std::span<const std::string> subjects) {
    std::vector<PostgresConnection::Parameters> questions;
    for (const std::string& subject : subjects) {
      const SubjectParts parts = parts_of_subject(subject);
      PostgresConnection::Parameters& question = questions.emplace_back();
      question.emplace_back(parts.value);
      if (parameters_ == 2) question.emplace_back(parts.kind);
    }
    Result<std::vector<PostgresAnswer>> answers = connection_.ask_many("weir_query", questions);
    if (!answers) return fail(answers.error());
    std::vector<PlanRow> rows;
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      const PostgresAnswer& answer = (*answers)[i];
      PlanRow& row = rows.emplace_back(PlanRow{.subject = subjects[i]});
      if (!answer.state().empty()) {
        if (answer.blame() == PostgresAnswer::Blame::session) return fail(connection_.described(answer));
        if (answer.blame() == PostgresAnswer::Blame::question) row.error = complaint(answer);
        continue;
      }
      if (answer.rows() == 0) continue;
      if (answer.rows() > 1) row.error = "the query returns more than one row for this subject";
      row.has_plan = true;
      row.plan = bounded(answer, 0, 0, row.error);
      if (limits_column_ >= 0) row.limits = bounded(answer, 0, limits_column_, row.error);
      row.has_override = row.limits.has_value();
      if (until_column_ >= 0 && row.limits) {
        row.until = time_text(bounded(answer, 0, until_column_, row.error), answer.type(until_column_));
      }
    }
    if (has_overrides_) {
      if (Result<void> is = add_overrides(rows); !is) return fail(is.error());
    }
    std::erase_if(rows, [](const PlanRow& row) { return !row.has_plan && !row.has_override && row.error.empty(); });
    return rows;
  }

  // Overrides in our own table take precedence over those of the query.
  Result<void> add_overrides(std::span<PlanRow> rows) {
    if (rows.empty()) return {};
    std::vector<std::string> subjects;
    for (const PlanRow& row : rows) subjects.push_back(row.subject);
    Result<PostgresAnswer> answer = connection_.ask_prepared("weir_overrides_of", {array_of(subjects)});
    if (!answer) return fail(answer.error());
    if (!answer->state().empty()) {
      if (answer->blame() == PostgresAnswer::Blame::session) return fail(connection_.described(*answer));
      if (rows.size() == 1) {
        if (answer->blame() == PostgresAnswer::Blame::question) rows.front().error = complaint(*answer);
        return {};
      }
      const std::size_t half = rows.size() / 2;
      if (Result<void> is = add_overrides(rows.first(half)); !is) return is;
      return add_overrides(rows.subspan(half));
    }
    for (int i = 0; i < answer->rows(); ++i) {
      for (PlanRow& row : rows) {
        if (row.subject != answer->text(i, 0)) continue;
        take_override(*answer, i, 1, row);
      }
    }
    return {};
  }

  Result<Changes> take_changes() {
    Changes changes;
    for (std::string& subject : connection_.take_notices()) {
      if (subject.empty()) {
        changes.all = true;
      } else {
        changes.subjects.push_back(std::move(subject));
      }
    }
    if (!has_overrides_ && (changes.all || !changes.subjects.empty())) {
      connection_.begin();
      if (Result<void> is = find_tables(); !is) return fail(is.error());
      if (has_overrides_) {
        if (Result<void> is = prepare_all(); !is) return fail(is.error());
      }
    }
    return changes;
  }

  // Checks the connection. On a standby, returns whether the replayed log moved, which is the only sign of a change
  // there. Also fails if our table is gone, since NOTIFY does not report that.
  Result<bool> ping() {
    Result<PostgresAnswer> answer = connection_.ask(!can_listen_     ? "SELECT pg_last_wal_replay_lsn()"
                                                    : query_.empty() ? "SELECT NULL FROM weir_plans LIMIT 1"
                                                                     : "SELECT 1");
    if (Result<void> is = well(answer); !is) return fail(is.error());
    ping_at_ = read_stopwatch() + (can_listen_ ? kPingEvery : kLookAtLogEvery);
    if (can_listen_) return false;
    std::string log(answer->rows() > 0 ? answer->text(0, 0).value_or("") : "");
    std::swap(log, seen_log_);
    return log != seen_log_;
  }

  Result<void> put(const PlanChange& change) {
    if (is_override(change) && !has_overrides_) {
      Result<PostgresAnswer> made = connection_.run(kMakeTelling + make_overrides());
      if (Result<void> is = well(made); !is) return is;
      has_overrides_ = true;
      if (Result<void> is = prepare_all(); !is) return is;
    }
    std::string sql;
    PostgresConnection::Parameters given = {change.subject};
    switch (change.kind) {
      case PlanChange::Kind::set_plan:
        sql =
            "INSERT INTO weir_plans (subject, plan, updated) VALUES ($1, $2, now())"
            " ON CONFLICT (subject) DO UPDATE SET plan = excluded.plan, updated = excluded.updated";
        given.emplace_back(change.plan);
        break;
      case PlanChange::Kind::remove_plan:
        sql = "DELETE FROM weir_plans WHERE subject = $1";
        break;
      case PlanChange::Kind::set_override:
        sql =
            "INSERT INTO weir_overrides (subject, limits, until) VALUES ($1, $2, CASE WHEN $3::text ~ '^[0-9]+$'"
            " THEN to_timestamp($3::text::double precision) ELSE $3::text::timestamptz END)"
            " ON CONFLICT (subject) DO UPDATE SET limits = excluded.limits, until = excluded.until";
        given.emplace_back(change.limits);
        given.push_back(change.until);
        break;
      case PlanChange::Kind::remove_override:
        sql = "DELETE FROM weir_overrides WHERE subject = $1";
        break;
    }
    if (std::ranges::any_of(given, [](const auto& text) { return text && has_zero_byte(*text); })) {
      return fail(ErrorCode::invalid_argument, "PostgreSQL cannot store a text with a zero byte");
    }
    Result<PostgresAnswer> done = connection_.ask(sql, given);
    if (Result<void> is = well(done); !is) return is;
    if (done->touched() == "0") {
      return fail(ErrorCode::not_found,
                  connection_.name() + " has no row for " + base::in_quotes(change.subject) + " to remove");
    }
    return {};
  }

  const std::string query_;
  const Micros timeout_;
  PostgresConnection connection_;
  const base::Descriptor wake_;
  bool was_open_ = false, can_listen_ = false, has_plans_ = false, has_overrides_ = false, has_triggers_ = false;
  int parameters_ = 0, limits_column_ = -1, until_column_ = -1;
  std::chrono::nanoseconds ping_at_{0};
  std::string seen_log_;
};

}  // namespace

Result<std::unique_ptr<PlanSource>> make_postgres_source(const PlanSourceOptions& options) {
  auto source = std::make_unique<PostgresSource>(options);
  if (Result<void> right = source->read_address(); !right) return fail(right.error());
  return source;
}

}  // namespace weir::plans
