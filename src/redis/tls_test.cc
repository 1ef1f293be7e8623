// Tests TLS with a real redis-server: our own certificate authority, a client certificate, and everything that must
// fail.
#include "net/tls.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "redis_driver.h"
#include "redis_fleet.h"

namespace weir::redis {
namespace {

// A certificate authority, and server and client certificates signed by it, in files of a temporary folder.
class Certificates {
 public:
  Certificates() {
    std::string name = "/tmp/weir-redis-tls-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    const std::string key = " -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 ";
    run("openssl req -x509" + key + "-keyout " + file("ca.key") + " -out " + file("ca.pem") + " -subj /CN=ca");
    run("openssl req -x509" + key + "-keyout " + file("other.key") + " -out " + file("other.pem") + " -subj /CN=other");
    std::ofstream(file("names")) << "subjectAltName=IP:127.0.0.1,DNS:redis.example\n";
    for (const std::string who : {"server", "client"}) {
      run("openssl req -new" + key + "-keyout " + file(who + ".key") + " -out " + file(who + ".csr") +
          " -subj /CN=" + who);
      run("openssl x509 -req -days 2 -in " + file(who + ".csr") + " -CA " + file("ca.pem") + " -CAkey " +
          file("ca.key") + " -CAcreateserial -extfile " + file("names") + " -out " + file(who + ".pem"));
    }
  }
  ~Certificates() { std::filesystem::remove_all(folder_); }
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> settings(const std::string& auth_clients) const {
    return {"--tls-port",
            "PORT",
            "--port",
            "0",
            "--tls-cert-file",
            file("server.pem"),
            "--tls-key-file",
            file("server.key"),
            "--tls-ca-cert-file",
            file("ca.pem"),
            "--tls-auth-clients",
            auth_clients};
  }

