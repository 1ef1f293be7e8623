// The Redis of bench_fleet: it has the last core for itself and stores nothing on disk.
//
// One thread, the first of the process.
#pragma once

#include "base/redis_url.h"
#include "blocking_client.h"
#include "kit/process.h"

namespace weir::bench {

class OwnRedis {
 public:
  OwnRedis();  // throws Missing

  const base::redis::Target& target() const { return target_; }
  // Processor time that it has used, in microseconds.
  double cpu_us();
  // Stops the process: it neither answers nor closes connections until resume().
  void pause();
  void resume();

 private:
  const int port_;
  Process process_;
  const base::redis::Target target_;
  redis::BlockingClient client_;
};

}  // namespace weir::bench
