// Text that others chose, made fit for messages, tables and terminals.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace pumice {

/// What every name from a file and every name of a file goes through before it is shown: one line
/// of valid UTF-8 that no terminal takes for a command. Control characters, marks that turn or hide
/// text, and bytes that are no UTF-8 become escapes as in \n, \x1b, \u202e. At most `most`
/// characters of `text` are taken; "…" stands for the rest.
std::string printable(std::string_view text, std::size_t most = 60);

/// The same for the name of a file, of which both ends matter: of one longer than 240 characters
/// the middle is left out.
std::string printable_path(const std::filesystem::path& path);

enum class Newlines : unsigned char { escaped, kept };

/// The same for a whole message, up to 4,000 characters, the middle left out of a longer one. Such
/// as hold a compiler's output keep their lines.
std::string printable_message(std::string_view text, Newlines newlines = Newlines::escaped);

}   // namespace pumice
