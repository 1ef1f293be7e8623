// Tests sessions on fibers with a store that makes every call wait: the answers must equal those without waiting.
//
// Many sessions of both protocols are in flight at once, in random order, and some clients leave.
#include "server/loop/fiber_session.h"

#include <deque>
#include <new>
#include <optional>
#include <vector>

#include "log/log.h"
#include "resp/writer.h"
#include "sanitized.h"
#include "server/http/http_session_fixture.h"
#include "server/resp/resp_session.h"
#include "slow_store.h"

namespace weir::server {
namespace {

constexpr Micros kStart{1'794'747'404'000'000};
constexpr std::string_view kRules = R"(
rules:
  - {name: each, per: user, limit: 3/minute, algorithm: fixed_window}
  - {name: dear, match: {path: /dear}, per: user, limit: 2/hour, count_denied: true}
  - {name: seen, per: user, limit: 1/minute, mode: shadow}
  - {name: slow, match: {path: /slow}, per: ip, limit: 1/s burst 5, algorithm: leaky_bucket}
)";

// A limiter with rules, and what the listeners of a loop share.
struct World {
  explicit World(test::SlowStore& store)
      : limiter({.clock = clock, .keys = 10'000, .sweeping = Sweeping::by_hand, .shared = store.store()}) {
    EXPECT_TRUE(gate.apply(*parse_policy(kRules, "test.yaml"), Force::yes));
    http.bounds.counts = resp.bounds.counts = &counts;
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(kStart);
  Limiter limiter;
  Gate gate{limiter};
  loop::ListenerCounts counts;
  http::HttpService http{.limiter = limiter, .gate = &gate};
  resp::RespService resp{.limiter = limiter, .gate = &gate, .version = "1"};
};

// A session, driven as a connection drives it, without the socket.
class Peer final : private loop::SessionOwner {
 public:
  Peer(World& world, std::unique_ptr<loop::Session> made)
      : world_(world), turn_(world.limiter), session(std::move(made)) {
    session->set_owner(this);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() = default;

  bool is_waiting() const { return session->is_holding() && session->due() == kNever; }
  bool takes_input() const { return !session->is_holding() && !is_closing; }

  void feed(std::string_view bytes) {
    rest_.append(bytes);
    consume();
  }
  // Wakes the session if its answer has come.
  bool wake_if_ready() {
    if (!std::exchange(is_ready_, false)) return false;
    wake();
    return true;
  }
  void wake() {
    session->wake(world_.limiter.now(), output);
    if (takes_input()) consume();
  }

 private:
  World& world_;
  loop::Turn turn_;
  std::string rest_;
  bool is_ready_ = false;

  void on_ready() override { is_ready_ = true; }
  void consume() {
    bool again = true;
    while (again) {
      const loop::Progress progress = session->consume(rest_, turn_, output);
      rest_.erase(0, progress.consumed);
      answered += progress.answered;
      is_closing = is_closing || progress.close;
      again = progress.full;
    }
  }

 public:
  std::string output;
  std::size_t answered = 0;
  bool is_closing = false;
  std::unique_ptr<loop::Session> session;
};

class FiberSessions : public testing::Test, protected http::HttpTexts {
 protected:
  void use(const base::FiberOptions& options, loop::WithoutFiber without = loop::WithoutFiber::shed) {
    http_contexts.reset();
    resp_contexts.reset();
    tasks.reset();
    fibers.emplace(options);
    tasks.emplace(*fibers);
    http_contexts.emplace(
        *tasks, [this] { return std::make_unique<http::HttpContext>(world.http); }, without);
    resp_contexts.emplace(
        *tasks, [this] { return std::make_unique<resp::RespContext>(world.resp); }, without);
  }
  FiberSessions() { use({}); }

  std::unique_ptr<Peer> http() { return std::make_unique<Peer>(world, http::make_http_session(*http_contexts)); }
  std::unique_ptr<Peer> resp() { return std::make_unique<Peer>(world, resp::make_resp_session(*resp_contexts, 1)); }

  // A client whose request the leaky bucket may delay; its calls are answered.
  std::unique_ptr<Peer> slow() {
    auto peer = http();
    peer->feed(request("GET", "/auth", "", "X-Forwarded-Uri: /slow\r\n"));
    store.answer_all();
    peer->wake_if_ready();
    return peer;
  }

  static std::string check(std::string_view user, std::string_view fields = "") {
    return request("POST", "/v1/check", R"({"user":")" + std::string(user) + R"("})", fields);
  }

  test::SlowStore store;
  World world{store};
  std::optional<base::Fibers> fibers;
  std::optional<loop::FiberTasks> tasks;
  std::optional<loop::ContextPool> http_contexts, resp_contexts;
};

TEST_F(FiberSessions, AnswerAtOnceIfNothingWaits) {
  store.hurry();
  auto peer = http();
  peer->feed(check("a") + check("a"));
  EXPECT_FALSE(peer->session->is_holding());
  EXPECT_EQ(peer->answered, 2U);
  EXPECT_TRUE(has(peer->output, "\"remaining\":1"));
  EXPECT_FALSE(peer->wake_if_ready()) << "on_ready() is not called for an answer that did not wait";
}

TEST_F(FiberSessions, HoldUntilTheStoreAnswers) {
  auto peer = http();
  peer->feed(check("a"));
  EXPECT_TRUE(peer->session->is_holding());
  EXPECT_EQ(peer->session->due(), kNever);
  EXPECT_EQ(peer->output, "");
  EXPECT_FALSE(peer->wake_if_ready());
  while (store.waiting() > 0) store.answer(0);
  EXPECT_TRUE(peer->session->is_holding()) << "until wake() is called";
  EXPECT_TRUE(peer->wake_if_ready());
  EXPECT_FALSE(peer->session->is_holding());
  EXPECT_TRUE(peer->output.starts_with("HTTP/1.1 200 OK")) << peer->output;
  EXPECT_EQ(peer->answered, 1U);
  EXPECT_EQ(fibers->in_flight(), 0U);
}

// A random request of one client.
std::string random_http(std::mt19937_64& random, const std::string& who) {
  const auto post = [](std::string_view path, const std::string& body) {
    return http::HttpTexts::request("POST", path, body, "X-Request-Id: " + body.substr(2, 4) + "\r\n");
  };
  const std::string user = R"({"user":")" + who + R"(")";
  switch (test::pick(random, 0, 9)) {
    case 0:
      return post("/v1/check", user + "}");
    case 1:
      return post("/v1/check", user + R"(,"path":"/dear"})");
    case 2:
      return post("/v1/check", R"({"key":")" + who + R"(","limit":"2/minute"})");
    case 3:
      return post("/v1/checks", R"({"checks":[{"key":")" + who + R"(","limit":"5/day"},)" + user + R"(},{"key":"x")" +
                                    R"(},{"key":")" + who + R"(","limit":"5/day"}]})");
    case 4:
      return post("/json", R"({"domain":"d","descriptors":[{"entries":[{"key":"user","value":")" + who + R"("}]}]})");
    case 5:
      return post("/v1/check", R"({"key":")" + who + R"(","limit":"9/hour","id":"one"})");
    case 6:
      return post("/v1/reserve", R"({"key":")" + who + R"(r","limit":"3/day","id":"r)" + who + "\"}");
    case 7:
      return "DELETE /v1/keys?key=" + who + " HTTP/1.1\r\nHost: x\r\n\r\n";
    case 8:
      return "GET /auth HTTP/1.1\r\nHost: x\r\nX-User: " + who + "\r\n\r\n";
    default:
      return "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
  }
}

std::string random_resp(std::mt19937_64& random, const std::string& who) {
  switch (test::pick(random, 0, 7)) {
    case 0:
    case 1: {
      std::string out;
      weir::resp::append_command(out, std::vector<std::string_view>{"CL.THROTTLE", who, "2", "5", "60"});
      return out;
    }
    case 2:
      return "WEIR.LIMIT " + who + " 4/minute\r\n";
    case 3:
      return "WEIR.CHECK user " + who + "\r\n";
    case 4:
      return "WEIR.LIMIT " + who + "i 4/minute ID x\r\n";
    case 5:
      return "DEL " + who + "\r\n";
    case 6:
      return "THROTTLE " + who + " 3 10 60 2\r\n";
    default:
      return "PING\r\n";
  }
}

// One connection's input, and the answers of a session without fibers.
struct Script {
  std::string bytes;
  std::string expected;
};

Script random_script(std::mt19937_64& random, World& world, bool is_http, const std::string& who) {
  Script script;
  const std::int64_t requests = test::pick(random, 1, 12);
  for (std::int64_t i = 0; i < requests; ++i) {
    script.bytes += is_http ? random_http(random, who) : random_resp(random, who);
  }
  const auto session = is_http ? http::make_http_session(world.http) : resp::make_resp_session(world.resp, 1);
  loop::SessionPlayer player(*session, world.limiter);
  player.feed(script.bytes);
  script.expected = player.take();
  return script;
}

struct Talk {
  Script script;
  std::unique_ptr<Peer> peer;
  std::size_t said = 0;
  bool leaves = false;  // before the end
};

// Many at once, in random order: a peer sends a piece, a call is answered, a ready session is woken, a client leaves.
class ManyAtOnce : public FiberSessions {
 protected:
  static constexpr std::size_t kMany = test::kIsSanitized ? 60 : 300;

  void run(std::int64_t leaving_percent) {
    auto random = test::seeded();
    test::SlowStore at_once;
    World apart{at_once};  // gives the same answers without fibers
    for (std::size_t i = 0; i < kMany; ++i) {
      const bool is_http = test::pick(random, 0, 1) == 0;
      const std::string who = "u" + std::to_string(i);
      talks.push_back({random_script(random, apart, is_http, who), is_http ? http() : resp(), 0,
                       test::pick(random, 0, 99) < leaving_percent});
    }
    while (!talks.empty() || store.waiting() > 0) step(random);
    EXPECT_EQ(fibers->in_flight(), 0U);
    EXPECT_GT(store.calls(), kMany / 2);
    EXPECT_GT(most_waiting, 10U);
  }

  void step(std::mt19937_64& random) {
    most_waiting = std::max(most_waiting, store.waiting());
    if (store.waiting() > 0 && (talks.empty() || test::pick(random, 0, 2) == 0)) store.answer_one(random);
    if (talks.empty()) return;
    const auto place = static_cast<std::size_t>(test::pick(random, 0, static_cast<std::int64_t>(talks.size()) - 1));
    Talk& talk = talks[place];
    talk.peer->wake_if_ready();
    if (talk.leaves && talk.said > 0 && test::pick(random, 0, 5) == 0) {
      talks.erase(talks.begin() + static_cast<std::ptrdiff_t>(place));
    } else if (talk.peer->takes_input() && talk.said < talk.script.bytes.size()) {
      const std::string piece = talk.script.bytes.substr(
          talk.said, static_cast<std::size_t>(test::pick(random, 1, test::pick(random, 0, 1) == 0 ? 20 : 5'000)));
      talk.said += piece.size();
      talk.peer->feed(piece);
    } else if (talk.said == talk.script.bytes.size() && !talk.peer->session->is_holding()) {
      EXPECT_EQ(talk.peer->output, talk.script.expected) << talk.script.bytes;
      talks.erase(talks.begin() + static_cast<std::ptrdiff_t>(place));
    }
  }

  std::deque<Talk> talks;
  std::size_t most_waiting = 0;
};

TEST_F(ManyAtOnce, AreAnsweredAsIfNothingWaited) { run(0); }
TEST_F(ManyAtOnce, MayDisconnectAtAnyTime) { run(60); }
TEST_F(ManyAtOnce, AreAnsweredOnAFewFibersIfTheyMayWaitForAFiber) {
  use({.most = 12}, loop::WithoutFiber::wait);
  run(20);
}

TEST_F(FiberSessions, LiveUntilTheirFiberHasEnded) {
  auto peer = http();
  peer->feed(check("a") + check("a"));
  peer.reset();
  EXPECT_EQ(fibers->in_flight(), 1U);
  store.answer_all();
  EXPECT_EQ(fibers->in_flight(), 0U);
}

TEST_F(FiberSessions, RefundOnAFiberWhenTheClientDisconnects) {
  EXPECT_TRUE(has(slow()->output, "200 OK"));
  auto held = slow();
  EXPECT_TRUE(held->session->is_holding());
  EXPECT_EQ(held->session->due(), kStart + Micros{1'000'000});
  EXPECT_EQ(world.http.holds, 1U);
  held.reset();
  EXPECT_EQ(fibers->in_flight(), 1U);
  store.answer_all();
  EXPECT_EQ(fibers->in_flight(), 0U);
  EXPECT_EQ(world.http.holds, 0U);
  auto next = slow();
  EXPECT_EQ(next->session->due(), kStart + Micros{1'000'000}) << "the place is free again";
  world.clock->advance(Micros{1'000'000});
  next->wake();
  EXPECT_TRUE(has(next->output, "200 OK"));
}

TEST_F(FiberSessions, RefundOnceAFiberIsFree) {
  use({.most = 1});
  auto first = slow(), second = slow(), other = http();
  ASSERT_TRUE(second->session->is_holding());
  other->feed(check("b"));
  ASSERT_EQ(fibers->in_flight(), 1U);
  second.reset();
  EXPECT_EQ(world.http.holds, 1U);
  store.answer_all();
  EXPECT_EQ(world.http.holds, 0U);
  EXPECT_EQ(fibers->in_flight(), 0U);
  EXPECT_TRUE(other->wake_if_ready());
}

TEST_F(FiberSessions, AreDrainedOnceTheAnswerIsWritten) {
  auto peer = http();
  peer->feed(check("a"));
  peer->session->drain(peer->output);
  EXPECT_FALSE(peer->session->is_drained());
  store.answer_all();
  EXPECT_FALSE(peer->session->is_drained()) << "the answer is not written yet";
  peer->wake_if_ready();
  EXPECT_TRUE(has(peer->output, "200 OK"));
  EXPECT_TRUE(peer->session->is_drained());
  peer->feed(check("a"));
  store.answer_all();
  peer->wake_if_ready();
  EXPECT_TRUE(has(peer->output, "Connection: close")) << peer->output;
  EXPECT_TRUE(peer->is_closing);
}

TEST_F(FiberSessions, ReleaseDelayedAnswersWhenTheServerStops) {
  auto first = slow(), held = slow();
  ASSERT_TRUE(held->session->is_holding());
  held->session->drain(held->output);
  EXPECT_FALSE(held->session->is_holding());
  EXPECT_TRUE(has(held->output, "200 OK"));
}

TEST_F(FiberSessions, ShedRequestsWhenNoFiberIsFree) {
  use({.most = 2});
  auto first = http(), second = resp(), third = http(), fourth = resp();
  first->feed(check("a"));
  second->feed("WEIR.CHECK user b\r\n");
  third->feed(check("c"));
  EXPECT_TRUE(has(third->output, "503 Service Unavailable") && has(third->output, "X-Weir-Overload: denied"));
  third->feed(request("GET", "/livez"));
  EXPECT_TRUE(third->output.ends_with("ok\n"));
  third->output.clear();
  third->feed(request("DELETE", "/v1/keys?key=c"));
  EXPECT_TRUE(has(third->output, "503")) << third->output;
  fourth->feed("PING\r\nCL.THROTTLE k 1 1 60\r\nDEL k\r\n");
  EXPECT_TRUE(fourth->output.starts_with("+PONG\r\n*5\r\n:1\r\n:0\r\n")) << fourth->output;
  EXPECT_TRUE(has(fourth->output, "-ERR server overloaded; request not evaluated")) << fourth->output;
  EXPECT_EQ(world.counts.count(loop::Refused::overload), 4U);
  EXPECT_EQ(store.calls(), 2U);
  store.answer_all();
  EXPECT_TRUE(first->wake_if_ready() && second->wake_if_ready());
  third->feed(check("c"));
  EXPECT_TRUE(third->is_waiting()) << "a fiber is free again";
  store.answer_all();
}

TEST_F(FiberSessions, WaitForAFiberIfTheyMustNotBeShed) {
  use({.most = 1}, loop::WithoutFiber::wait);
  auto first = http(), second = http(), third = http();
  first->feed(check("a"));
  second->feed(check("a"));
  third->feed(request("GET", "/livez"));
  EXPECT_TRUE(second->is_waiting() && third->is_waiting());
  EXPECT_EQ(store.waiting(), 1U);
  third.reset();
  store.answer_all();
  EXPECT_TRUE(first->wake_if_ready() && second->wake_if_ready());
  EXPECT_TRUE(has(first->output, "\"remaining\":2"));
  EXPECT_TRUE(has(second->output, "\"remaining\":1"));
}

TEST_F(FiberSessions, WriteALastAnswerWhileTheyWait) {
  auto one = http();
  one->feed(check("a"));
  one->session->give_up(loop::GiveUp::no_memory, one->output);
  EXPECT_TRUE(one->output.starts_with("HTTP/1.1 503 ")) << one->output;
  auto other = resp();
  other->feed("WEIR.CHECK user b\r\n");
  other->session->give_up(loop::GiveUp::no_memory, other->output);
  EXPECT_TRUE(other->output.starts_with("-ERR all connections")) << other->output;
  store.answer_all();
}

TEST_F(FiberSessions, CountBytesThatTheyKeepWhileTheyWait) {
  auto peer = resp();
  const std::string bytes = "WEIR.CHECK user b\r\n" + std::string(1'000, 'x');
  peer->feed(bytes);
  EXPECT_GE(peer->session->held(), bytes.size());
  store.answer_all();
  peer->wake_if_ready();
  EXPECT_GE(peer->session->held(), 1'000U) << "a request that has begun";
  EXPECT_LT(peer->session->held(), bytes.size());
}

TEST_F(FiberSessions, LogEveryDenialWithItsOwnRequest) {
  observe::DenialLog log({.per_second = 100, .in_clear = true}, world.limiter);
  log::set_log_level(log::LogLevel::info);
  world.http.denials = {&log, &world.gate, "http"};
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 8; ++i) {
    peers.push_back(http());
    const std::string body = R"({"user":"u)" + std::to_string(i) + R"(","cost":4})";
    peers.back()->feed(request("POST", "/v1/check", body, "X-Request-Id: id-" + std::to_string(i) + "\r\n"));
  }
  EXPECT_EQ(store.waiting(), 8U);
  auto random = test::seeded();
  testing::internal::CaptureStderr();
  while (store.waiting() > 0) store.answer_one(random);
  const std::string lines = testing::internal::GetCapturedStderr();
  for (int i = 0; i < 8; ++i) {
    const std::string id = "id-" + std::to_string(i);
    const std::size_t at = lines.find(id);
    ASSERT_NE(at, lines.npos) << lines;
    const std::size_t begin = lines.rfind('\n', at) + 1;  // npos + 1 is the beginning
    const std::string line = lines.substr(begin, lines.find('\n', at) - begin);
    EXPECT_TRUE(has(line, "u" + std::to_string(i))) << line;
    peers[static_cast<std::size_t>(i)]->wake_if_ready();
    EXPECT_TRUE(has(peers[static_cast<std::size_t>(i)]->output, "X-Request-Id: " + id + "\r\n"));
  }
}

// A session that runs out of memory, before or after a wait.
class Failing final : public loop::Session {
 public:
  Failing(Limiter& limiter, bool waits) : limiter_(limiter), waits_(waits) {}
  loop::Progress consume(std::string_view, loop::Turn&, std::string&) override {
    if (waits_) static_cast<void>(limiter_.reset("k"));
    throw std::bad_alloc();
  }
  void drain(std::string&) override {}
  void give_up(loop::GiveUp, std::string&) override {}
  std::size_t held() const override { return 0; }

 private:
  Limiter& limiter_;
  const bool waits_;
};

TEST_F(FiberSessions, PassExceptionsOn) {
  Peer at_once(world, loop::make_fiber_session(*http_contexts, std::make_unique<Failing>(world.limiter, false)));
  EXPECT_THROW(at_once.feed("x"), std::bad_alloc);
  Peer later(world, loop::make_fiber_session(*http_contexts, std::make_unique<Failing>(world.limiter, true)));
  later.feed("x");
  store.answer_all();
  EXPECT_THROW(later.wake_if_ready(), std::bad_alloc);
  EXPECT_EQ(fibers->in_flight(), 0U);
}

}  // namespace
}  // namespace weir::server
