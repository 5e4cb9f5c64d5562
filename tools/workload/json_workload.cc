// Workloads as lists of tensors: docs/workloads.md has the format.
#include <fmt/core.h>

#include <algorithm>
#include <boost/json.hpp>
#include <limits>

#include "base/text.h"
#include "tools/workload/bucketing.h"
#include "tools/workload/workload.h"

namespace weft::tools {
namespace {

namespace json = boost::json;

/// Where in the document, for messages: "file: tensors[3].shape".
struct Place {
  const std::string& file;
  std::string path;

  [[nodiscard]] Place key(std::string_view name) const {
    return {file, path.empty() ? std::string(name) : path + "." + std::string(name)};
  }
  [[nodiscard]] Place index(std::size_t i) const { return {file, fmt::format("{}[{}]", path, i)}; }
  [[nodiscard]] Error wrong(std::string_view what) const {
    return Error(ErrorCode::malformed, fmt::format("{}: {}: {}", file, path.empty() ? "the document" : path, what),
                 "docs/workloads.md describes the format");
  }
};

Result<std::string> text_at(const json::object& object, std::string_view key, const Place& place) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return place.key(key).wrong("is missing");
  if (!value->is_string()) return place.key(key).wrong("is not a string");
  return std::string(value->get_string());
}

Result<std::uint64_t> number_of(const json::value& value, const Place& place) {
  if (value.is_int64() && value.get_int64() >= 0) return static_cast<std::uint64_t>(value.get_int64());
  return place.wrong("is not a whole number from 0 to 2^63 - 1");
}

/// Bytes of one tensor: the product of its shape (1 for an empty one, a scalar) times the element size.
Result<std::uint64_t> bytes_of_shape(const json::value& value, device::DataType type, const Place& place) {
  if (!value.is_array()) return place.wrong("is not an array");
  std::uint64_t bytes = device::size_of(type);
  for (std::size_t i = 0; i < value.get_array().size(); ++i) {
    WEFT_TRY_ASSIGN(const std::uint64_t extent, number_of(value.get_array()[i], place.index(i)));
    if (extent != 0 && bytes > std::numeric_limits<std::int64_t>::max() / extent) {
      return place.wrong("is larger than 2^63 - 1 bytes");
    }
    bytes *= extent;
  }
  return bytes;
}

Result<Bucketing> bucketing_of(const json::object& root, const Place& place) {
  Bucketing bucketing;
  const json::value* value = root.if_contains("bucketing");
  if (value == nullptr) return bucketing;
  const Place here = place.key("bucketing");
  if (!value->is_object()) return here.wrong("is not an object");
  for (const auto& [key, member] : value->get_object()) {
    if (key == "first_bytes") {
      WEFT_TRY_ASSIGN(bucketing.first_bytes, number_of(member, here.key(key)));
    } else if (key == "bytes") {
      WEFT_TRY_ASSIGN(bucketing.cap_bytes, number_of(member, here.key(key)));
    } else if (key == "order") {
      if (member != "reverse" && member != "forward") return here.key(key).wrong("is neither reverse nor forward");
      bucketing.order = member == "reverse" ? Bucketing::Order::reverse : Bucketing::Order::forward;
    } else {
      return here.key(in_quotes(key)).wrong("is not known");
    }
  }
  return bucketing;
}

Result<json::value> parse(std::string_view text, const std::string& file) {
  json::stream_parser parser;
  json::error_code error;
  const std::size_t consumed = parser.write_some(text.data(), text.size(), error);
  std::size_t position = consumed;
  std::string what;
  if (error) {
    what = error.message();
  } else if (!parser.done()) {
    what = "the document is cut short";
  } else {
    // Blanks may follow, nothing else.
    const std::size_t more = text.find_first_not_of(" \t\r\n", consumed);
    if (more == std::string_view::npos) return parser.release();
    position = more;
    what = "something follows the document";
  }
  const std::string_view before = text.substr(0, position);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return Error(ErrorCode::malformed, fmt::format("{}:{}:{}: not JSON: {}", file, line, position - start + 1, what));
}

}  // namespace

Result<Workload> parse_json_workload(std::string_view text, const std::string& name) {
  const Place place{name, ""};
  WEFT_TRY_ASSIGN(const json::value document, parse(text, name));
  if (!document.is_object()) return place.wrong("is not an object");
  const json::object& root = document.get_object();

  WEFT_TRY_ASSIGN(const std::string schema, text_at(root, "schema", place));
  if (schema != "weft-workload-1") {
    return place.key("schema").wrong(fmt::format("is {}, not \"weft-workload-1\"", in_quotes(schema)));
  }
  Workload workload;
  WEFT_TRY_ASSIGN(workload.name, text_at(root, "name", place));
  WEFT_TRY_ASSIGN(const std::string type_text, text_at(root, "type", place));
  const auto type = device::parse_data_type(type_text);
  if (!type) return place.key("type").wrong(fmt::format("{} is no element type", in_quotes(type_text)));
  workload.type = *type;

  const json::value* tensors = root.if_contains("tensors");
  if (tensors == nullptr || !tensors->is_array()) return place.key("tensors").wrong("is not an array");
  std::vector<std::uint64_t> tensor_bytes;
  std::vector<std::string> tensor_names;
  std::uint64_t total_bytes = 0;
  for (std::size_t i = 0; i < tensors->get_array().size(); ++i) {
    const Place here = place.key("tensors").index(i);
    const json::value& tensor = tensors->get_array()[i];
    if (!tensor.is_object()) return here.wrong("is not an object");
    WEFT_TRY_ASSIGN(std::string tensor_name, text_at(tensor.get_object(), "name", here));
    const json::value* shape = tensor.get_object().if_contains("shape");
    if (shape == nullptr) return here.key("shape").wrong("is missing");
    WEFT_TRY_ASSIGN(const std::uint64_t bytes, bytes_of_shape(*shape, *type, here.key("shape")));
    if (bytes > std::numeric_limits<std::int64_t>::max() - total_bytes) {
      return here.wrong("brings the tensors over 2^63 - 1 bytes");
    }
    total_bytes += bytes;
    tensor_bytes.push_back(bytes);
    tensor_names.push_back(std::move(tensor_name));
  }

  WEFT_TRY_ASSIGN(const Bucketing bucketing, bucketing_of(root, place));
  const std::vector<Bucket> buckets = pack(tensor_bytes, bucketing);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const Bucket& bucket = buckets[i];
    const std::string& first = tensor_names[bucket.tensors.front()];
    const std::string& last = tensor_names[bucket.tensors.back()];
    workload.operations.push_back({collectives::Collective::all_reduce, std::nullopt, bucket.size_bytes,
                                   bucket.tensors.size() == 1 ? fmt::format("bucket {}: {}", i, first)
                                                              : fmt::format("bucket {}: {} .. {}", i, first, last),
                                   1});
  }
  return workload;
}

}  // namespace weft::tools
