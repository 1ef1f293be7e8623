// Finds the holes once, and fills them for every request. See template.h.
#include "load_generator/template.h"

namespace weir::load_generator {
namespace {

constexpr std::string_view kNumber = "{n}";
constexpr std::string_view kKey = "{key}";

std::string with_numbers_only(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t at = text.find(kKey);
    out += text.substr(0, at);
    if (at == text.npos) break;
    out += kKeyName;
    text.remove_prefix(at + kKey.size());
  }
  return out;
}

std::vector<std::string_view> words_of(std::string_view command) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = command.find_first_not_of(' ');
    if (begin == command.npos) return words;
    command.remove_prefix(begin);
    const bool is_quoted = command.starts_with('"');
    if (is_quoted) command.remove_prefix(1);
    const std::size_t end = std::min(command.find(is_quoted ? '"' : ' '), command.size());
    words.push_back(command.substr(0, end));
    command.remove_prefix(std::min(end + 1, command.size()));
  }
}

std::size_t batch_size(const HttpRequestText& text, std::string_view opening, std::string_view closing) {
  if (text.batch == 0) return filled_size(text.body);
  return opening.size() + closing.size() + text.batch * (filled_size(text.body) + 1) - 1;
}

}  // namespace

Template& Template::add(std::string_view piece) {
  const std::string text = with_numbers_only(piece);
  std::string_view rest = text;
  bool is_first = true;
  while (!rest.empty()) {
    const std::size_t at = rest.find(kNumber);
    bytes_ += rest.substr(0, at);
    if (at == rest.npos) break;
    holes_.push_back({bytes_.size(), is_first});
    bytes_.append(kKeyDigits, '0');
    is_first = false;
    rest.remove_prefix(at + kNumber.size());
  }
  return *this;
}

void Template::append_to(std::string& out, Keys& keys) const {
  const std::size_t begin = out.size();
  out += bytes_;
  std::uint64_t key = 0;
  for (const Hole& hole : holes_) {
    if (hole.is_first_of_piece) key = keys.next();
    write_key(out.data() + begin + hole.at, key);
  }
}

std::size_t filled_size(std::string_view piece) { return Template(piece).bytes().size(); }

Template resp_template(std::string_view command) {
  const auto words = words_of(command);
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    text += "$" + std::to_string(filled_size(word)) + "\r\n";
    text.append(word).append("\r\n");
  }
  return Template(text);
}

Template http_template(const HttpRequestText& text) {
  constexpr std::string_view kOpening = "{\"checks\":[", kClosing = "]}";
  std::string head = text.method + " " + text.path + " HTTP/1.1\r\nHost: " + text.host + "\r\n";
  for (const std::string& header : text.headers) head += header + "\r\n";
  if (!text.body.empty()) {
    head += "Content-Type: application/json\r\n";
    head += "Content-Length: " + std::to_string(batch_size(text, kOpening, kClosing)) + "\r\n";
  }
  head += "\r\n";
  if (text.batch == 0) return Template(head + text.body);
  Template made(head + std::string(kOpening));
  for (std::size_t i = 0; i < text.batch; ++i) made.add((i == 0 ? "" : ",") + text.body);
  made.add(kClosing);
  return made;
}

}  // namespace weir::load_generator
