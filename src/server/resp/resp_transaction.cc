// The commands of transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH, and the queue between them. See resp_call.h.
//
// Replies and errors are those of Redis. There is nothing to WATCH: a command decides and charges in one step, and no
// command reads what another has written. So WATCH succeeds, and EXEC always runs.
#include "server/resp/resp_transaction.h"

#include <memory>
#include <string>

#include "server/resp/resp_call.h"

namespace weir::server::resp {

AfterCommand queue_command(const Call& call, const RespCommand& command) {
  RespTransaction& transaction = *call.client.transaction;
  const loop::ListenerBounds& bounds = call.service.bounds;
  if ((command.traits & kAlone) != 0) {
    transaction.spoil();
    call.out.error("ERR Command not allowed inside a transaction");
  } else if (!transaction.add(call.args)) {
    transaction.spoil();
    bounds.refuse(loop::Refused::body);
    call.out.error("ERR a transaction has at most " + std::to_string(bounds.checks_max) + " commands and " +
                   std::to_string(bounds.checks_body_max()) + " bytes");
  } else {
    call.out.simple("QUEUED");
  }
  return AfterCommand::go_on;
}

void run_multi(const Call& call) {
  if (call.client.transaction != nullptr) return call.out.error("ERR MULTI calls can not be nested");
  call.client.transaction = std::make_unique<RespTransaction>(call.service.bounds);
  reply_ok(call);
}

AfterCommand run_exec(const Call& call) {
  RespTransaction* const transaction = call.client.transaction.get();
  if (transaction == nullptr) {
    call.out.error("ERR EXEC without MULTI");
    return AfterCommand::go_on;
  }
  if (transaction->is_spoiled()) {
    call.client.transaction.reset();
    call.out.error("EXECABORT Transaction discarded because of previous errors.");
    return AfterCommand::go_on;
  }
  call.out.array(transaction->count());
  transaction->run();
  return AfterCommand::run_queue;
}

void run_discard(const Call& call) {
  if (call.client.transaction == nullptr) return call.out.error("ERR DISCARD without MULTI");
  call.client.transaction.reset();
  reply_ok(call);
}

void run_watch(const Call& call) {
  if (call.client.transaction != nullptr) return call.out.error("ERR WATCH inside MULTI is not allowed");
  reply_ok(call);
}

void run_unwatch(const Call& call) { reply_ok(call); }

}  // namespace weir::server::resp
