// The rules: first the tables, then one function for each rule. tidy.h says what each rule means.
//
// The rules use regular expressions on lines and do not parse C++, so each can be explained in a sentence. Tested by
// tidy_test.cc.
#include "tidy.h"

#include <algorithm>
#include <map>
#include <optional>
#include <regex>

namespace weir::tidy {
namespace {

constexpr std::size_t kLineMax = 120;
constexpr std::size_t kFileLinesMax = 600;
constexpr std::size_t kHeadLinesMin = 2;
constexpr std::size_t kHeadWordsMin = 8;
constexpr std::size_t kBodyWordsMin = 4;

// The layers, and what each may include beside itself: the folders of src/, from the lowest to the highest. "public" is
// include/weir. Its headers limiter.h, gate.h and fleet.h are layers of their own, since what is below must not use
// them.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"public", {}},
    {"limiter.h", {"public"}},
    {"gate.h", {"public", "limiter.h"}},
    {"fleet.h", {"public", "limiter.h"}},
    {"base", {"public"}},
    {"algorithm", {"public", "base"}},
    {"table", {"public", "base", "algorithm"}},
    {"store", {"public", "base", "algorithm", "table"}},
    {"limiter", {"public", "limiter.h", "base", "algorithm", "table", "store"}},
    {"policy", {"public", "base", "algorithm"}},
    {"usage", {"public", "base", "policy"}},
    {"gate", {"public", "limiter.h", "gate.h", "base", "algorithm", "policy", "usage"}},
    {"envoy", {"public", "base", "algorithm", "policy"}},
    {"plans", {"public", "base"}},
    {"resp", {}},
    {"net", {"public", "base"}},
    {"redis", {"public", "base", "resp", "net"}},
    {"fleet", {"public", "fleet.h", "base", "algorithm", "table", "store", "redis"}},
    {"protocol", {"public", "base", "resp"}},
    {"log", {"public", "base"}},
    {"control", {"public", "limiter.h", "gate.h", "base", "policy", "usage", "envoy", "plans", "protocol", "log"}},
    {"server/loop", {"public", "limiter.h", "gate.h", "base", "resp", "protocol", "log", "control"}},
    {"server/observe",
     {"public", "limiter.h", "gate.h", "base", "envoy", "net", "protocol", "log", "control", "server/loop"}},
    {"server/rls", {"public", "limiter.h", "gate.h", "base", "envoy", "protocol", "server/loop", "server/observe"}},
    {"server/http",
     {"public", "limiter.h", "gate.h", "base", "protocol", "server/loop", "server/observe", "server/rls"}},
    {"server/resp", {"public", "limiter.h", "gate.h", "base", "resp", "protocol", "server/loop", "server/observe"}},
    {"server/grpc",
     {"public", "limiter.h", "gate.h", "base", "protocol", "server/loop", "server/observe", "server/rls"}},
    {"server/admin", {"public", "base", "protocol", "control", "server/observe", "server/http"}},
    {"server/life", {"public", "base", "log", "server/loop"}},
    {"server",
     {"public", "limiter.h", "gate.h", "base", "envoy", "resp", "protocol", "log", "control", "server/loop",
      "server/observe", "server/http", "server/resp", "server/grpc", "server/admin", "server/life"}},
    {"load_generator", {"public", "base", "net"}},
    {"cli", {"public", "gate.h", "base", "limiter", "envoy", "net", "protocol", "control", "load_generator"}},
    {"serve",
     {"public", "limiter.h", "gate.h", "base", "redis", "fleet", "log", "control", "server/loop", "server/observe",
      "server/http", "server", "cli"}},
    {"main", {"serve"}},
};

// Which other headers a layer, or a single file, may include: "io" are files and terminals, "library" is any header of
// a third party.
const std::map<std::string, std::set<std::string>> kMayKnow = {
    {"base", {"io"}},
    {"table", {"io"}},
    {"limiter", {"io"}},
    {"usage", {"io"}},
    {"plans", {"io", "library"}},
    {"net", {"io", "sockets"}},
    {"redis", {"io", "sockets"}},
    {"fleet", {"io", "sockets"}},
    {"protocol", {"library"}},
    {"log", {"io"}},
    {"control", {"io"}},
    {"server/loop", {"io", "sockets", "library"}},
    {"server/observe", {"io"}},
    {"server/grpc", {"library"}},
    {"server/admin", {"io"}},
    {"server/life", {"io", "sockets"}},
    {"server", {"io"}},
    {"load_generator", {"io", "sockets"}},
    {"cli", {"io", "library"}},
    {"serve", {"io", "library"}},
    {"src/base/fiber.cc", {"library"}},                 // the sanitizers' headers
    {"src/cli/top_command.cc", {"sockets"}},            // poll() of the keyboard
    {"src/control/file_watch.cc", {"sockets"}},         // poll(), on what inotify says
    {"src/plans/postgres_connection.cc", {"sockets"}},  // poll(), on libpq's socket
    {"src/plans/sqlite_source.cc", {"sockets"}},        // poll(), to be woken
    {"src/policy/yaml.cc", {"library"}},                // the one file that sees yaml-cpp
    {"src/net/tls.cc", {"library"}},                    // the one file of that folder that sees OpenSSL
};

const std::set<std::string> kSocketHeaders = {"sys/socket.h", "sys/un.h",     "sys/epoll.h",   "poll.h",
                                              "netdb.h",      "netinet/in.h", "netinet/tcp.h", "arpa/inet.h"};
const std::set<std::string> kIoHeaders = {"fstream",  "iostream", "cstdio",     "stdio.h",    "filesystem",
                                          "unistd.h", "fcntl.h",  "sys/stat.h", "sys/mman.h", "syslog.h"};

// Functions of one twin that the other has no use for.
const std::set<std::string> kWithoutTwin = {
    "mul_div",           // Lua: C++ multiplies in 128 bits
    "bucket_of",         // C++: packs the word that Lua keeps as two numbers
    "fixed_window_end",  // C++: Redis's clock is not corrected
};

bool is_cpp(std::string_view path) { return path.ends_with(".h") || path.ends_with(".cc"); }
bool is_test(std::string_view path) { return path.ends_with("_test.cc"); }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// How a comment begins in this kind of file; nothing where we ask for none.
std::optional<std::string_view> comment_mark(std::string_view path) {
  if (is_cpp(path)) return "//";
  if (path.ends_with(".lua")) return "--";
  for (const std::string_view ending : {".sh", ".bash", ".cmake", "CMakeLists.txt"}) {
    if (path.ends_with(ending)) return "#";
  }
  if (path == "dev" || path == ".ci/run") return "#";
  return std::nullopt;
}

std::string layer_of(std::string_view path) {
  if (path.starts_with("include/weir/")) {
    const std::string header(path.substr(path.rfind('/') + 1));
    return kMayInclude.count(header) > 0 ? header : "public";
  }
  if (!path.starts_with("src/")) return "";
  path.remove_prefix(4);
  const std::size_t folder = path.rfind('/');  // src/server/ has folders of its own
  return std::string(path.substr(0, folder == path.npos ? path.find('.') : folder));
}

// The layer that `#include "name"` in the file at `path` reaches.
std::string layer_of_include(const std::string& path, const std::string& name, const Paths& known) {
  const std::string beside = path.substr(0, path.rfind('/') + 1) + name;
  if (known.count(beside) > 0) return layer_of(beside);
  if (name.starts_with("weir/")) return layer_of("include/" + name);
  return layer_of("src/" + name);
}

// The kind of the header <name>; empty for the rest of the standard library.
std::string outside_of(const std::string& name) {
  if (kSocketHeaders.count(name) > 0) return "sockets";
  if (kIoHeaders.count(name) > 0) return "io";
  if (name.starts_with("sys/")) return "io";
  if (name == "sqlite3.h" || name == "libpq-fe.h") return "library";
  if (name.find('/') != name.npos || name.ends_with(".hpp")) return "library";
  return "";
}

void check_outside(const File& file, std::size_t line, const std::string& name, Findings& findings) {
  const std::string layer = layer_of(file.path), outside = outside_of(name);
  if (layer.empty() || outside.empty() || is_test(file.path) || file.path.ends_with("_fixture.h")) return;
  if (name.starts_with("tl/")) {
    if (file.path != "include/weir/result.h") {
      findings.push_back({file.path, line, "<" + name + ">: include \"weir/result.h\", which alone names it"});
    }
    return;
  }
  for (const std::string& who : {layer, file.path}) {
    const auto row = kMayKnow.find(who);
    if (row != kMayKnow.end() && row->second.count(outside) > 0) return;
  }
  findings.push_back({file.path, line,
                      "<" + name + "> (" + outside + ") in layer '" + layer +
                          "', which does without; take the data as an argument, or move this to a layer that may"});
}

// Whether a .cc has a header, or a test a header or a .cc, that introduces it.
bool says_more_elsewhere(const std::string& path, const Paths& known) {
  std::string stem = path.substr(0, path.rfind('.'));
  if (is_test(path)) stem.resize(stem.rfind('_'));
  const std::string name = stem.substr(stem.rfind('/') + 1);
  return known.count(stem + ".h") > 0 || known.count("include/weir/" + name + ".h") > 0 ||
         (is_test(path) && known.count(stem + ".cc") > 0);
}

std::vector<std::string> functions_of(const std::string& text, const std::regex& definition) {
  std::vector<std::string> names;
  for (const std::string& line : lines_of(text)) {
    if (std::smatch match; std::regex_search(line, match, definition)) names.push_back(match[1]);
  }
  return names;
}

std::size_t line_naming(const File& file, const std::string& name) {
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (std::regex_search(lines[i], std::regex("\\b" + name + "\\("))) return i + 1;
  }
  return 1;
}

