// A connection to PostgreSQL that never waits beyond a deadline, whatever the server does.
//
// It uses only the asynchronous part of libpq, and only in postgres_connection.cc. A failed statement is an answer
// with a state. An Error means that the connection is lost, and closes it. No message contains a password. One thread
// may use it. Tested by postgres_source_test.cc.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/result.h"

struct pg_conn;
struct pg_result;

namespace weir::plans {

class PostgresAnswer {
 public:
  explicit PostgresAnswer(pg_result* result) : result_(result) {}

  std::string_view state() const { return state_; }  // SQLSTATE; empty on success
  const std::string& message() const { return message_; }
  // What caused a failure: the session, so that every statement would fail; this one query; or a parameter value
  // that no row can have, because it does not fit its column's type or the database's encoding.
  enum class Blame { session, question, value };
  Blame blame() const;
  int rows() const;
  int columns() const;
  int parameters() const;              // of a described statement
  std::string name(int column) const;  // in lower case
  unsigned type(int column) const;
  std::optional<std::string_view> text(int row, int column) const;  // nothing for NULL
  bool is_true(int row, int column) const { return text(row, column) == "t"; }
  std::string_view touched() const;  // number of rows that a statement wrote

 private:
  friend class PostgresConnection;
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
  std::string state_, message_;
  bool is_of_value_ = false;
};

class PostgresConnection {
 public:
  using Parameters = std::vector<std::optional<std::string>>;

  PostgresConnection(std::string url, Micros timeout) : url_(std::move(url)), timeout_(timeout) {}
  ~PostgresConnection();
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  Result<void> read_address();                       // checks the address without connecting
  const std::string& name() const { return name_; }  // the address without its password

  // Starts the deadline for all calls until the next begin(): now plus the time-out.
  void begin() { deadline_ = read_stopwatch() + timeout_; }
  Result<void> open();
  void close();
  bool is_open() const { return connection_ != nullptr; }

  Result<PostgresAnswer> ask(const std::string& statement, const Parameters& parameters = {});
  Result<PostgresAnswer> run(const std::string& script);  // several statements, in one transaction
  Result<PostgresAnswer> prepare(const std::string& name, const std::string& statement);  // and describes it
  Result<PostgresAnswer> ask_prepared(const std::string& name, const Parameters& parameters);

  // Returns one answer for each query. All are sent before the first reply is read, and a failed one does not
  // affect the others.
  Result<std::vector<PostgresAnswer>> ask_many(const std::string& name, std::span<const Parameters> questions);

  // Waits until there is something to read, `other` is readable, or `most` is over.
  Result<void> wait(int other, Micros most);
  std::vector<std::string> take_notices();  // payloads received by NOTIFY

  // Returns what a failed answer means and how to fix it.
  Error described(const PostgresAnswer& answer) const;

 private:
  Result<void> poll_until_ready(short events);
  Result<void> flush();
  Result<pg_result*> next();  // null after a statement's last result
  Result<PostgresAnswer> answer(bool is_sent);
  void note_failure(PostgresAnswer& answer) const;
  void collect_notices();
  Error lost(std::string_view why);
  Error late();
  Error described(std::string_view state, std::string_view message) const;
  std::string scrubbed(std::string_view message) const;

  const std::string url_;
  const Micros timeout_;
  std::string name_, password_;
  bool needs_names_ = false;  // its host name needs a lookup
  pg_conn* connection_ = nullptr;
  std::chrono::nanoseconds deadline_{0};
  std::vector<std::string> notices_;
};

}  // namespace weir::plans
