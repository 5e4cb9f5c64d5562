#include "bootstrap/frames.h"

#include <gtest/gtest.h>

#include "base/wire.h"
#include "bootstrap/records.h"

namespace weft::bootstrap {
namespace {

std::array<std::byte, 32> key_of(unsigned char value) {
  std::array<std::byte, 32> key;
  key.fill(std::byte{value});
  return key;
}

std::span<const std::byte> header_of(const std::vector<std::byte>& record) {
  return std::span(record).first(kRecordHeaderSize);
}
std::span<const std::byte> sealed_of(const std::vector<std::byte>& record) {
  return std::span(record).subspan(kRecordHeaderSize);
}

TEST(Frames, ContributionsRoundTrip) {
  ContributeMessage message;
  message.key = {7, 8};
  message.operation = Operation::all_gather;
  message.timeout_ns = 9;
  message.own_index = 1;
  message.what = "phase";
  message.members = {std::byte{1}, std::byte{2}};
  message.value = {std::byte{3}};
  const auto bytes = encode(RankMessage{message});
  const auto back = decode_rank_message(bytes);
  ASSERT_TRUE(back) << back.error().message();
  const auto& read = std::get<ContributeMessage>(*back);
  EXPECT_EQ(read.key, message.key);
  EXPECT_EQ(read.operation, message.operation);
  EXPECT_EQ(read.timeout_ns, message.timeout_ns);
  EXPECT_EQ(read.own_index, message.own_index);
  EXPECT_EQ(read.what, message.what);
  EXPECT_EQ(read.members, message.members);
  EXPECT_EQ(read.value, message.value);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_rank_message(std::span(bytes).first(size))) << size;
  }
}

TEST(Frames, ErrorsKeepWhatTheySay) {
  const Error error = Error{ErrorCode::timeout, "waited\nfor ever", "wait longer"}.about(Rank{5});
  const auto back = decode_service_message(encode(ServiceMessage{FailedMessage{{1, 2}, error}}));
  ASSERT_TRUE(back) << back.error().message();
  const auto& read = std::get<FailedMessage>(*back);
  EXPECT_EQ(read.key, (ExchangeKey{1, 2}));
  EXPECT_EQ(read.error.code(), ErrorCode::timeout);
  EXPECT_EQ(read.error.doing(), "waited?for ever");
  EXPECT_EQ(read.error.remedy(), "wait longer");
  EXPECT_EQ(read.error.peer(), Rank{5});
  const Error long_error{ErrorCode::system, std::string(100'000, 'x'), std::string(100'000, 'y')};
  EXPECT_LE(encode(ServiceMessage{RefusedMessage{long_error}}).size(), kOverheadSizeMax);
}

TEST(Frames, EmptyMessagesRoundTrip) {
  EXPECT_TRUE(std::holds_alternative<LeaveMessage>(*decode_rank_message(encode(RankMessage{LeaveMessage{}}))));
  const auto holds = [](const ServiceMessage& message) {
    const auto back = decode_service_message(encode(message));
    return back && back->index() == message.index();
  };
  EXPECT_TRUE(holds(AcceptedMessage{}));
  EXPECT_TRUE(holds(WelcomeMessage{3}));
  EXPECT_TRUE(holds(ClosingMessage{}));
  EXPECT_TRUE(holds(ResultMessage{{1, 2}, {std::byte{4}}}));
  EXPECT_FALSE(decode_rank_message({}));
  EXPECT_FALSE(decode_service_message({}));
}

TEST(Records, SealAndOpen) {
  RecordSealer sealer{key_of(1)};
  RecordOpener opener{key_of(1)};
  std::vector<std::byte> message;
  for (int i = 0; i < 3; ++i) {
    const std::vector<std::byte> payload(5, static_cast<std::byte>(i));
    const auto record =
        sealer.seal(payload, i < 2 ? RecordSealer::Position::more_follows : RecordSealer::Position::last);
    const auto header = decode_record_header(header_of(record));
    ASSERT_TRUE(header);
    EXPECT_EQ(header->size_bytes, sealed_of(record).size());
    EXPECT_EQ(header->continues, i < 2);
    ASSERT_TRUE(opener.open(header_of(record), sealed_of(record), message));
  }
  EXPECT_EQ(message.size(), 15U);
  EXPECT_EQ(message[14], std::byte{2});
}

TEST(Records, AnyChangedByteIsNoticed) {
  const std::vector<std::byte> payload(20, std::byte{7});
  const auto good = RecordSealer{key_of(1)}.seal(payload, RecordSealer::Position::last);
  for (std::size_t at = 0; at < good.size(); ++at) {
    auto record = good;
    record[at] ^= std::byte{1};
    std::vector<std::byte> message;
    EXPECT_FALSE(RecordOpener{key_of(1)}.open(header_of(record), sealed_of(record), message)) << at;
    EXPECT_TRUE(message.empty());
  }
}

TEST(Records, RepeatedOrForeignRecordsAreRefused) {
  RecordSealer sealer{key_of(1)};
  const auto first = sealer.seal({}, RecordSealer::Position::last);
  const auto second = sealer.seal({}, RecordSealer::Position::last);
  std::vector<std::byte> message;
  RecordOpener opener{key_of(1)};
  ASSERT_TRUE(opener.open(header_of(first), sealed_of(first), message));
  EXPECT_FALSE(opener.open(header_of(first), sealed_of(first), message));
  EXPECT_FALSE(RecordOpener{key_of(1)}.open(header_of(second), sealed_of(second), message));
  EXPECT_FALSE(RecordOpener{key_of(2)}.open(header_of(first), sealed_of(first), message));
}

TEST(Records, HeadersAreChecked) {
  const auto header = [](std::uint16_t version, std::uint16_t flags, std::uint32_t size) {
    return decode_record_header(ByteWriter{}.number(version).number(flags).number(size).bytes());
  };
  EXPECT_TRUE(header(1, 0, 16));
  EXPECT_TRUE(header(1, 1, kRecordPayloadSizeMax + kRecordTagSize));
  EXPECT_EQ(header(2, 0, 16).error().code(), ErrorCode::unsupported);
  EXPECT_EQ(header(1, 2, 16).error().code(), ErrorCode::malformed);
  EXPECT_EQ(header(1, 0, 15).error().code(), ErrorCode::malformed);
  EXPECT_EQ(header(1, 0, kRecordPayloadSizeMax + kRecordTagSize + 1).error().code(), ErrorCode::malformed);
}

}  // namespace
}  // namespace weft::bootstrap