std::size_t characters(std::string_view line) {  // UTF-8: all bytes but continuations
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string strip(std::string_view path, std::string_view text, Strings strings) {
  const std::string_view mark = comment_mark(path).value_or("//");
  std::string out(text);
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote || c == '\n') {
        quote = 0;
      } else {
        const std::size_t width = c == '\\' ? 2 : 1;
        for (std::size_t k = i; k < std::min(i + width, text.size()); ++k) {
          if (strings == Strings::blank && text[k] != '\n') out[k] = ' ';
        }
        i += width - 1;
      }
    } else if (text.substr(i, mark.size()) == mark) {
      while (i < text.size() && text[i] != '\n') out[i++] = ' ';
    } else if (is_cpp(path) && text.substr(i, 2) == "/*") {
      const std::size_t end = std::min(text.find("*/", i + 2), text.size() - 2) + 2;
      for (; i < end; ++i) out[i] = text[i] == '\n' ? '\n' : ' ';
      --i;
    } else if (c == '"' || (c == '\'' && (i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1]))))) {
      quote = c;  // an apostrophe after a digit separates digits
    }
  }
  return out;
}

Findings check_layers(const File& file, const Paths& known) {
  static const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+))");
  Findings findings;
  if (!is_cpp(file.path)) return findings;
  const std::string layer = layer_of(file.path);
  const auto lines = lines_of(strip(file.path, file.text, Strings::keep));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (!std::regex_search(lines[i], match, include)) continue;
    if (match[1] == "<") {
      check_outside(file, i + 1, match[2], findings);
      continue;
    }
    if (is_test(file.path) && known.count("tests/" + match[2].str()) > 0) continue;  // what tests share
    const std::string target = layer_of_include(file.path, match[2], known);
    if (layer.empty() || target == layer) continue;
    const auto row = kMayInclude.find(layer);
    if (row == kMayInclude.end()) {
      findings.push_back({file.path, i + 1, "no layer is called '" + layer + "'; add its row to tests/tidy.cc"});
    } else if (row->second.count(target) == 0) {
      std::string allowed;
      for (const std::string& name : row->second) allowed += " " + name;
      findings.push_back({file.path, i + 1,
                          "\"" + match[2].str() + "\" is of layer '" + target + "'; '" + layer +
                              "' may include only:" + (allowed.empty() ? " itself" : allowed)});
    }
  }
  return findings;
}

