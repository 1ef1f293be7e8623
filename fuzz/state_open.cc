// Fuzzes state files: a file is refused, or it opens as a table on which every request returns. Nothing crashes.
//
// Random bytes would fail the checksum of the header. So an input is a list of patches to a valid file, which has keys
// of every algorithm. The bits of its first byte say, for example, whether the target corrects the checksum afterwards.
// If that byte is 0, the rest of the input is the whole file.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/limit.h"
#include "fuzz.h"
#include "table/contents.h"
#include "table/table.h"

namespace {

using namespace weir;
using namespace weir::table;

constexpr std::int64_t kHour = 3'600'000'000;
// The boot is the current one. Time and secret are fixed, so that an input has the same effect in every run.
const std::int64_t kNow = 1'700'000'000'000'000;
const ClockReading kReading{read_clocks().boot_id, kNow, read_clocks().boot_us};

const std::vector<Limit>& limits() {
  static const std::vector<Limit> all = {
      *algorithm::make_window(Algorithm::fixed_window, 100, kHour),
      *algorithm::make_window(Algorithm::sliding_window, 100, kHour),
      *algorithm::make_window(Algorithm::sliding_window, kPermitsMax, 1'000'000),
      *algorithm::make_bucket(Algorithm::token_bucket, 50, kHour, 80),
      *algorithm::make_window(Algorithm::sliding_log, 20, kHour),
      *algorithm::make_window(Algorithm::sliding_log, 20, 1'000 * kHour),
      *algorithm::make_window(Algorithm::concurrency, 9, kHour),
  };
  return all;
}

// Makes requests of every kind. Their answers do not matter, only that they return.
void use(Table& table, std::int64_t now) {
  std::vector<Debit> debits;
  for (std::size_t i = 0; i < 3 * limits().size(); ++i) {
    const Limit& limit = limits()[i % limits().size()];
    const bool in_flight = limit.algorithm == Algorithm::concurrency;
    Debit debit{table.key_name(limit.algorithm, "key" + std::to_string(i)), &limit, 1 + static_cast<std::int64_t>(i),
                in_flight ? Act::acquire : Act::charge, in_flight ? "12345678" : ""};
    if (i % 3 == 0 && !in_flight) table.charge_fast(debit, now);
    static_cast<void>(table.charge({&debit, 1}, {}, now));
    debits.push_back(debit);
  }
  Ticket ticket{.name = table.ticket_name(kRequest, "id"), .kind = kRequest, .expires_us = now + kHour};
  static_cast<void>(table.charge(debits, {&ticket, 1}, now + 1));
  Debit reset = debits.back();
  reset.act = Act::forget;
  reset.limit = nullptr;
  static_cast<void>(table.charge({&reset, 1}, {}, now + 2));
  table.size();
  table.counters();
}

// A file in memory, with a path below /proc, so that a table can open it by name.
class File {
 public:
  File() : fd_(memfd_create("state", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    const std::string name = "/tmp/weir_fuzz_state." + std::to_string(getpid());
    auto draft = Draft::make(name, *geometry_for(300, 0), {{1, 2}, kNow}, kReading);
    WEIR_ASSERT(draft && draft->publish());
    {
      auto table = Table::open({.file = name, .clock = std::make_shared<ManualClock>(Micros{kNow})});
      WEIR_ASSERT(table.has_value());
      use(**table, kNow);
      const auto* bytes = reinterpret_cast<const char*>((*table)->region().base());
      sound_.assign(bytes, (*table)->region().bytes());
    }
    unlink(name.c_str());
  }
  const std::string& sound() const { return sound_; }
  const std::string& path() const { return path_; }
  void write(std::string_view bytes) {
    WEIR_ASSERT(ftruncate(fd_, static_cast<off_t>(bytes.size())) == 0);
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t n = pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      WEIR_ASSERT(n > 0);
      done += static_cast<std::size_t>(n);
    }
  }

 private:
  int fd_;
  std::string path_, sound_;
};

// Removes bytes from the front of the input and returns them as a number; missing bytes are 0.
std::uint64_t take(std::string_view& input, std::size_t bytes) {
  std::uint64_t value = 0;
  const std::size_t n = std::min(bytes, input.size());
  std::memcpy(&value, input.data(), n);
  input.remove_prefix(n);
  return value;
}

// A part of the file that a patch may change.
struct Area {
  std::uint64_t from, bytes;
};

// The places of the words that are not 0. Most of a small table is empty, so most patches change one of these.
std::vector<std::uint64_t> words_in_use(const std::string& bytes) {
  std::vector<std::uint64_t> places;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    if (take(rest, 8) != 0) places.push_back(bytes.size() - rest.size() - 8);
  }
  return places;
}

std::vector<Area> areas(const Header& header) {
  const Layout at = layout_of(header.pages, header.arena_lines);
  return {{0, offsetof(Header, checksum)},
          {offsetof(Header, boot_id), sizeof(Header) - offsetof(Header, boot_id)},
          {at.registry, at.participants - at.registry},
          {at.participants, 2 * sizeof(Participant)},
          {at.participants, at.pages - at.participants},
          {at.pages, at.arena - at.pages},
          {at.arena, at.bytes - at.arena},
          {at.arena, 4096}};
}

void patch(std::string& bytes, std::string_view input, const std::vector<std::uint64_t>& in_use) {
  const std::vector<Area> all = areas(*reinterpret_cast<const Header*>(bytes.data()));
  while (!input.empty()) {
    const std::uint64_t which = take(input, 1), place = take(input, 2);
    const Area& area = all[which % all.size()];
    const std::uint64_t at = which < 128 ? in_use[place % in_use.size()] : area.from + place * 8 % area.bytes;
    const std::uint64_t length = std::min({take(input, 1) % 65, bytes.size() - at, std::uint64_t{input.size()}});
    std::memcpy(bytes.data() + at, input.data(), length);
    input.remove_prefix(length);
  }
}

void look_at(const std::string& path) {
  auto mapping = open_copy(path, CopyTo::look);
  if (!mapping) return;
  Contents contents(std::move(*mapping), nullptr, read_clocks());
  contents.walk([](const Held& held) { WEIR_ASSERT(held.limit != nullptr); });
}

}  // namespace

void fuzz(std::string_view input) {
  static File file;
  const std::uint64_t mode = take(input, 1);
  if (mode == 0) {
    file.write(input);
  } else {
    std::string bytes = file.sound();
    const Header sound = *reinterpret_cast<const Header*>(bytes.data());
    static const std::vector<std::uint64_t> in_use = words_in_use(bytes);
    patch(bytes, input, in_use);
    auto* header = reinterpret_cast<Header*>(bytes.data());
    if ((mode & 1) != 0) std::memcpy(bytes.data(), &sound, offsetof(Header, boot_id));
    if ((mode & 2) != 0) header->checksum = checksum_of(*header);
    if ((mode & 4) != 0) header->clean = 1;        // so that the table repairs nothing
    if ((mode & 8) != 0) header->boot_id[0] ^= 1;  // as after a crash of the machine
    file.write(bytes);
  }
  if ((mode & 32) != 0) return look_at(file.path());
  const auto clock = std::make_shared<ManualClock>(Micros{kNow});
  auto table = Table::open({.file = file.path(), .clock = (mode & 16) != 0 ? nullptr : clock});
  if (!table) return;
  const std::int64_t now = (*table)->clock()->now().count();
  use(**table, now);
  if ((mode & 64) != 0) (*table)->sweep(now + 3, 4);
}
