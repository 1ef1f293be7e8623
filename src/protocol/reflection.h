// gRPC's server reflection: tools ask what services there are and get the files that describe them.
//
// The files are those of proto/, compiled by the build and embedded. v1 and v1alpha have the same bytes. A file is sent
// with all that it imports, since a tool asks for these next. Immutable once made; any thread. Tested by
// reflection_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir {

// A serialized FileDescriptorSet: every file behind those that it imports. Made by cmake/descriptors.cmake.
std::string_view descriptor_set();

class Reflection {
 public:
  explicit Reflection(std::string_view set = descriptor_set());

  // Appends the ServerReflectionResponse to a ServerReflectionRequest. What is not known is told in the response; an
  // error is only that the message is none.
  Result<void> answer(std::string_view request, std::string& out) const;

  const std::vector<std::string_view>& services() const { return services_; }

 private:
  struct File {
    std::string_view bytes;
    std::string_view name;
    std::string_view package;
    std::vector<std::string_view> imports;
    std::vector<std::string> symbols;  // of messages, enums, services and their methods
  };

  const File* by_name(std::string_view name) const;
  const File* by_symbol(std::string_view symbol) const;
  void add_with_imports(const File& file, std::vector<const File*>& out) const;

  std::vector<std::string> service_names_;
  std::vector<std::string_view> services_;
  std::vector<File> files_;
};

}  // namespace weir