Findings check_folder_table(const File& contributing) {
  static const std::regex row(R"(^\| `(?:include/weir/|src/([\w/]*\w)(?:/|\.\w+))` \|.*\| ([^|]*) \|$)");
  static const std::regex name(R"([a-z_/]+(?:\.h)?)");
  Findings findings;
  std::set<std::string> seen;
  const auto lines = lines_of(contributing.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (!std::regex_search(lines[i], match, row)) continue;
    const std::string layer = match[1].matched ? match[1].str() : "public", cell = match[2];
    std::set<std::string> listed;
    for (std::sregex_iterator at(cell.begin(), cell.end(), name), end; at != end; ++at) listed.insert(at->str());
    if (cell == "the standard library only") listed.clear();
    seen.insert(layer);
    const auto wanted = kMayInclude.find(layer);
    if (wanted == kMayInclude.end()) {
      findings.push_back({contributing.path, i + 1, "no layer is called '" + layer + "'"});
    } else if (listed != wanted->second) {
      std::string all;
      for (const std::string& one : wanted->second) all += " " + one;
      findings.push_back({contributing.path, i + 1, "'" + layer + "' may include:" + all});
    }
  }
  for (const auto& [layer, unused] : kMayInclude) {
    if (seen.count(layer) == 0 && !layer.ends_with(".h")) {
      findings.push_back({contributing.path, 1, "the table of folders leaves out '" + layer + "'"});
    }
  }
  return findings;
}

