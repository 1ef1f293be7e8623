// The conversation of a fiber session, which may outlive the session while a fiber works on it. See fiber_session.h.
#include "server/loop/fiber_session.h"

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace weir::server::loop {
namespace {

constexpr std::size_t kCapacityKept = std::size_t{16} << 10;

// Owned by its session or, after that is destroyed, by the fiber that works on it.
class Conversation final : public FiberTask {
 public:
  Conversation(ContextPool& pool, std::unique_ptr<Session> inner) : pool_(pool), inner_(std::move(inner)) {}
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  enum class State : std::uint8_t {
    rests,
    in_flight,  // on a fiber, or waiting for one
    ended,      // but not collected yet
  };

  State state() const { return state_; }
  const Session& inner() const { return *inner_; }
  std::size_t held() const { return in_.size() + out_.size() + inner_->held(); }
  SessionOwner* owner = nullptr;

  void add(std::string_view input) {
    in_.append(input);
    has_news_ = has_news_ || !input.empty();
  }
  bool has_news() const { return has_news_; }
  void drop_input() { base::free_memory(in_); }

  // The next start() first does this.
  void plan_wake(Micros now) {
    is_due_ = true;
    due_now_ = now;
  }
  void plan_drain() { drains_ = true; }

  // Begins; if nothing has to wait, it also ends.
  void start(bool sheds) {
    WEIR_ASSERT(state_ == State::rests);
    sheds_ = sheds;
    begin();
    if (!pool_.tasks.start(*this)) go_without();
    is_at_once_ = false;
  }

  // The session is gone: releases what the inner one has acquired, and deletes this object.
  void leave() noexcept {
    is_left_ = true;
    owner = nullptr;
    if (state_ == State::in_flight) return;
    if (!inner_->is_holding()) {
      delete this;
      return;
    }
    begin();
    pool_.tasks.start_or_wait(*this);
  }

  // Appends the answers, and rethrows an exception.
  void collect(std::string& output) {
    WEIR_ASSERT(state_ == State::ended);
    state_ = State::rests;
    output.append(out_);
    base::empty_out(out_, kCapacityKept);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }
  // The progress since the last call, with the current phase.
  Progress take_progress() { return std::exchange(progress_, {.phase = progress_.phase}); }

  void give_up(GiveUp why, std::string& output) {
    WEIR_ASSERT(state_ == State::rests);
    inner_->give_up(why, output);
  }
  void drain_at_rest(std::string& output) {
    WEIR_ASSERT(state_ == State::rests);
    inner_->drain(output);
  }

  void run() noexcept override {
    std::unique_ptr<RequestContext> context;
    try {
      context = pool_.take();
      inner_->use_context(*context);
      work(context->turn);
    } catch (...) {
      error_ = std::current_exception();
    }
    if (is_left_) inner_.reset();
    if (context != nullptr && inner_ != nullptr) inner_->use_context(pool_.home());
    if (!error_ && context != nullptr) pool_.give(std::move(context));
    if (is_left_ && inner_ == nullptr) {
      delete this;
      return;
    }
    end();
  }

 private:
  void begin() {
    state_ = State::in_flight;
    is_at_once_ = true;
    has_news_ = false;
  }

  // If this is not within start(), the owner must be notified.
  void end() {
    state_ = State::ended;
    if (!is_at_once_ && owner != nullptr) owner->on_ready();
  }

  void go_without() {
    if (pool_.without_fiber == WithoutFiber::wait || drains_ || is_due_) {
      return pool_.tasks.start_or_wait(*this);
    }
    Turn& turn = pool_.home().turn;
    turn.clear();  // left over after an exception
    turn.begin();
    turn.refuse_all();
    try {
      converse(turn);
    } catch (...) {
      error_ = std::current_exception();
    }
    end();
  }

  // While this waits, the client may leave and the server may begin to stop.
  void work(Turn& turn) {
    turn.begin();
    turn.set_shedding(sheds_);
    do {
      if (!is_left_ && std::exchange(is_due_, false)) inner_->wake(due_now_, out_);
      if (!is_left_ && std::exchange(drains_, false)) inner_->drain(out_);
      if (!is_left_ && !inner_->is_holding() && !progress_.close) converse(turn);
    } while (drains_ && !is_left_);
  }

  void converse(Turn& turn) {
    std::size_t used = 0;
    bool goes_on = true;
    while (goes_on) {
      const Progress step = inner_->consume(std::string_view(in_).substr(used), turn, out_);
      used += step.consumed;
      progress_.add(step);
      if (step.asked) {
        turn.decide();
        progress_.close = inner_->settle(turn, out_) || progress_.close;
        turn.clear();
      }
      goes_on = step.asked && !progress_.close && !is_left_ && !inner_->is_holding();
    }
    if (progress_.close) used = in_.size();  // input after the last answer is dropped
    in_.erase(0, used);
    if (in_.empty()) base::empty_out(in_, kCapacityKept);
  }

  ContextPool& pool_;
  std::unique_ptr<Session> inner_;
  std::string in_;   // not consumed by the inner session
  std::string out_;  // since the last collect()
  Progress progress_;
  std::exception_ptr error_;
  State state_ = State::rests;
  Micros due_now_{0};
  bool is_due_ = false;      // wake the inner session
  bool drains_ = false;      // then drain it
  bool sheds_ = false;       // new requests are not decided
  bool has_news_ = false;    // input has arrived since the last begin()
  bool is_at_once_ = false;  // within start(), whose caller collects
  bool is_left_ = false;
};

class FiberSession final : public Session {
 public:
  FiberSession(ContextPool& pool, std::unique_ptr<Session> inner)
      : pool_(pool), talk_(new Conversation(pool, std::move(inner))) {}
  FiberSession(const FiberSession&) = delete;
  FiberSession& operator=(const FiberSession&) = delete;
  ~FiberSession() override { talk_->leave(); }

  void set_owner(SessionOwner* owner) override { talk_->owner = owner; }

  Progress consume(std::string_view input, Turn& turn, std::string& output) override {
    Progress progress = talk_->take_progress();
    if (is_busy()) return progress;
    talk_->add(input);
    progress.consumed = input.size();
    if (!is_holding() && !progress.close && !progress.full && (talk_->has_news() || was_full_)) {
      talk_->start(turn.sheds());
      collect(output);
      if (!is_busy()) progress.add(talk_->take_progress());
    }
    was_full_ = progress.full;
    return progress;
  }

  Micros due() const override { return is_busy() ? kNever : talk_->inner().due(); }
  bool is_holding() const override { return is_busy() || talk_->inner().is_holding(); }

  void wake(Micros now, std::string& output) override {
    if (!is_busy() && talk_->inner().due() <= now) {
      talk_->plan_wake(now);
      talk_->start(false);
    }
    collect(output);
  }

  void drain(std::string& output) override {
    collect(output);
    if (talk_->state() == Conversation::State::in_flight) return talk_->plan_drain();
    if (!talk_->inner().is_holding()) return talk_->drain_at_rest(output);
    talk_->plan_drain();
    talk_->start(false);
    collect(output);
  }
  bool is_drained() const override { return !is_busy() && talk_->inner().is_drained(); }

  void give_up(GiveUp why, std::string& output) override {
    if (is_busy()) return pool_.home().write_last_words(why, output);
    talk_->give_up(why, output);
    talk_->drop_input();
  }

  std::size_t held() const override { return talk_->held(); }

 private:
  bool is_busy() const { return talk_->state() != Conversation::State::rests; }
  void collect(std::string& output) {
    if (talk_->state() == Conversation::State::ended) talk_->collect(output);
  }

  ContextPool& pool_;
  Conversation* const talk_;  // deletes itself after leave()
  bool was_full_ = false;
};

}  // namespace

std::unique_ptr<Session> make_fiber_session(ContextPool& pool, std::unique_ptr<Session> inner) {
  return std::make_unique<FiberSession>(pool, std::move(inner));
}

}  // namespace weir::server::loop
