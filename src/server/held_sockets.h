// All sockets that listen, held for whoever succeeds this process, and the files of those that have one.
//
// The loops accept from copies. One thread. Tested by tests/server/unix.sh and upgrade.sh there.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "server/descriptor.h"
#include "server/inheritance.h"

namespace weir {

class HeldSockets {
 public:
  HeldSockets() = default;
  HeldSockets(const HeldSockets&) = delete;
  HeldSockets& operator=(const HeldSockets&) = delete;
  ~HeldSockets() { remove_files(); }

  void hold(const std::string& door, std::vector<Descriptor> sockets);
  // The door's socket has a file that is ours to remove.
  void own_file(const std::string& door, const std::string& path);

  const std::vector<NamedSocket>& sockets() const { return sockets_; }
  std::vector<std::string> doors_with_files() const;

  // The end: nothing is held, and the files are gone.
  void close();
  // Another process has them now, and their files.
  void give_away();

 private:
  // Another server may have put its own in the same place.
  struct File {
    static File at(const std::string& path);

    std::string path;
    dev_t device = 0;
    ino_t number = 0;
    std::string door{};
    bool is(const File& other) const { return device == other.device && number == other.number; }
  };

  void remove_files();

  std::vector<NamedSocket> sockets_;
  std::vector<File> files_;
};

}  // namespace weir