Findings check_clock(const File& file) {
  static const std::regex reads(
      R"(\b(system|steady|high_resolution|utc|tai|gps|file)_clock\b|\bclock_type\b|\bclock_gettime\b|\bgettimeofday\b)"
      R"(|\btimespec_get\b|\bstd::time\b|\btime\s*\(\s*(nullptr|NULL|0|&)|\bstd::clock\b)"
      R"(|\brdtscp?\b|\bos\.(time|clock)\b)");
  Findings findings;
  if (layer_of(file.path).empty() || file.path == "src/base/clock.cc" || is_test(file.path)) return findings;
  if (!is_cpp(file.path) && !file.path.ends_with(".lua")) return findings;
  const auto lines = lines_of(strip(file.path, file.text, Strings::blank));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto has = [&](const char* word) { return lines[i].find(word) != std::string::npos; };
    if (!has("clock") && !has("time") && !has("tsc")) continue;  // a regular expression takes long
    if (std::smatch match; std::regex_search(lines[i], match, reads)) {
      findings.push_back({file.path, i + 1,
                          "'" + match.str() +
                              "' reads the time; take `now` as an argument or a "
                              "weir::Clock: only src/base/clock.cc asks the system"});
    }
  }
  return findings;
}

Findings check_one_definition(const std::vector<File>& files) {
  static const std::regex opens(R"(^namespace ([\w:]*) ?\{)");
  static const std::regex function(R"(^(?:inline |constexpr |\[\[\w+\]\] )*[\w:][\w:<>,*& ]* [*&]?(\w+\([^()]*\)))");
  static const std::regex type(
      R"(^(?:struct|class|enum class) (?:alignas\([^)]*\) )?(\w+)(?: final)?(?: :[^:].*)? \{)");
  std::map<std::string, std::string> first;
  Findings findings;
  for (const File& file : files) {
    if (layer_of(file.path).empty() || !is_cpp(file.path) || is_test(file.path)) continue;
    std::vector<std::string> inside;
    const auto lines = lines_of(file.text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::smatch match;
      if (std::regex_search(lines[i], match, opens)) {
        inside.push_back(match[1].length() == 0 ? file.path : match[1].str());  // an unnamed one is the file's own
      } else if (lines[i].starts_with("}  // namespace") && !inside.empty()) {
        inside.pop_back();
      } else if (std::regex_search(lines[i], match, type) ||
                 (file.path.ends_with(".h") && std::regex_search(lines[i], match, function))) {
        std::string name;
        for (const std::string& space : inside) name += space + "::";
        const std::string place = file.path + ":" + std::to_string(i + 1);
        const auto [earlier, is_new] = first.try_emplace(name + match[1].str(), place);
        if (is_new || earlier->second.starts_with(file.path + ":")) continue;  // declared, then defined
        findings.push_back(
            {file.path, i + 1, match[1].str() + " is defined in " + earlier->second + ", too; rename one"});
      }
    }
  }
  return findings;
}

