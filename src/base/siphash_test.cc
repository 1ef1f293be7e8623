// SipHash-128 compared with independent results: the published vectors of 2-4 with 128 bits of output.
//
// The rounds are a template parameter, so 1-3 is the same code with other numbers. Hashing many keys at once is
// compared with one at a time.
#include "base/siphash_many.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

namespace weir::base::siphash_test {
namespace {

TEST(SipHash, GivesThePublishedVectorsIn24) {
  const SipKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  const Hash128 expected[] = {{0xe6a825ba047f81a3, 0x930255c71472f66d},
                              {0x44af996bd8c187da, 0x45fc229b11597634},
                              {0xc75da4a48d227781, 0xe4ff0af6de8ba3fc},
                              {0x4ea967520cb6709c, 0x51ed8529b0b6335f}};
  std::string bytes;
  for (const Hash128& hash : expected) {
    EXPECT_EQ((siphash<2, 4>(key, bytes)), hash) << bytes.size();
    bytes.push_back(static_cast<char>(bytes.size()));
  }
}

TEST(SipHash, DependsOnEveryBitOfItsKey) {
  const Hash128 plain = siphash13({1, 2}, "user:42");
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_NE(siphash13({1 ^ std::uint64_t{1} << bit, 2}, "user:42"), plain);
    EXPECT_NE(siphash13({1, 2 ^ std::uint64_t{1} << bit}, "user:42"), plain);
  }
}

// The tail of a key is read in one of two ways, depending on its length.
TEST(SipHash, DependsOnEveryByteOfEveryLength) {
  for (std::size_t length = 0; length < 40; ++length) {
    std::string bytes(length, 'x');
    std::set<std::uint64_t> seen{siphash13({1, 2}, bytes).low, siphash13({1, 2}, bytes + '\0').low};
    for (char& byte : bytes) {
      byte = 'y';
      seen.insert(siphash13({1, 2}, bytes).low);
      byte = 'x';
    }
    EXPECT_EQ(seen.size(), length + 2);
  }
}

// Eight keys are hashed together: tested alone, with fewer, with more, of one length and of mixed lengths.
TEST(SipHash, IsTheSameForManyAtOnce) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int turn = 0; turn < 5'000; ++turn) {
    const SipKey key{random(), random()};
    const std::size_t count = random() % 20, length = random() % 70;
    std::vector<std::string> texts(count);
    std::vector<SipInput> inputs;
    for (std::string& text : texts) {
      text.resize(turn % 2 == 0 ? length : random() % 70);
      for (char& byte : text) byte = static_cast<char>(random());
      inputs.push_back({text.data(), text.size(), random() % 8});
    }
    std::vector<Hash128> hashes(count + 1, Hash128{1, 2});
    siphash13_many(key, inputs, hashes.data());
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(hashes[i], siphash13({key.k0, key.k1 ^ inputs[i].tweak}, inputs[i].bytes())) << i << " of " << count;
    }
    ASSERT_EQ(hashes[count], (Hash128{1, 2}));
  }
}

}  // namespace
}  // namespace weir::base::siphash_test
