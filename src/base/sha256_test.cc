// SHA-256 against the vectors of FIPS 180-4, and against sha256sum at the lengths where the padding needs another
// block.
//
// Each hash is computed twice: with the processor's own instructions and without.
#include "base/sha256.h"

#include <gtest/gtest.h>

namespace weir::base::sha256_test {
namespace {

std::string hash_of(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  const auto hash = sha256(bytes);
  EXPECT_EQ(sha256_portable(bytes), hash);
  for (const std::uint8_t byte : hash) text += {kHex[byte >> 4], kHex[byte & 15]};
  return text;
}

// abc ... xyzabc ..., `size` letters.
std::string letters(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i % 26);
  return text;
}

TEST(Sha256, GivesThePublishedVectors) {
  EXPECT_EQ(hash_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash_of({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash_of("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
                    "mnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(hash_of(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PadsEveryLengthAsSha256sumDoes) {
  EXPECT_EQ(hash_of(letters(55)), "595615dbe4f0f407ae397d08b4c2cb870cb9b0e11937416f950c5160acf9c005");
  EXPECT_EQ(hash_of(letters(56)), "784f623b787495078e93ff28a25b581df0584055a7e71d8cd90c454716b92f51");
  EXPECT_EQ(hash_of(letters(63)), "5ca3e1ef5207490eac01a795e5cc94d59582a5118bf9534665c8668d87aa647c");
  EXPECT_EQ(hash_of(letters(64)), "2fcd5a0d60e4c941381fcc4e00a4bf8be422c3ddfafb93c809e8d1e2bfffae8e");
  EXPECT_EQ(hash_of(letters(65)), "1b3cd1877ab2f2f19f7be001722554f336cb799df0329de0bb4c118dc6abc06d");
  EXPECT_EQ(hash_of(letters(119)), "faef67da856d6fd9c8d12f9ed0a4fefd3cf0ce085ab43e2907418d457e3c354b");
  EXPECT_EQ(hash_of(letters(120)), "c9512b08619c19fbb503c7da6b46ef20301e5f7a7a5f43989182398536f5c5c8");
  EXPECT_EQ(hash_of(letters(128)), "6c05be2c4268843ae47e68e611277ce62c02153f2f4d2e1e2a1a4b44f766cf74");
}

TEST(Sha256, HashesBytesThatAreNoText) {
  EXPECT_EQ(hash_of(std::string_view("\0\xff\x80\x7f", 4)),
            "049426b578cc61154a0dffb6e0fe305e12ac496d6e36e0d833d55fffc363fa51");
  EXPECT_EQ(hash_of(std::string(200, '\0')), "6d9c54dee5660c46886f32d80e57e9dd0ffa57ee0cd2a762b036d9c8e0c3a33a");
}

}  // namespace
}  // namespace weir::base::sha256_test
