// The Redis of this bench: on the last core, alone there, with nothing kept on disk.
//
// One thread, the first of the process.
#pragma once

#include <string>

#include "base/redis_url.h"
#include "kit/process.h"
#include "redis/blocking_client.h"

namespace weir::bench {

class OwnRedis {
 public:
  OwnRedis();  // throws Missing

  const redis::Target& target() const { return target_; }
  pid_t pid() const { return process_.pid(); }
  // Processor time that it has used.
  double cpu_us();
  // It neither answers nor refuses from now on, or does again.
  void pause();
  void resume();

 private:
  const int port_;
  Process process_;
  const redis::Target target_;
  redis::BlockingClient client_;
};

}  // namespace weir::bench
