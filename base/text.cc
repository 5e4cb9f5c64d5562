#include "base/text.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::string_view kBlanks = " \t\n\r\v\f";

bool is_control(unsigned char byte) noexcept { return byte < 0x20 || byte == 0x7f; }

/// Bytes of the well-formed UTF-8 character that `text` (not empty) begins with; 0 if there is none.
/// Source: Unicode Standard, table 3-7.
std::size_t utf8_size(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&byte](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;   // Below: an overlong form.
    const unsigned high = first == 0xed ? 0x9f : 0xbf;  // Above: a surrogate.
    return second >= low && second <= high && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;  // Above: over U+10FFFF.
    return second >= low && second <= high && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string_view trimmed(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string in_quotes(std::string_view text, std::size_t max_chars) {
  std::string_view rest = text;
  std::string shown = "\"";
  std::size_t taken = 0;
  while (!rest.empty()) {
    const std::size_t size = utf8_size(rest);
    const std::size_t step = std::max<std::size_t>(size, 1);
    if (taken + step > max_chars) break;
    if (size == 0 || is_control(static_cast<unsigned char>(rest[0]))) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(rest[0]));
    } else {
      shown += rest.substr(0, size);
    }
    taken += step;
    rest.remove_prefix(step);
  }
  shown += '"';
  if (!rest.empty()) shown += fmt::format("... ({} characters)", text.size());
  return shown;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string json_string(std::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const char c = text[0];
    if (size == 0) {
      json += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (c == '\n') {
      json += "\\n";
    } else if (is_control(static_cast<unsigned char>(c))) {
      json += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      json += text.substr(0, size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return json += '"';
}

std::string xml_escaped(std::string_view text, std::string_view instead) {
  std::string xml;
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const char c = text[0];
    switch (c) {
      case '&': xml += "&amp;"; break;
      case '<': xml += "&lt;"; break;
      case '>': xml += "&gt;"; break;
      case '"': xml += "&quot;"; break;
      case '\'': xml += "&#39;"; break;
      case '\n':
      case '\t': xml += c; break;
      default: xml += size == 0 || is_control(static_cast<unsigned char>(c)) ? instead : text.substr(0, size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return xml;
}

std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table are enough: a swap looks two rows back.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace weft
