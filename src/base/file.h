// Reads a whole file up to a bound, and replaces a file as a whole.
//
//   auto text = weir::base::read_file("weir.yaml", 1 << 20);
//   auto written = weir::base::replace_file("weir.state.usage/2026-09-21.0", *text);
//
// A reader, and a machine that loses power, finds the old file or the new one, never a part of either. Only the owner
// may read the new file. Links that have the temporary name are removed, not followed. Any thread; writers of one file
// that do not exclude each other need different temporary names. Tested by file_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "weir/result.h"

namespace weir::base {

// Reads the rest of an open file. Fails with out_of_range if it is longer. `path` is its name in errors, `likely_size`
// a hint.
Result<std::string> read_rest(int file, const std::string& path, std::size_t bytes_max,
                              std::size_t likely_size = 4'095);

enum class Links : std::uint8_t { followed, refused };

// Reads a regular file. Other kinds are refused, because reading a pipe could block. Fails with not_found if there is
// no file, with out_of_range if it is longer, otherwise with unavailable.
Result<std::string> read_file(const std::string& path, std::size_t bytes_max, Links links = Links::followed);

// The same for at most the first `bytes` bytes of a file of any length.
Result<std::string> read_start(const std::string& path, std::size_t bytes);

enum class FileLock : std::uint8_t { none, exclusive };

// Writes `text` to `path` + `ending`, and renames that. Returns the new file, open to append; with FileLock::exclusive
// it is locked (flock) before it gets its name.
Result<Descriptor> replace_file(const std::string& path, std::string_view text, const std::string& ending = ".new",
                                FileLock lock = FileLock::none);

// Makes a new name in the folder of `path` durable. A folder that cannot be synchronised is ignored.
void sync_folder_of(const std::string& path);

// Returns false, with errno set, if it could not write everything.
bool write_all(int file, std::string_view text);

}  // namespace weir::base
