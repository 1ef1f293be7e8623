// A connection to PostgreSQL that never waits beyond a deadline, whatever the server does.
//
// libpq is used by its asynchronous half only, and only in postgres_connection.cc. A statement that fails is an answer
// with a state; an Error means that the connection is lost, and it is closed then. No password is ever in a message.
// One thread. Tested by postgres_source_test.cc.
#pragma once

#include <chrono>
#include <cstddef>
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

namespace weir {

class PostgresAnswer {
 public:
  explicit PostgresAnswer(pg_result* result) : result_(result) {}

  std::string_view state() const { return state_; }  // SQLSTATE; empty if all is well
  const std::string& message() const { return message_; }
  // What a failure is about: all that is asked of this session, the one question, or a value that was given with the
  // question and that no row can have, being none in its column's type or in the database's encoding.
  enum class Blame { session, question, value };
  Blame blame() const;
  int rows() const;
  int columns() const;
  int parameters() const;              // of a statement that was described
  std::string name(int column) const;  // in small letters
  unsigned type(int column) const;
  std::optional<std::string_view> text(int row, int column) const;  // nothing for NULL
  bool is_true(int row, int column) const { return text(row, column) == "t"; }
  std::string_view touched() const;  // how many rows a statement has written

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

  PostgresConnection(std::string url, Micros patience) : url_(std::move(url)), patience_(patience) {}
  ~PostgresConnection();
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  Result<void> read_address();                       // whether the text of the address is right; nothing is opened
  const std::string& name() const { return name_; }  // the address without its password

  // The deadline of all calls until the next begin() is the patience from now on.
  void begin() { deadline_ = read_stopwatch() + patience_; }
  Result<void> open();
  void close();
  bool is_open() const { return connection_ != nullptr; }

  Result<PostgresAnswer> ask(const std::string& statement, const Parameters& parameters = {});
  Result<PostgresAnswer> run(const std::string& script);  // several statements, in one transaction
  Result<PostgresAnswer> prepare(const std::string& name, const std::string& statement);  // and describes it
  Result<PostgresAnswer> ask_prepared(const std::string& name, const Parameters& parameters);

  // One answer for each, all questions being sent before the first is waited for; one that fails leaves the others.
  Result<std::vector<PostgresAnswer>> ask_many(const std::string& name, std::span<const Parameters> questions);

  // Until there is something to read, the other descriptor is readable or so much time is over.
  Result<void> wait(int other, Micros most);
  std::vector<std::string> take_notices();  // the payloads that NOTIFY brought

  // What an answer that failed means, and what helps.
  Error described(const PostgresAnswer& answer) const;

 private:
  Result<void> poll_until_ready(short events);
  Result<void> flush();
  Result<pg_result*> next();  // null at the end of a statement's answers
  Result<PostgresAnswer> answer();
  void note_failure(PostgresAnswer& answer) const;
  void collect_notices();
  Error lost(std::string_view why);
  Error late();
  Error described(std::string_view state, std::string_view message) const;
  std::string scrubbed(std::string_view message) const;

  const std::string url_;
  const Micros patience_;
  std::string name_, password_;
  bool needs_names_ = false;  // its host has to be looked up
  pg_conn* connection_ = nullptr;
  std::chrono::nanoseconds deadline_{0};
  std::vector<std::string> notices_;
};

}  // namespace weir