 private:
  static void run(const std::string& command) {
    ASSERT_EQ(std::system((command + " > /dev/null 2>&1").c_str()), 0) << command;
  }
  std::string folder_;
};

bool is_without_tls(const Error& error) {
  const auto says = [&](const char* text) { return error.message.find(text) != std::string::npos; };
  return says("Bad directive") || says("Failed finding TLS support");  // texts of Redis 6 and of Valkey
}

std::string failure_of(const std::string& url) {
  Driver driver(url);
  std::string text;
  EXPECT_TRUE(driver.wait([&] {
    text = driver.ask({"PING"}, {.deadline = steady_now() + Micros{1'000}}).text;
    return !driver.events.empty();
  }));
  return driver.events.empty() ? text : driver.events[0].text;
}

TEST(RedisTlsClient, TrustsItsAuthorityAndShowsItsCertificate) {
  const Certificates files;
  const auto started = test::RedisServer::start({.settings = files.settings("yes")});
  if (!started && is_without_tls(started.error())) GTEST_SKIP() << "this redis-server speaks no TLS";
  ASSERT_TRUE(started) << started.error().message;
  const auto& server = *started;
  const std::string own =
      "?ca=" + files.file("ca.pem") + "&cert=" + files.file("client.pem") + "&key=" + files.file("client.key");
  Driver driver("rediss://" + server->address() + own, {.commands_max = 30'000, .bytes_max = 64U << 20});
  EXPECT_EQ(driver.ask({"PING"}).text, "PONG");
  // Large values and many commands, in both directions.
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(driver.ask({"SET", "large", large}).text, "OK");
  EXPECT_EQ(driver.ask({"GET", "large"}).text, large);
  for (int i = 0; i < 20'000; ++i) driver.send({"INCR", "n"});
  ASSERT_TRUE(driver.wait([&] { return driver.heard.size() == driver.tags; }));
  EXPECT_EQ(driver.faults(), 0u) << driver.first_fault();
  EXPECT_EQ(driver.heard[driver.tags].value.integer, 20'000);
  // The certificate has another name than the address.
  EXPECT_EQ(Driver("rediss://" + server->address() + own + "&server_name=redis.example").ask({"PING"}).text, "PONG");

  EXPECT_NE(failure_of("rediss://" + server->address() + own + "&server_name=else.example").find("ostname mismatch"),
            std::string::npos);
  const std::string stranger = "?ca=" + files.file("other.pem");
  EXPECT_NE(failure_of("rediss://" + server->address() + stranger).find("TLS: "), std::string::npos);
  EXPECT_NE(failure_of("rediss://" + server->address() + "?ca=" + files.file("ca.pem")), "");
  EXPECT_NE(failure_of("rediss://" + server->address() + "?ca=/nowhere.pem").find("ca=/nowhere.pem"),
            std::string::npos);
  EXPECT_NE(failure_of("redis://" + server->address()).find("write rediss://"), std::string::npos);
}

TEST(RedisTlsClient, DoesNotVerifyIfTheUrlSaysSo) {
  const Certificates files;
  const auto started = test::RedisServer::start({.settings = files.settings("no")});
  if (!started && is_without_tls(started.error())) GTEST_SKIP() << "this redis-server speaks no TLS";
  ASSERT_TRUE(started) << started.error().message;
  const auto& server = *started;
  EXPECT_EQ(Driver("rediss://" + server->address() + "?verify=no").ask({"PING"}).text, "PONG");
  // A replaced file is used at the next connect.
  std::filesystem::copy(files.file("other.pem"), files.file("trust.pem"));
  Driver driver("rediss://" + server->address() + "?ca=" + files.file("trust.pem"), {.backoff_most = Micros{50'000}});
  ASSERT_TRUE(driver.wait([&] {
    driver.ask({"PING"}, {.deadline = steady_now() + Micros{1'000}});
    return !driver.events.empty();
  }));
  std::filesystem::rename(files.file("ca.pem"), files.file("trust.pem"));
  EXPECT_EQ(driver.ask({"PING"}).text, "PONG");
}

TEST(RedisTlsClient, ReportsThatTheServerMayNotUseTls) {
  const auto server = test::RedisServer::start({});
  ASSERT_TRUE(server) << server.error().message;
  Driver driver("rediss://" + (*server)->address(), {.connect_timeout = 100_ms, .backoff_most = 50_ms});
  const auto failure = [&] { return driver.ask({"PING"}, {.deadline = steady_now() + Micros{1'000}}).text; };
  ASSERT_TRUE(driver.wait(
      [&] { return failure().find("if this server does not use TLS, write redis://") != std::string::npos; }));
  // A command sent while the client redials gets the same reason, not a timeout.
  const std::string known = failure();
  const std::uint64_t dials = driver.client->counters().dials;
  EXPECT_TRUE(driver.wait([&] { return failure() != known || driver.client->counters().dials >= dials + 3; }));
  EXPECT_EQ(failure(), known);
  EXPECT_GE(driver.client->counters().dials, dials + 3);
  EXPECT_EQ(driver.events.size(), 1u);
}

TEST(RedisTlsClient, ReportsWhichFileOfAUrlCannotBeUsed) {
  const Certificates files;
  const auto told = [](const std::string& url) {
    const auto checked = check_files(base::redis::parse_url(url).value());
    return checked ? std::string() : checked.error().message;
  };
  const std::string ca = files.file("ca.pem"), cert = files.file("client.pem"), key = files.file("client.key");
  EXPECT_EQ(told("redis://a"), "");
  EXPECT_EQ(told("rediss://a"), "");
  EXPECT_EQ(told("rediss://a?ca=" + ca + "&cert=" + cert + "&key=" + key + "&password_file=" + key), "");
  EXPECT_NE(told("redis://a?password_file=/no/pass").find("the password file /no/pass cannot be opened: No such file"),
            std::string::npos);
  EXPECT_NE(told("redis+sentinel://a/m?sentinel_password_file=/no/pass").find("/no/pass"), std::string::npos);
  EXPECT_NE(told("rediss://a?ca=/no/ca.pem").find("ca=/no/ca.pem cannot be read: No such file"), std::string::npos);
  EXPECT_NE(told("rediss://a?cert=/no/c.pem&key=" + key).find("cert=/no/c.pem"), std::string::npos);
  EXPECT_NE(told("rediss://a?cert=" + cert + "&key=/no/k.pem").find("key=/no/k.pem"), std::string::npos);
}

TEST(RedisTlsClient, NamesScriptsAsRedisDoes) {
  EXPECT_EQ(net::sha1_hex("return 1"), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
}

}  // namespace
}  // namespace weir::redis
