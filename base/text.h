#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// `text` without the blanks (space, tab, newline and the like) around it. Thread: any.
std::string_view trimmed(std::string_view text) noexcept;

/// `text` in quotation marks, fit for one line of a message whatever it holds: control characters and bytes that are
/// not UTF-8 are escaped, and what exceeds `max_chars` bytes is cut, with a note of the full length. Thread: any.
std::string in_quotes(std::string_view text, std::size_t max_chars = 64);

/// `text` with a question mark for every control character, so that a message that quotes it stays one line. Thread:
/// any.
std::string printable(std::string text);

/// True if `text` is well-formed UTF-8 (no overlong forms, no surrogates). Thread: any.
bool is_utf8(std::string_view text) noexcept;

/// `text` as a JSON string, with its quotation marks. Bytes that are not UTF-8 become U+FFFD. Thread: any.
std::string json_string(std::string_view text);

/// `text` fit for the text and the quoted attribute values of XML and HTML. Every control character but newline and
/// tab, and every byte that is not UTF-8, becomes `instead` (U+FFFD unless given). Thread: any.
std::string xml_escaped(std::string_view text, std::string_view instead = "\xEF\xBF\xBD");

/// How many characters must be inserted, deleted, replaced or swapped with their neighbour to turn `a` into `b`.
/// Source: optimal string alignment distance. Cost: a.size() * b.size().
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace weft
