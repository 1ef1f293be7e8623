// A connection to a SQLite file that never waits beyond a deadline: neither for another program's lock, nor for a
// slow query.
//
// Only sqlite_connection.cc includes SQLite. Errors name the file and the fix. One thread may use it. Tested by
// sqlite_source_test.cc.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/clock.h"
#include "weir/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace weir::plans {

class SqliteConnection;

class SqliteStatement {
 public:
  SqliteStatement() = default;
  explicit SqliteStatement(sqlite3_stmt* statement) : statement_(statement) {}

  bool is_there() const { return statement_ != nullptr; }
  void drop() { statement_.reset(); }
  bool only_reads() const;
  int columns() const;
  std::string column_name(int column) const;  // in lower case
  int parameters() const;
  int parameter(const char* name) const;  // index of a parameter; 0 if the statement does not have it
  std::string parameter_name(int place) const;

 private:
  friend class SqliteUse;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class SqliteConnection {
 public:
  enum class Access { read, write, make };  // make: create a missing file with access for its owner only

  SqliteConnection(std::string file, Micros timeout) : file_(std::move(file)), timeout_(timeout) {}

  // Start the deadline for all calls until the next of these: now plus the time-out. The second does not wait for
  // locks.
  void begin() {
    deadline_ = read_stopwatch() + timeout_;
    waits_for_locks_ = true;
  }
  void begin_without_waiting() {
    begin();
    waits_for_locks_ = false;
  }

  Result<void> open(Access access);
  void close() { connection_.reset(); }  // close its statements first
  bool is_open() const { return connection_ != nullptr; }
  Result<void> run(const char* sql);
  Result<SqliteStatement> prepare(const std::string& sql);  // one statement only
  bool changed_nothing() const;                             // whether the last statement changed no row

  std::string name() const { return "sqlite:" + file_; }
  const std::string& file() const { return file_; }

  // The kind of the last error.
  enum class Failure { other, locked, cannot_open, of_row };  // of_row: the next query may succeed
  Failure failure() const { return failure_; }

 private:
  friend class SqliteUse;
  Error described(int code);
  static int wait_for_lock(void* self, int times);
  static int stop_if_late(void* self);

  struct Close {
    void operator()(sqlite3* connection) const;
  };
  const std::string file_;
  const Micros timeout_;
  std::chrono::nanoseconds deadline_{0};
  bool waits_for_locks_ = true;
  std::unique_ptr<sqlite3, Close> connection_;
  Failure failure_ = Failure::other;
};

// A statement in use. Its destructor resets the statement, which releases its lock.
class SqliteUse {
 public:
  SqliteUse(SqliteConnection& connection, const SqliteStatement& statement)
      : connection_(connection), statement_(statement.statement_.get()) {}
  ~SqliteUse();
  SqliteUse(const SqliteUse&) = delete;
  SqliteUse& operator=(const SqliteUse&) = delete;

  // The text must live as long as this object. Place 0, a parameter that the statement lacks, is ignored.
  void bind(int place, std::string_view text) const;
  void bind(int place, const std::optional<std::string>& text) const;
  void bind(int place, std::size_t number) const;

  Result<bool> step() const;  // true if there is a row
  bool is_true(int column) const { return number(column) != 0; }
  std::int64_t number(int column) const;

  // Returns nothing for NULL. A text that is too long is truncated, and `error` is set.
  std::optional<std::string> text(int column, std::string& error) const;

 private:
  SqliteConnection& connection_;
  sqlite3_stmt* const statement_;
};

}  // namespace weir::plans
