// The command line: `weir serve`, `weir state`, `weir version`, `weir help`, and those of src/command. Each command is
// one function.
//
// Exit codes: 0 done, 1 it could not be done, 2 the command line was not understood.
// Tested by tests/server/cli.sh, policy.sh and state.sh there.
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "command/bench_command.h"
#include "command/config_file.h"
#include "command/policy_commands.h"
#include "command/reloader.h"
#include "nearest.h"
#include "server/address.h"
#include "server/server.h"
#include "state.h"
#include "weir/gate.h"
#include "weir/limiter.h"

#ifndef WEIR_VERSION
#define WEIR_VERSION "0.0.0"
#endif

namespace {

constexpr const char* kIntroduction =
    "weir: may this request pass?\n"
    "\n"
    "  weir serve                                   HTTP on 8080, gRPC on 8081, Redis clients on 6380\n"
    "  weir serve --config weir.yaml                by rules: who may do how much of what\n"
    "  weir validate weir.yaml                      is it right? what was probably not meant?\n"
    "  weir explain --path /login --ip 192.0.2.1    which rules hold this request, and why\n"
    "\n"
    "  curl -i http://127.0.0.1:8080/v1/check -d '{\"key\":\"user:42\",\"limit\":\"100/minute\"}'\n"
    "  redis-cli -p 6380 CL.THROTTLE user:42 15 30 60\n";

constexpr const char* kServeExamples =
    "  weir serve                              HTTP on 8080, gRPC on 8081, Redis clients on 6380; this machine only\n"
    "  weir serve --http :9000 --grpc off      on other ports, :0 picks a free one; or not at all\n"
    "  weir serve --resp unix:/run/weir.sock   on a socket in the file system\n"
    "  weir serve --config weir.yaml           by rules; SIGHUP reads them again, a bad file changes nothing\n"
    "  weir serve --state state.weir           what was spent stays spent, whatever happens to the server\n"
    "  weir serve --http 0.0.0.0:8080          reachable from elsewhere: put it behind a firewall\n"
    "\n";

constexpr const char* kStateExamples =
    "  weir state inspect state.weir                    how full it is, under which limits; also while in use\n"
    "  weir state export state.weir | jq .remaining     a line of JSON for each live key; keys appear as hashes\n"
    "  weir state resize state.weir --keys 5000000      made anew with other room; whoever uses it must stop first\n"
    "\n";

// The help of a command begins with what one types.
class ExamplesFirst final : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    constexpr std::pair<std::string_view, const char* const*> kExamples[] = {{"serve", &kServeExamples},
                                                                             {"state", &kStateExamples},
                                                                             {"validate", &weir::kValidateExamples},
                                                                             {"explain", &weir::kExplainExamples},
                                                                             {"schema", &weir::kSchemaExamples},
                                                                             {"bench", &weir::kBenchExamples}};
    for (const auto& [name, examples] : kExamples) {
      if (app->get_name() == name) return *examples + CLI::Formatter::make_description(app);
    }
    return CLI::Formatter::make_description(app);
  }
};

constexpr std::array<std::string_view, 8> kCommands = {"serve", "validate", "explain", "schema",
                                                       "bench", "state",    "version", "help"};

struct ServeArguments {
  std::string http = "127.0.0.1:8080";
  std::string grpc = "127.0.0.1:8081";
  std::string resp = "127.0.0.1:6380";
  std::string admin = "127.0.0.1:8082";
  std::string password_file;
  std::string store = "memory";
  std::uint64_t threads = std::max(1U, std::thread::hardware_concurrency());
  std::uint64_t keys = 0;
  std::uint64_t memory = 0;
  std::string state;
  std::string config;
  bool force = false;
  std::uint64_t connections_max = weir::ServerOptions{}.connections_max;
  std::uint64_t buffers_mib = weir::ServerOptions{}.buffers_max >> 20;
};

constexpr std::uint64_t kMemoryMax = std::uint64_t{1} << 44;

constexpr int kCouldNot = 1;
constexpr int kNotUnderstood = 2;

