// Compares a queue with a plain list of its expected content.
#include "redis/queue.h"

#include <gtest/gtest.h>

#include <deque>

#include "seed.h"

namespace weir::redis {
namespace {

std::string encoded(const std::string& word) {
  return "*1\r\n$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
}

TEST(RedisQueue, WritesCommandsAndCallsOfScripts) {
  Queue queue;
  const std::array<std::string_view, 2> words{"1", "key"};
  queue.push({}, words);
  queue.push_script({.script = 0}, "abc", words);
  EXPECT_EQ(queue.unsent(),
            "*2\r\n$1\r\n1\r\n$3\r\nkey\r\n*4\r\n$7\r\nEVALSHA\r\n$3\r\nabc\r\n$1\r\n1\r\n$3\r\nkey\r\n");
  EXPECT_EQ(queue.front_bytes(), "*2\r\n$1\r\n1\r\n$3\r\nkey\r\n");
}

TEST(RedisQueue, DropsCommandsThatExpiredBeforeTheyWereSent) {
  Queue queue;
  for (const std::string_view word : {"a", "b", "c", "d"}) queue.push({}, std::span(&word, 1));
  queue.note_sent(encoded("a").size() + 1);  // and one byte of b
  for (std::size_t i : {0U, 1U, 2U}) queue[i].is_answered = true;
  queue.drop_unsent_answered();
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(queue.unsent(), encoded("b").substr(1) + encoded("d"));
}

// The bytes of a command, and how many of them were sent.
struct Expected {
  std::string bytes;
  std::uint64_t tag;
  std::size_t sent = 0;
  bool is_answered = false;
};

TEST(RedisQueue, BehavesLikeAListOfStrings) {
  auto random = test::seeded();
  Queue queue;
  std::deque<Expected> expected;
  std::uint64_t tag = 0;
  for (int step = 0; step < 5'000; ++step) {
    const auto choice = test::pick(random, 0, 9);
    if (choice < 4) {
      const std::string word(static_cast<std::size_t>(test::pick(random, 0, 300)), 'x');
      const std::string_view view = word;
      queue.push({.done = {nullptr, ++tag}}, std::span(&view, 1));
      expected.push_back({encoded(word), tag});
    } else if (choice < 7) {
      std::size_t left =
          std::min<std::size_t>(static_cast<std::size_t>(test::pick(random, 0, 1'500)), queue.unsent().size());
      queue.note_sent(left);
      for (Expected& one : expected) {
        const std::size_t taken = std::min(left, one.bytes.size() - one.sent);
        one.sent += taken;
        left -= taken;
      }
    } else if (choice < 9) {
      for (int i = 0; i < 3 && !expected.empty() && expected.front().sent == expected.front().bytes.size(); ++i) {
        ASSERT_TRUE(queue.is_front_sent());
        queue.pop();
        expected.pop_front();
      }
    } else {
      std::size_t i = 0;
      queue.for_each([&](Command& entry, std::string_view, bool) {
        expected[i].is_answered = entry.is_answered = entry.is_answered || test::pick(random, 0, 3) == 0;
        ++i;
      });
      queue.drop_unsent_answered();
      std::erase_if(expected, [](const Expected& one) { return one.is_answered && one.sent == 0; });
    }
    std::string unsent;
    for (const Expected& one : expected) unsent += one.bytes.substr(one.sent);
    ASSERT_EQ(queue.unsent(), unsent);
    ASSERT_EQ(queue.size(), expected.size());
    std::size_t i = 0;
    queue.for_each([&](const Command& entry, std::string_view bytes, bool was_sent) {
      EXPECT_EQ(entry.done.tag, expected[i].tag);
      EXPECT_EQ(bytes, expected[i].bytes);
      EXPECT_EQ(was_sent, expected[i].sent > 0);
      ++i;
    });
  }
}

}  // namespace
}  // namespace weir::redis
