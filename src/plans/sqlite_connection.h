// A connection to a file of SQLite that never waits beyond a deadline: not for a lock of another program, and not for
// a query that takes too long.
//
// The library is seen in sqlite_connection.cc only. What goes wrong is told with the name of the file and what helps.
// One thread. Tested by sqlite_source_test.cc.
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

namespace weir {

class SqliteConnection;

class SqliteStatement {
 public:
  SqliteStatement() = default;
  explicit SqliteStatement(sqlite3_stmt* statement) : statement_(statement) {}

  bool is_there() const { return statement_ != nullptr; }
  void drop() { statement_.reset(); }
  bool only_reads() const;
  int columns() const;
  std::string column_name(int column) const;  // in small letters
  int parameters() const;
  int parameter(const char* name) const;  // its place; 0: it has none of this name
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
  enum class Access { read, write, make };  // make: a file that is not there, for its owner alone

  SqliteConnection(std::string file, Micros patience) : file_(std::move(file)), patience_(patience) {}

  // The deadline of all calls until the next of these: the patience from now on. The second does not wait for locks.
  void begin() {
    deadline_ = read_stopwatch() + patience_;
    waits_for_locks_ = true;
  }
  void begin_without_waiting() {
    begin();
    waits_for_locks_ = false;
  }

  Result<void> open(Access access);
  void close() { connection_.reset(); }  // after its statements
  bool is_open() const { return connection_ != nullptr; }
  Result<void> run(const char* sql);
  Result<SqliteStatement> prepare(const std::string& sql);  // of one statement
  bool changed_nothing() const;                             // by the last one

  std::string name() const { return "sqlite:" + file_; }
  const std::string& file() const { return file_; }

  // What the last error was.
  enum class Failure { other, locked, cannot_open, of_row };  // of_row: the next question may do well
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
  const Micros patience_;
  std::chrono::nanoseconds deadline_{0};
  bool waits_for_locks_ = true;
  std::unique_ptr<sqlite3, Close> connection_;
  Failure failure_ = Failure::other;
};

// A statement in use: whatever happens, it gives up its lock at the end.
class SqliteUse {
 public:
  SqliteUse(SqliteConnection& connection, const SqliteStatement& statement)
      : connection_(connection), statement_(statement.statement_.get()) {}
  ~SqliteUse();
  SqliteUse(const SqliteUse&) = delete;
  SqliteUse& operator=(const SqliteUse&) = delete;

  // The text must live until the end of the use. A place that the statement does not have is nobody's mistake.
  void bind(int place, std::string_view text) const;
  void bind(int place, const std::optional<std::string>& text) const;
  void bind(int place, std::size_t number) const;

  Result<bool> step() const;  // whether there is a row
  bool is_true(int column) const { return number(column) != 0; }
  std::int64_t number(int column) const;

  // Nothing for NULL. What is too long to be meant is cut, and said in `error`.
  std::optional<std::string> text(int column, std::string& error) const;

 private:
  SqliteConnection& connection_;
  sqlite3_stmt* const statement_;
};

}  // namespace weir
