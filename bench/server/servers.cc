// The commands and the configs of the servers. See servers.h.
#include "server/servers.h"

#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace weir::bench {
namespace {

const std::string kSource = WEIR_SOURCE_DIR;

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// The rivals are built beside this program.
std::string rival(const std::string& name) {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rivals" / ("rival_" + name);
  if (!std::filesystem::exists(path)) throw Missing{"rival_" + name + " was not built"};
  return path.string();
}

}  // namespace

Process start_weir(const WeirOptions& options) {
  return Process({WEIR_PROGRAM, "serve", "--http", ":0", "--resp", ":0", "--grpc", ":0", "--admin", "off", "--threads",
                  std::to_string(options.threads), "--keys", std::to_string(options.keys), "--config",
                  kSource + "/bench/server/weir.yaml"},
                 options.threads > 1 ? Process::Cores::all : Process::Cores::first);
}

Process start_constant() { return Process({rival("constant")}, Process::Cores::first); }
Process start_grpcpp() { return Process({rival("grpcpp")}, Process::Cores::first); }

Redis start_redis() {
  const int port = free_port();
  return {start_redis_server(port, Process::Cores::first), "127.0.0.1:" + std::to_string(port), port};
}

std::string load_gcra(const Redis& redis) {
  std::string name = output_of(find_program("redis-cli") + " -p " + std::to_string(redis.port) + " -x SCRIPT LOAD <" +
                               kSource + "/bench/rivals/gcra.lua");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

Nginx start_nginx(const Folder& folder) {
  const std::string program = find_program("nginx");
  const int port = free_port();
  std::string config = base::read_file(kSource + "/bench/rivals/nginx.conf", 1 << 20).value();
  replace_all(config, "$PORT", std::to_string(port));
  replace_all(config, "$FOLDER", folder.path());
  const std::string path = folder.path() + "/nginx.conf";
  std::ofstream(path) << config;
  return {Process({program, "-p", folder.path(), "-c", path, "-e", folder.path() + "/nginx.log"}, Process::Cores::first,
                  port),
          "127.0.0.1:" + std::to_string(port)};
}

}  // namespace weir::bench