Findings check_namespaces(const File& file, const std::string& public_text) {
  static const std::regex opens(R"(^namespace (weir[\w:]*) \{)");
  static const std::regex forward(R"(^(?:class|struct|enum class|template <.*> class) [\w: ]+;$)");
  static const std::regex defines(R"(^(?:(?:struct|class|enum class) (\w+)[\w:]*(?: final)?(?: : .*)? \{)"
                                  R"(|(?:[\w:<>,*&\[\] ]+ [*&]?)?((?:\w+::)*~?\w+)\(.*))");
  Findings findings;
  if (!file.path.starts_with("src/") || !is_cpp(file.path) || file.path == "src/main.cc") return findings;
  std::string own = "weir::" + file.path.substr(4, file.path.rfind('/') - 4);
  for (std::size_t at = own.find('/'); at != std::string::npos; at = own.find('/')) own.replace(at, 1, "::");
  const auto lines = lines_of(file.text);
  std::string inside;
  bool is_unnamed = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    const std::string& line = lines[i];
    if (line.starts_with("namespace weir") && std::regex_search(line, match, opens)) {
      inside = match[1];
    } else if (line.starts_with("}  // namespace weir")) {
      inside.clear();
    } else if (line == "namespace {" || line == "}  // namespace") {
      is_unnamed = line == "namespace {";
    } else if (is_unnamed || inside.empty() || inside == own || inside.starts_with(own + "::") ||
               inside == "weir::test" || line.empty() || line[0] == ' ') {
      continue;
    } else if (inside != "weir") {
      if (std::regex_search(line, forward)) continue;
      findings.push_back({file.path, i + 1, "only declares classes of " + inside + "; the rest is in " + own});
      inside.clear();
    } else if (std::regex_search(line, match, defines)) {
      std::string name = match[1].matched ? match[1] : match[2];
      name = name.substr(0, name.find("::"));
      if (std::regex_search(public_text, std::regex("\\b" + name + "\\b"))) continue;
      findings.push_back({file.path, i + 1, "include/weir does not declare " + name + "; it is in " + own});
    }
  }
  return findings;
}

Findings check_twins(const File& lua, const File& header) {
  static const std::regex lua_function(R"(^\s*local\s+function\s+(\w+))");
  static const std::regex cpp_function(R"(^(?:\[\[[\w:]+\]\] )?[A-Za-z_][\w:<>,&* ]*[&* ](\w+)\()");
  static const std::regex impure(R"(\b(redis|os|io)\.\w+|\bmath\.random\w*|\bstruct\.\w+)");
  const auto in_lua = functions_of(strip(lua.path, lua.text, Strings::blank), lua_function);
  const auto in_cpp = functions_of(strip(header.path, header.text, Strings::blank), cpp_function);
  const std::size_t slash = lua.path.rfind('/') + 1;
  const std::string stem = lua.path.substr(slash, lua.path.rfind('.') - slash);
  const auto has = [](const auto& names, const std::string& name) { return std::ranges::count(names, name) > 0; };

  Findings findings;
  std::vector<std::string> shared;
  for (const std::string& name : in_lua) {
    if (has(in_cpp, name)) {
      shared.push_back(name);
    } else if (kWithoutTwin.count(name) == 0) {
      findings.push_back(
          {lua.path, line_naming(lua, name), name + " has no twin in " + header.path + "; write it there"});
    }
  }
  std::vector<std::string> order;
  for (const std::string& name : in_cpp) {
    if (has(in_lua, name)) {
      order.push_back(name);
    } else if (name.starts_with(stem + "_") && kWithoutTwin.count(name) == 0) {
      findings.push_back(
          {header.path, line_naming(header, name), name + " has no twin in " + lua.path + "; write it there"});
    }
  }
  for (std::size_t i = 0; i < std::min(order.size(), shared.size()); ++i) {
    if (order[i] == shared[i]) continue;
    findings.push_back({lua.path, line_naming(lua, shared[i]),
                        shared[i] + " stands where " + header.path + " has " + order[i] +
                            "; keep twins in one order, so that they can be read side by side"});
    break;
  }
  const auto lines = lines_of(strip(lua.path, lua.text, Strings::blank));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (std::smatch match; std::regex_search(lines[i], match, impure)) {
      findings.push_back({lua.path, i + 1, "'" + match.str() + "': a twin is pure; do this in src/fleet/script.lua"});
    }
  }
  return findings;
}

