// Keeps and closes listening sockets, and removes the files of unix sockets. See held_sockets.h.
#include "server/life/held_sockets.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace weir::server::life {

HeldSockets::File HeldSockets::File::at(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return {path, 0, 0};
  return {path, about.st_dev, about.st_ino};
}

void HeldSockets::hold(const std::string& listener, std::vector<base::Descriptor> sockets) {
  for (base::Descriptor& socket : sockets) sockets_.push_back({listener, std::move(socket)});
}

void HeldSockets::own_file(const std::string& listener, const std::string& path) {
  files_.push_back(File::at(path));
  files_.back().listener = listener;
}

std::vector<std::string> HeldSockets::listeners_with_files() const {
  std::vector<std::string> listeners;
  for (const File& file : files_) listeners.push_back(file.listener);
  return listeners;
}

void HeldSockets::close() {
  sockets_.clear();
  remove_files();
}

void HeldSockets::give_away() {
  sockets_.clear();
  files_.clear();
}

void HeldSockets::remove_files() {
  for (const File& file : files_) {
    if (File::at(file.path).is(file)) ::unlink(file.path.c_str());
  }
  files_.clear();
}

}  // namespace weir::server::life
