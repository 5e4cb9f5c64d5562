#include "bootstrap/frames.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "base/wire.h"

namespace weft::bootstrap {
namespace {

constexpr std::size_t kNameSizeMax = 255;
constexpr std::size_t kErrorTextSizeMax = 6 * 1024;  // Two of them stay under kOverheadSizeMax.

enum class Kind : std::uint8_t {
  join = 1,
  contribute = 2,
  leave = 3,
  accepted = 16,
  welcome = 17,
  refused = 18,
  result = 19,
  failed = 20,
  closing = 21,
};

template <class Enum>
constexpr auto number_of(Enum value) {
  return static_cast<std::underlying_type_t<Enum>>(value);
}

std::string_view cut(std::string_view text, std::size_t size_max) { return text.substr(0, size_max); }

void write(ByteWriter& writer, Kind kind) { writer.number(number_of(kind)); }
void write(ByteWriter& writer, const ExchangeKey& key) { writer.number(key.group).number(key.sequence); }
void write(ByteWriter& writer, const Error& error) {
  writer.number(number_of(error.code()));
  writer.number(std::uint8_t{error.peer().has_value()}).number(error.peer().value_or(Rank{}).value());
  writer.text(cut(error.doing(), kErrorTextSizeMax)).text(cut(error.remedy(), kErrorTextSizeMax));
}

void write_body(ByteWriter& writer, const JoinMessage& message) {
  write(writer, Kind::join);
  writer.number(message.rank.value()).number(message.size).number(message.pid).number(message.timeout_ns);
  writer.text(cut(message.host, kNameSizeMax));
}
void write_body(ByteWriter& writer, const ContributeMessage& message) {
  write(writer, Kind::contribute);
  write(writer, message.key);
  writer.number(number_of(message.operation)).number(message.timeout_ns).number(message.own_index);
  writer.text(cut(message.what, kWhatSizeMax)).blob(message.members).blob(message.value);
}
void write_body(ByteWriter& writer, const LeaveMessage&) { write(writer, Kind::leave); }
void write_body(ByteWriter& writer, const AcceptedMessage&) { write(writer, Kind::accepted); }
void write_body(ByteWriter& writer, const WelcomeMessage& message) {
  write(writer, Kind::welcome);
  writer.number(message.size);
}
void write_body(ByteWriter& writer, const RefusedMessage& message) {
  write(writer, Kind::refused);
  write(writer, message.error);
}
void write_body(ByteWriter& writer, const ResultMessage& message) {
  write(writer, Kind::result);
  write(writer, message.key);
  writer.raw(message.body);
}
void write_body(ByteWriter& writer, const FailedMessage& message) {
  write(writer, Kind::failed);
  write(writer, message.key);
  write(writer, message.error);
}
void write_body(ByteWriter& writer, const ClosingMessage&) { write(writer, Kind::closing); }

template <class Message>
std::vector<std::byte> encode_any(const Message& message) {
  ByteWriter writer;
  std::visit([&](const auto& body) { write_body(writer, body); }, message);
  return std::move(writer).take();
}

ExchangeKey read_key(ByteReader& reader) {
  const auto group = reader.number<std::uint64_t>();
  const auto sequence = reader.number<std::uint64_t>();
  return {group, sequence};
}

/// An error that a message carries; in a type of its own, since a Result<Error> would take it for its own failure.
struct CarriedError {
  Error error;
};

Result<CarriedError> read_error(ByteReader& reader, std::string_view what) {
  const auto code = reader.number<std::uint8_t>();
  const auto has_peer = reader.number<std::uint8_t>();
  const auto peer = reader.number<std::uint32_t>();
  std::string doing = printable(reader.text());
  std::string remedy = printable(reader.text());
  WEFT_TRY(reader.finish(what));
  if (code > number_of(ErrorCode::system) || has_peer > 1) {
    return Error{ErrorCode::malformed, std::string(what) + " carries an unknown error code"};
  }
  const Error error{static_cast<ErrorCode>(code), std::move(doing), std::move(remedy)};
  return CarriedError{has_peer == 1 ? error.about(Rank{peer}) : error};
}

Error too_long(std::string_view what) {
  return Error{ErrorCode::malformed, std::string(what) + " has a field that is too long"};
}

Result<RankMessage> read_join(ByteReader reader) {
  JoinMessage message;
  message.rank = Rank{reader.number<std::uint32_t>()};
  message.size = reader.number<std::uint32_t>();
  message.pid = reader.number<std::uint32_t>();
  message.timeout_ns = reader.number<std::uint64_t>();
  message.host = printable(reader.text());
  WEFT_TRY(reader.finish("a join message"));
  if (message.host.size() > kNameSizeMax) return too_long("a join message");
  return RankMessage{std::move(message)};
}

Result<RankMessage> read_contribute(ByteReader reader) {
  ContributeMessage message;
  message.key = read_key(reader);
  const auto operation = reader.number<std::uint8_t>();
  message.timeout_ns = reader.number<std::uint64_t>();
  message.own_index = reader.number<std::uint32_t>();
  message.what = printable(reader.text());
  const auto members = reader.blob();
  const auto value = reader.blob();
  WEFT_TRY(reader.finish("a contribution"));
  if (operation < number_of(Operation::all_gather) || operation > number_of(Operation::agree)) {
    return Error{ErrorCode::malformed, "a contribution names an unknown operation"};
  }
  message.operation = static_cast<Operation>(operation);
  if (message.what.size() > kWhatSizeMax || value.size() > kValueSizeMax) return too_long("a contribution");
  const std::size_t expected = message.operation == Operation::agree ? sizeof(std::uint64_t) : 0;
  if (message.operation != Operation::all_gather && value.size() != expected) {
    return Error{ErrorCode::malformed, "a contribution has a value of the wrong size"};
  }
  message.members.assign(members.begin(), members.end());
  message.value.assign(value.begin(), value.end());
  return RankMessage{std::move(message)};
}

}  // namespace

std::string_view name_of(Operation operation) noexcept {
  switch (operation) {
    case Operation::all_gather: return "all_gather";
    case Operation::barrier: return "barrier";
    case Operation::agree: return "agree";
  }
  return "unknown";
}

std::vector<std::byte> encode(const RankMessage& message) { return encode_any(message); }
std::vector<std::byte> encode(const ServiceMessage& message) { return encode_any(message); }

Result<RankMessage> decode_rank_message(std::span<const std::byte> bytes) {
  ByteReader reader{bytes};
  const auto kind = static_cast<Kind>(reader.number<std::uint8_t>());
  if (kind == Kind::join) return read_join(reader);
  if (kind == Kind::contribute) return read_contribute(reader);
  if (kind == Kind::leave) {
    WEFT_TRY(reader.finish("a leave message"));
    return RankMessage{LeaveMessage{}};
  }
  return Error{ErrorCode::malformed, "a rank sent an unknown message"};
}

Result<ServiceMessage> decode_service_message(std::span<const std::byte> bytes) {
  ByteReader reader{bytes};
  switch (static_cast<Kind>(reader.number<std::uint8_t>())) {
    case Kind::accepted: {
      WEFT_TRY(reader.finish("an acceptance"));
      return ServiceMessage{AcceptedMessage{}};
    }
    case Kind::welcome: {
      const auto size = reader.number<std::uint32_t>();
      WEFT_TRY(reader.finish("a welcome"));
      return ServiceMessage{WelcomeMessage{size}};
    }
    case Kind::refused: {
      WEFT_TRY_ASSIGN(auto carried, read_error(reader, "a refusal"));
      return ServiceMessage{RefusedMessage{std::move(carried.error)}};
    }
    case Kind::result: {
      const ExchangeKey key = read_key(reader);
      if (reader.has_failed()) return Error{ErrorCode::malformed, "a result is cut short"};
      constexpr std::size_t kHeadSize = 1 + 2 * sizeof(std::uint64_t);
      const auto body = bytes.subspan(kHeadSize);
      return ServiceMessage{ResultMessage{key, {body.begin(), body.end()}}};
    }
    case Kind::failed: {
      const ExchangeKey key = read_key(reader);
      WEFT_TRY_ASSIGN(auto carried, read_error(reader, "a failure"));
      return ServiceMessage{FailedMessage{key, std::move(carried.error)}};
    }
    case Kind::closing: {
      WEFT_TRY(reader.finish("a closing message"));
      return ServiceMessage{ClosingMessage{}};
    }
    case Kind::join:
    case Kind::contribute:
    case Kind::leave: break;
  }
  return Error{ErrorCode::malformed, "the service sent an unknown message"};
}

Result<std::vector<std::vector<std::byte>>> decode_values(std::span<const std::byte> body, std::size_t num_members) {
  // Every value takes at least its length, so hostile counts cost nothing.
  if (body.size() / sizeof(std::uint32_t) < num_members) {
    return Error{ErrorCode::malformed, "an all_gather's result is cut short"};
  }
  std::vector<std::vector<std::byte>> values;
  values.reserve(num_members);
  ByteReader reader{body};
  for (std::size_t i = 0; i < num_members; ++i) {
    const auto value = reader.blob();
    if (value.size() > kValueSizeMax) return too_long("an all_gather's result");
    values.emplace_back(value.begin(), value.end());
  }
  WEFT_TRY(reader.finish("an all_gather's result"));
  return values;
}

}  // namespace weft::bootstrap