int complain(std::string_view message, int exit_code) {
  std::fprintf(stderr, "weir: %.*s\n", static_cast<int>(message.size()), message.data());
  return exit_code;
}

// CLI11's own check calls `1M` out of range.
auto whole_number_to(std::uint64_t most) {
  return [most](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size() && value >= 1 && value <= most) return {};
    return weir::in_quotes(text) + " is not a whole number from 1 to " + std::to_string(most);
  };
}

int print_version() {
  std::puts("weir " WEIR_VERSION);
  return 0;
}

// Many systems give a process 1,024 descriptors and let it have more when it asks.
void ask_for_descriptors(std::size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted);
  setrlimit(RLIMIT_NOFILE, &limit);
}

// A client on this machine reaches a server that listens everywhere by the loopback address.
weir::Address reachable(weir::Address address) {
  if (address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  return address;
}

// A door, if it is open, with the scheme that its clients know it by.
void announce_door(const char* name, const char* scheme, const std::optional<weir::Address>& address) {
  if (!address) return;
  std::printf("%-5s %s%s\n", name, address->is_unix() ? "" : scheme, to_string(*address).c_str());
}

// How curl is told where to go.
std::string curl(const weir::Address& address) {
  if (address.is_unix()) return "curl -i --unix-socket " + address.path + " http://weir";
  return "curl -i http://" + to_string(reachable(address));
}

std::string redis_cli(const weir::Address& address) {
  if (address.is_unix()) return "redis-cli -s " + address.path;
  return "redis-cli -h " + reachable(address).host + " -p " + std::to_string(address.port);
}

void announce(const weir::Server& server, const ServeArguments& arguments, const weir::Gate& gate) {
  const weir::ServerAddresses& doors = server.addresses();
  announce_door("http", "http://", doors.http);
  announce_door("grpc", "http://", doors.grpc);
  announce_door("resp", "redis://", doors.resp);
  announce_door("admin", "http://", doors.admin);
  if (!arguments.state.empty()) std::printf("state %s\n", arguments.state.c_str());
  if (!arguments.config.empty()) {
    std::printf("rules %s, %zu of them; kill -HUP %d reads it again\n", arguments.config.c_str(),
                gate.policy().rules.size(), getpid());
  }
  std::printf("\n");
  if (doors.http && !arguments.config.empty()) {
    std::printf("try   %s/v1/check -d '{\"user\":\"42\",\"path\":\"/api/search\",\"ip\":\"192.0.2.1\"}'\n",
                curl(*doors.http).c_str());
  }
  if (doors.http) {
    std::printf("try   %s/v1/check -d '{\"key\":\"user:42\",\"limit\":\"100/minute\"}'\n", curl(*doors.http).c_str());
  }
  if (doors.resp) std::printf("try   %s CL.THROTTLE user:42 15 30 60\n", redis_cli(*doors.resp).c_str());
  std::printf("ready\n");
  std::fflush(stdout);
}

// Where a door is to be; nothing if it stays shut.
weir::Result<std::optional<weir::Address>> door_address(const char* option, const std::string& text) {
  if (text == "off") return std::nullopt;
  auto address = weir::parse_address(text);
  if (!address) return weir::fail(address.error().code, std::string(option) + ": " + address.error().message);
  return *std::move(address);
}

weir::Result<weir::ServerOptions> server_options(const ServeArguments& arguments) {
  weir::ServerOptions options;
  const std::tuple<const char*, const std::string&, std::optional<weir::Address>&> doors[] = {
      {"--http", arguments.http, options.http},
      {"--grpc", arguments.grpc, options.grpc},
      {"--resp", arguments.resp, options.resp},
      {"--admin", arguments.admin, options.admin}};
  for (const auto& [option, text, address] : doors) {
    auto parsed = door_address(option, text);
    if (!parsed) return weir::fail(std::move(parsed.error()));
    address = *std::move(parsed);
  }
  if (options.admin && !options.admin->is_loopback()) {
    return weir::fail(weir::ErrorCode::invalid_argument,
                      "--admin: whoever reaches the admin port rules the server, so it listens on this machine only; "
                      "write 127.0.0.1:8082, unix:/run/weir-admin.sock or off");
  }
  if (arguments.store != "memory") {
    return weir::fail(weir::ErrorCode::invalid_argument,
                      "--store: " + weir::in_quotes(arguments.store) +
                          " is not a store that this server has; write memory, and --state FILE for one that lasts");
  }
  if (!arguments.password_file.empty()) {
    auto password = weir::read_secret(arguments.password_file);
    if (!password) return weir::fail(password.error().code, "--password-file: " + password.error().message);
    options.password = *std::move(password);
  }
  options.threads = arguments.threads;
  options.connections_max = arguments.connections_max;
  options.buffers_max = arguments.buffers_mib << 20;
  options.version = WEIR_VERSION;
  return options;
}

int serve(const ServeArguments& arguments) {
  auto wanted = server_options(arguments);
  if (!wanted) return complain(wanted.error().message, kCouldNot);
  weir::ServerOptions& options = *wanted;
  ask_for_descriptors(descriptors_wanted(options));
  std::signal(SIGPIPE, SIG_IGN);  // whoever read our output may leave

  weir::LimiterOptions limiter_options;
  limiter_options.keys = arguments.keys;
  limiter_options.memory = arguments.memory;
  limiter_options.file = arguments.state;
  auto limiter = weir::open_limiter(std::move(limiter_options));
  if (!limiter) return complain(limiter.error().message, kCouldNot);
  weir::Gate gate(*limiter);
  weir::Reloader reloader(gate, arguments.config, arguments.force ? weir::Force::yes : weir::Force::no);
  if (!arguments.config.empty()) {
    if (const auto loaded = reloader.load(); !loaded) return complain(loaded.error().message, kCouldNot);
    options.gate = &gate;
    options.on_hangup = [&reloader] { reloader.reload(); };
  }
  auto server = weir::make_server(std::move(options), *limiter);
  if (!server) return complain(server.error().message, kCouldNot);
  announce(**server, arguments, gate);
  if ((*server)->run() == weir::Stopped::drained) return 0;
  return complain("stopped before every request in flight was answered", kCouldNot);
}

// `weir state`: its commands, and what they are given.
struct StateCommand {
  CLI::App* state = nullptr;
  CLI::App* inspect = nullptr;
  CLI::App* export_ = nullptr;
  CLI::App* resize = nullptr;
  std::string file;
  weir::StateSize size;
};

void add_state_command(CLI::App& app, StateCommand& command) {
  command.state = app.add_subcommand("state", "Look into a state file, or change its size");
  command.state->require_subcommand(1);
  command.inspect = command.state->add_subcommand("inspect", "How full it is, and under which limits");
  command.export_ = command.state->add_subcommand("export", "A line of JSON for each live key");
  command.resize = command.state->add_subcommand("resize", "Make it anew with other room; nobody may be using it");
  for (CLI::App* one : {command.inspect, command.export_, command.resize}) {
    one->add_option("FILE", command.file, "The state file")->required();
  }
  command.resize->add_option("--keys", command.size.keys, "Room for so many live keys")
      ->type_name("N")
      ->check(whole_number_to(1'000'000'000));
  command.resize
      ->add_option("--memory", command.size.memory_bytes,
                   "Bytes of the whole; what the keys leave is for logs and permits in flight")
      ->type_name("BYTES")
      ->check(whole_number_to(kMemoryMax));
}

int run(const StateCommand& command) {
  if (*command.export_) {
    const auto exported = weir::export_state(command.file, stdout);
    return exported ? 0 : complain(exported.error().message, kCouldNot);
  }
  const auto text =
      *command.inspect ? weir::inspect_state(command.file) : weir::resize_state(command.file, command.size);
  if (!text) return complain(text.error().message, kCouldNot);
  std::fputs(text->c_str(), stdout);
  return 0;
}

int unknown_command(std::string_view word) {
  std::string message = "there is no command " + weir::in_quotes(word) + ". ";
  const std::string_view meant = weir::nearest(word, kCommands);
  if (meant.empty()) {
    message += "See weir --help";
  } else {
    message.append("Did you mean weir ").append(meant).append("?");
  }
  return complain(message, kNotUnderstood);
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app(kIntroduction, "weir");
  app.formatter(std::make_shared<ExamplesFirst>());
  app.set_version_flag("--version", "weir " WEIR_VERSION);
  app.require_subcommand(1);

  ServeArguments arguments;
  CLI::App* serve_command = app.add_subcommand("serve", "Answer checks over HTTP, gRPC and RESP until SIGTERM");
  serve_command
      ->add_option("--http", arguments.http, "Where HTTP listens; a port alone, :8080, is on loopback; off: nowhere")
      ->type_name("ADDR")
      ->capture_default_str();
  serve_command->add_option("--grpc", arguments.grpc, "Where Envoy and other gRPC clients are served")
      ->type_name("ADDR")
      ->capture_default_str();
  serve_command->add_option("--resp", arguments.resp, "Where Redis clients are served")
      ->type_name("ADDR")
      ->capture_default_str();
  serve_command->add_option("--admin", arguments.admin, "Where the server itself is looked after; this machine only")
      ->type_name("ADDR")
      ->capture_default_str();
  serve_command->add_option("--threads", arguments.threads, "How many loops serve, each on a thread of its own")
      ->type_name("N")
      ->check(whole_number_to(256))
      ->capture_default_str();
  serve_command->add_option("--store", arguments.store, "Where counts are kept")
      ->type_name("URL")
      ->capture_default_str();
  serve_command->add_option("--password-file", arguments.password_file, "Redis clients must AUTH with what it holds")
      ->type_name("FILE");
  serve_command->add_option("--keys", arguments.keys, "Room for so many live keys; 1000000, or what the state file has")
      ->type_name("N")
      ->check(whole_number_to(1'000'000'000));
  serve_command
      ->add_option("--memory", arguments.memory,
                   "Bytes of the whole table: for as many keys as fit; with --keys, the rest is for logs")
      ->type_name("BYTES")
      ->check(whole_number_to(kMemoryMax));
  serve_command
      ->add_option("--state", arguments.state, "Keep the state in this file: it survives any end of the server")
      ->type_name("FILE");
  serve_command->add_option("--config", arguments.config, "Decide by the rules in this file")->type_name("FILE");
  serve_command->add_flag("--force", arguments.force, "A reload may change the rules beyond their max_change");
  serve_command->add_option("--connections", arguments.connections_max, "How many connections each port may have open")
      ->type_name("N")
      ->check(whole_number_to(1'000'000))
      ->capture_default_str();
  serve_command
      ->add_option("--buffers", arguments.buffers_mib,
                   "How much unfinished requests and unread answers may hold, in all")
      ->type_name("MIB")
      ->check(whole_number_to(1'048'576))
      ->capture_default_str();
  weir::PolicyCommands policy_commands(app);
  weir::BenchCommand bench_command(app);
  StateCommand state_command;
  add_state_command(app, state_command);
  CLI::App* version_command = app.add_subcommand("version", "Print the version");

  const std::string_view first = argc < 2 ? "help" : argv[1];
  if (first == "help") {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  }
  if (!first.starts_with('-') && std::ranges::find(kCommands, first) == kCommands.end()) return unknown_command(first);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    std::string command;
    for (const CLI::App* given : app.get_subcommands()) command = given->get_name() + ' ';
    return complain(std::string(error.what()) + ". See weir " + command + "--help", kNotUnderstood);
  }
  if (*version_command) return print_version();
  if (*state_command.state) return run(state_command);
  if (const auto exit_code = policy_commands.run()) return *exit_code;
  if (const auto exit_code = bench_command.run()) return *exit_code;
  return serve(arguments);
} catch (const std::exception& exception) {
  return complain(exception.what(), kCouldNot);
}
