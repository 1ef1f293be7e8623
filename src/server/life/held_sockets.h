// All listening sockets of the process, kept for a successor, and the files of unix sockets.
//
// The loops accept on duplicates. One thread. Tested by tests/server/unix.sh and upgrade.sh there.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.h"
#include "server/life/inheritance.h"

namespace weir::server::life {

class HeldSockets {
 public:
  HeldSockets() = default;
  HeldSockets(const HeldSockets&) = delete;
  HeldSockets& operator=(const HeldSockets&) = delete;
  ~HeldSockets() { remove_files(); }

  void hold(const std::string& listener, std::vector<base::Descriptor> sockets);
  // Registers the file of the listener's socket, which this process must remove.
  void own_file(const std::string& listener, const std::string& path);

  const std::vector<NamedSocket>& sockets() const { return sockets_; }
  std::vector<std::string> listeners_with_files() const;

  // Closes all sockets and removes the files.
  void close();
  // Leaves sockets and files to another process.
  void give_away();

 private:
  // Identifies a file, because another server may have put its own in the same place.
  struct File {
    static File at(const std::string& path);

    std::string path;
    dev_t device = 0;
    ino_t number = 0;
    std::string listener{};
    bool is(const File& other) const { return device == other.device && number == other.number; }
  };

  void remove_files();

  std::vector<NamedSocket> sockets_;
  std::vector<File> files_;
};

}  // namespace weir::server::life
