/* hiredis, the C client, against the RESP port: hiredis PORT
 *
 * Prints one line a fact, which redis_clients.sh compares. Everything is pipelined once and sent one by one once. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

static void print(const redisReply *reply) {
  if (reply == NULL) {
    printf("no reply\n");
    exit(1);
  }
  switch (reply->type) {
    case REDIS_REPLY_INTEGER:
      printf("%lld ", reply->integer);
      break;
    case REDIS_REPLY_NIL:
      printf("nil ");
      break;
    case REDIS_REPLY_ARRAY:
      for (size_t i = 0; i < reply->elements; ++i) print(reply->element[i]);
      break;
    default:
      printf("%s ", reply->str);
  }
}

static void say(redisContext *redis, const char *name, const char *command) {
  redisReply *reply = redisCommand(redis, command);
  printf("%s: ", name);
  print(reply);
  printf("\n");
  freeReplyObject(reply);
}

int main(int count, char **words) {
  if (count != 2) return 2;
  redisContext *redis = redisConnect("127.0.0.1", atoi(words[1]));
  if (redis == NULL || redis->err) return 1;
  say(redis, "ping", "PING");
  say(redis, "throttle", "CL.THROTTLE hiredis 1 30 6000");
  say(redis, "error", "CL.THROTTLE hiredis x 30 6000");
  say(redis, "limit", "WEIR.LIMIT hiredis:limit 3/day ALGORITHM sliding_log");
  int allowed = 0;
  for (int i = 0; i < 1000; ++i) redisAppendCommand(redis, "GCRA hiredis:%d 0 1 6000", i % 500);
  for (int i = 0; i < 1000; ++i) {
    redisReply *reply = NULL;
    if (redisGetReply(redis, (void **)&reply) != REDIS_OK) return 1;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 5) return 1;
    allowed += reply->element[0]->integer == 0;
    freeReplyObject(reply);
  }
  printf("pipeline of 1000: %d allowed\n", allowed);
  redisFree(redis);
  return 0;
}
