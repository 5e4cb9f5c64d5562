#include "base/text.h"

#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Text, TrimsBlanksOnBothSidesOnly) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed(" \n "), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Text, QuotesOrdinaryTextUnchanged) {
  EXPECT_EQ(in_quotes("eth0"), "\"eth0\"");
  EXPECT_EQ(in_quotes(""), "\"\"");
  EXPECT_EQ(in_quotes("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
  EXPECT_EQ(in_quotes("%n%s{}"), "\"%n%s{}\"");
}

TEST(Text, QuotesHostileBytesOnOneLine) {
  EXPECT_EQ(in_quotes("a\nb\x1b[0m\x7f"), "\"a\\x0ab\\x1b[0m\\x7f\"");
  EXPECT_EQ(in_quotes("\xff\xc3"), "\"\\xff\\xc3\"");
}

TEST(Text, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(in_quotes("abcdef", 6), "\"abcdef\"");
  EXPECT_EQ(in_quotes("abcdefg", 6), "\"abcdef\"... (7 characters)");
  EXPECT_EQ(in_quotes("abc\xc3\xbc", 4), "\"abc\"... (5 characters)");
  EXPECT_LT(in_quotes(std::string(131000, '\n')).size(), 300U);
}

TEST(Text, KnowsWellFormedUtf8) {
  for (const std::string good :
       {"", "a", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(good)) << in_quotes(good);
  }
  // Overlong forms, surrogates, over U+10FFFF, cut short, lone continuation bytes.
  for (const std::string bad : {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                                "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xc3", "a\xff"}) {
    EXPECT_FALSE(is_utf8(bad)) << in_quotes(bad);
  }
}

TEST(Text, WritesJsonStrings) {
  EXPECT_EQ(json_string("plain"), "\"plain\"");
  EXPECT_EQ(json_string("a\"b\\c\nd\te\x01"), "\"a\\\"b\\\\c\\nd\\u0009e\\u0001\"");
  EXPECT_EQ(json_string(std::string_view("a\0b", 3)), "\"a\\u0000b\"");
  EXPECT_EQ(json_string("\xe2\x82\xac"), "\"\xe2\x82\xac\"");
  EXPECT_EQ(json_string("a\xff"
                        "b"),
            "\"a\\ufffdb\"");
}

TEST(Text, PrintableIsOneLine) {
  EXPECT_EQ(printable("a\nb\x1b[0m\x7f"), "a?b?[0m?");
  EXPECT_EQ(printable("\xe2\x82\xac"), "\xe2\x82\xac");
}

TEST(Text, MeasuresEdits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("abc", "abc"), 0U);
  EXPECT_EQ(edit_distance("LEVL", "LEVEL"), 1U);
  EXPECT_EQ(edit_distance("SPNI", "SPIN"), 1U) << "a swap is one slip";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(XmlEscaped, LeavesNothingThatEndsATextOrAnAttribute) {
  EXPECT_EQ(xml_escaped("<a href=\"x\" o='y'>&"), "&lt;a href=&quot;x&quot; o=&#39;y&#39;&gt;&amp;");
  EXPECT_EQ(xml_escaped("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(xml_escaped("a\xFF\x01"
                        "b\xC3"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_EQ(xml_escaped("a\x01\n\xFF", " "), "a \n ");
}

}  // namespace
}  // namespace weft
