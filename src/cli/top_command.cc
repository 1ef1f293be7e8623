// `weir top`: a live view of a running server: rates, rules and top clients.
//
// Keys: `d` and `h` sort by denials or hits, space pauses and continues, `q` quits. Without a terminal, or with
// --once, it prints one screen. Exit codes: 0 quit, 1 no answer from the server. One thread. Tested by
// tests/server/top.sh, in tmux.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/remote.h"
#include "cli/top_screen.h"
#include "weir/clock.h"

namespace weir::cli {
namespace {

volatile std::sig_atomic_t must_leave = 0;

// Puts the terminal into raw mode on the alternate screen, and restores it in the destructor.
class Terminal {
 public:
  Terminal() {
    tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    put("\x1b[?1049h\x1b[?25l");  // alternate screen, no cursor
    struct sigaction action {};
    action.sa_handler = [](int) { must_leave = 1; };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    put("\x1b[?25h\x1b[?1049l");
    tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  static TopSize size() {
    winsize window{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return {};
    return {window.ws_col, window.ws_row};
  }

  static void put(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  // Returns the key pressed within the time, or 0.
  static char key(int wait_ms) {
    pollfd keyboard{STDIN_FILENO, POLLIN, 0};
    char pressed = 0;
    if (poll(&keyboard, 1, wait_ms) <= 0) return 0;
    if (read(STDIN_FILENO, &pressed, 1) != 1) must_leave = 1;  // the terminal is gone
    return pressed;
  }

 private:
  termios before_{};
};

bool has_colour() { return std::getenv("NO_COLOR") == nullptr; }

// Redraws from the top left corner, clearing the rest of each line and everything below.
std::string over_the_last(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);  // on the last line a newline would scroll the screen
  std::string out = "\x1b[H";
  while (true) {
    const std::size_t end = text.find('\n');
    out.append(end == text.npos ? "\x1b[J" : "\x1b[K").append(text.substr(0, end));
    if (end == text.npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

class TopCommand {
 public:
  explicit TopCommand(CLI::App& app);

  Result<int> run();

 private:
  Result<TopAnswers> ask() const;
  Result<int> print_once();
  Result<int> live();

  Remote server_{"--admin", "127.0.0.1:8082", std::chrono::seconds{2}};
  TopScreen screen_;
  std::string by_ = "denied";
  double every_ = 1;
  bool once_ = false;
};

TopCommand::TopCommand(CLI::App& app) {
  app.add_option("--by", by_, "Sort keys by hits or denied")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"hits", "denied"}))
      ->capture_default_str();
  app.add_option("--every", every_, "Refresh interval in seconds")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 60.0))
      ->capture_default_str();
  app.add_flag("--once", once_, "Print one screen and exit");
  server_.add(app, "Admin API address of the server");
  server_.add_token(app);
}

Result<int> TopCommand::run() {
  const bool has_terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  return once_ || !has_terminal ? print_once() : live();
}

Result<TopAnswers> TopCommand::ask() const {
  TopAnswers answers;
  const auto got = server_.get({{"/admin/v1/status", &answers.status},
                                {"/admin/v1/rules", &answers.rules},
                                {"/admin/v1/top?n=50&by=" + by_, &answers.keys}});
  if (!got) return fail(got.error());
  return answers;
}

// Polls twice, so that there are rates.
Result<int> TopCommand::print_once() {
  const auto clock = make_system_clock();
  for (int look = 0; look < 2; ++look) {
    if (look > 0) poll(nullptr, 0, static_cast<int>(every_ * 1000));
    auto answers = ask();
    if (!answers) return fail(answers.error());
    screen_.take(*std::move(answers), clock->now());
  }
  std::fputs(screen_.draw({.width = 200, .height = 1'000}, by_, false).c_str(), stdout);
  return 0;
}

Result<int> TopCommand::live() {
  const auto clock = make_system_clock();
  auto first = ask();
  if (!first) return fail(first.error());
  const Terminal terminal;
  screen_.take(*std::move(first), clock->now());
  for (bool is_stopped = false; must_leave == 0;) {
    Terminal::put(over_the_last(screen_.draw(Terminal::size(), by_, has_colour())));
    const char key = Terminal::key(static_cast<int>(every_ * 1000));
    if (key == 'q') break;
    if (key == ' ') is_stopped = !is_stopped;
    if (key == 'h' || key == 'd') by_ = key == 'h' ? "hits" : "denied";
    if (is_stopped) continue;
    auto answers = ask();
    screen_.take(answers ? *std::move(answers) : TopAnswers{.problem = answers.error().message}, clock->now());
  }
  return 0;
}

}  // namespace

const Command kTopCommand{"top", "Watch a running server: rates, rules and top clients", declare<TopCommand>};

}  // namespace weir::cli
