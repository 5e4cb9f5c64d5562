#include "bootstrap/interfaces.h"

#include <gtest/gtest.h>

namespace weft::bootstrap {
namespace {

constexpr auto kLoopback = Interface::Kind::loopback;
constexpr auto kOrdinary = Interface::Kind::ordinary;

const std::vector<Interface> kHost{
    {"lo", "127.0.0.1", kLoopback},       {"docker0", "172.17.0.1", kOrdinary}, {"eth10", "10.0.10.1", kOrdinary},
    {"eth1", "10.0.1.1", kOrdinary},      {"eth1.5", "10.0.5.1", kOrdinary},    {"veth12ab", "10.99.0.1", kOrdinary},
    {"virbr0", "192.168.1.1", kOrdinary}, {"ib0", "10.1.0.1", kOrdinary},
};

std::string names(const Result<std::vector<Interface>>& chosen) {
  if (!chosen) return std::string("error: ") + std::string(name_of(chosen.error().code()));
  std::string text;
  for (const Interface& entry : *chosen) text += (text.empty() ? "" : " ") + entry.name;
  return text;
}

TEST(Interfaces, PatternsMeanWhatIsDocumented) {
  const auto chosen = [](const char* pattern) { return names(select_interfaces(kHost, pattern)); };
  EXPECT_EQ(chosen(""), "eth10 eth1 eth1.5 ib0");
  EXPECT_EQ(chosen("  "), "eth10 eth1 eth1.5 ib0");
  EXPECT_EQ(chosen("eth1"), "eth1 eth10 eth1.5");
  EXPECT_EQ(chosen(" eth1"), "eth1 eth10 eth1.5");
  EXPECT_EQ(chosen("=eth1"), "eth1");
  EXPECT_EQ(chosen("=ib0, eth1"), "ib0 eth1");
  EXPECT_EQ(chosen("eth1,eth10"), "eth1 eth10 eth1.5");
  EXPECT_EQ(chosen("ib,eth10,"), "ib0 eth10");
  EXPECT_EQ(chosen("^eth1"), "docker0 veth12ab virbr0 ib0");
  EXPECT_EQ(chosen("^=eth1,docker0"), "eth10 eth1.5 veth12ab virbr0 ib0");
  EXPECT_EQ(chosen("lo"), "lo");
  EXPECT_EQ(chosen("=docker0"), "docker0");
  EXPECT_EQ(chosen("^e,d,v,i"), "lo");
  EXPECT_EQ(chosen("wlan"), "error: not found");
  EXPECT_EQ(chosen("=eth"), "error: not found");
  EXPECT_EQ(chosen("eth1,^ib0"), "error: malformed");
}

TEST(Interfaces, AMissIsAnErrorThatListsWhatExists) {
  const auto chosen = select_interfaces(kHost, "wlan");
  ASSERT_FALSE(chosen);
  for (const Interface& entry : kHost) {
    EXPECT_NE(chosen.error().message().find(entry.name + " (" + entry.address + ")"), std::string::npos);
  }
}

TEST(Interfaces, TheDefaultTakesWhatThereIs) {
  const auto chosen = [](std::vector<Interface> host) { return names(select_interfaces(host, "")); };
  EXPECT_EQ(chosen({kHost[0], kHost[1]}), "docker0");
  EXPECT_EQ(chosen({kHost[0]}), "lo");
  EXPECT_EQ(chosen({}), "error: not found");
}

TEST(Interfaces, ThisMachineHasLoopback) {
  const auto existing = list_interfaces();
  ASSERT_TRUE(existing);
  const auto chosen = select_interfaces(*existing, "=lo");
  ASSERT_TRUE(chosen) << chosen.error().message();
  EXPECT_EQ(chosen->front().kind, kLoopback);
}

}  // namespace
}  // namespace weft::bootstrap
