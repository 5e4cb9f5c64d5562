#include "base/secret.h"

#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Secret, HexRoundTripKeepsTheBytes) {
  const Secret secret = Secret::random();
  const std::string text = secret.to_hex();
  EXPECT_EQ(text.size(), 64U);
  const auto back = Secret::from_hex(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, secret);
}

TEST(Secret, UpperCaseHexIsTheSameSecret) {
  const auto lower = Secret::from_hex(std::string(62, '0') + "af");
  const auto upper = Secret::from_hex(std::string(62, '0') + "AF");
  ASSERT_TRUE(lower && upper);
  EXPECT_EQ(*lower, *upper);
  EXPECT_EQ(lower->bytes()[31], std::byte{0xaf});
}

TEST(Secret, WrongTextsAreRefusedWithoutRepeatingThem) {
  const std::string digits(64, 'a');
  for (const std::string& text : {std::string{}, digits.substr(1), digits + "a", digits.substr(1) + "g",
                                  digits.substr(1) + " ", digits.substr(2) + "0x", std::string(64, '\0')}) {
    const auto secret = Secret::from_hex(text);
    ASSERT_FALSE(secret) << text;
    EXPECT_EQ(secret.error().code(), ErrorCode::malformed);
    EXPECT_EQ(secret.error().message().find("aaaa"), std::string::npos);
  }
}

TEST(Secret, RandomSecretsDiffer) { EXPECT_FALSE(Secret::random() == Secret::random()); }

TEST(Secret, DerivedSecretsDependOnPurposeAndParentOnly) {
  const Secret parent = Secret::random();
  EXPECT_EQ(parent.derive("data"), parent.derive("data"));
  EXPECT_FALSE(parent.derive("data") == parent.derive("control"));
  EXPECT_FALSE(parent.derive("data") == parent);
  EXPECT_FALSE(parent.derive("data") == Secret::random().derive("data"));
}

}  // namespace
}  // namespace weft