Findings check_head(const File& file, const Paths& known) {
  static const std::regex word(R"([A-Za-z][A-Za-z'_-]+)");
  const auto mark = comment_mark(file.path);
  if (!mark) return {};
  std::size_t lines = 0, words = 0;
  for (const std::string& line : lines_of(file.text)) {
    if (lines == 0 && line.starts_with("#!")) continue;
    if (!line.starts_with(*mark)) break;
    words += static_cast<std::size_t>(std::distance(std::sregex_iterator(line.begin(), line.end(), word), {}));
    ++lines;
  }
  if (file.path.ends_with(".cc") && says_more_elsewhere(file.path, known)) {
    if (words >= kBodyWordsMin) return {};
    return {{file.path, 1, "begin with a sentence: what its header does not say, or what is tested here"}};
  }
  if (lines >= kHeadLinesMin && words >= kHeadWordsMin) return {};
  return {{file.path, 1,
           "begin with two to ten lines of prose: what this is, why it is this way, where it is tested (found " +
               std::to_string(lines) + " lines, " + std::to_string(words) + " words)"}};
}

Findings check_named_tests(const File& file, const Paths& known) {
  static const std::regex test(R"(\b(\w+_test\.cc)\b)");
  Findings findings;
  if (is_test(file.path) || !is_cpp(file.path)) return {};
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (!lines[i].starts_with("//") || !std::regex_search(lines[i], match, test)) continue;
    const std::string name = match[1];
    const auto is_named = [&](const std::string& path) { return path.ends_with("/" + name); };
    if (std::none_of(known.begin(), known.end(), is_named)) {
      findings.push_back({file.path, i + 1, name + " is not there: write it, or name the test that is"});
    }
  }
  return findings;
}

Findings check_text(const File& file) {
  static const std::regex promise(R"(\b(TO)"
                                  R"(DO|FIX)"
                                  R"(ME|X)"
                                  R"(XX)\b(?!\s*\((#\d+|https?:)))");
  const bool source = comment_mark(file.path).has_value();
  const auto lines = lines_of(file.text);
  Findings findings;
  const auto found = [&](std::size_t line, std::string message) {
    findings.push_back({file.path, line, std::move(message)});
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.find('\t') != line.npos) found(i + 1, "a tab; indent with blanks, write \\t in a string");
    if (!line.empty() && (line.back() == ' ' || line.back() == '\r')) found(i + 1, "blanks at the end; remove them");
    if (source && characters(line) > kLineMax) {
      found(i + 1, std::to_string(characters(line)) + " characters; break the line before 120");
    }
    if (line.size() < 4 * kLineMax && std::regex_search(line, promise)) {
      found(i + 1, "a promise without a reference; do it now, or name who keeps it: (#12) or (https://...)");
    }
  }
  if (!file.text.empty() && file.text.back() != '\n') found(lines.size(), "no newline at the end of the file; add one");
  if (source && lines.size() > kFileLinesMax) {
    found(lines.size(), std::to_string(lines.size()) + " lines; split the file by what its parts mean (600 at most)");
  }
  if (file.path.ends_with(".h") && std::find(lines.begin(), lines.end(), "#pragma once") == lines.end()) {
    found(1, "a header without `#pragma once`; add it below the head comment");
  }
  return findings;
}

Findings check_machine_paths(const File& file) {
  static const std::regex paths(R"((^|[\s"'`(=:,])/(wo)"
                                R"(rk|ro)"
                                R"(ot|ho)"
                                R"(me)/)");
  Findings findings;
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].size() < 2000 && std::regex_search(lines[i], paths)) {
      findings.push_back({file.path, i + 1, "a path of somebody's machine; write it from the root of the checkout"});
    }
  }
  return findings;
}

std::string to_string(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.path + ":" + std::to_string(finding.line) + ": " + finding.message + "\n";
  }
  return text;
}

}  // namespace weir::tidy
