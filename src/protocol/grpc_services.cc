// Reads the embedded descriptors once, and encodes the messages with protozero. See grpc_services.h.
#include "protocol/grpc_services.h"

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "protocol/grpc_message.h"
#include "protocol/protobuf_read.h"

namespace weir::protocol {
namespace {

using protozero::pbf_reader;
using protozero::pbf_writer;
using protozero::tag_and_type;

// Returns the name of a descriptor, which is always field 1.
std::string_view name_of(pbf_reader reader) { return reader.next(1, kBytes) ? text_of(reader) : std::string_view{}; }

std::string within(std::string_view scope, std::string_view name) {
  return scope.empty() ? std::string(name) : std::string(scope) + "." + std::string(name);
}

// Adds the name of a message, and of the messages (3) and enums (4) nested in it.
void add_message(pbf_reader reader, std::string_view scope, std::vector<std::string>& out) {
  const std::string name = within(scope, name_of(reader));
  out.push_back(name);
  while (reader.next()) {
    if (reader.tag_and_type() == tag_and_type(3, kBytes)) {
      add_message(reader.get_message(), name, out);
    } else if (reader.tag_and_type() == tag_and_type(4, kBytes)) {
      out.push_back(within(name, name_of(reader.get_message())));
    } else {
      reader.skip();
    }
  }
}

void add_service(pbf_reader reader, const std::string& name, std::vector<std::string>& out) {
  out.push_back(name);
  while (reader.next()) {
    if (reader.tag_and_type() == tag_and_type(2, kBytes)) {
      out.push_back(within(name, name_of(reader.get_message())));
    } else {
      reader.skip();
    }
  }
}

enum class Question : std::uint32_t { none = 0, file = 3, symbol = 4, extension = 5, extensions = 6, services = 7 };

struct Asked {
  std::string_view host{};
  Question question = Question::none;
  std::string_view name{};
};

Asked read_question(pbf_reader reader) {
  Asked asked;
  while (reader.next()) {
    const std::uint32_t number = reader.tag();
    if (number >= 3 && number <= 7 && take_text(reader, number, asked.name)) {
      asked.question = static_cast<Question>(number);
    } else if (!take_text(reader, 1, asked.host)) {
      reader.skip();
    }
  }
  return asked;
}

void add_error(pbf_writer& out, GrpcStatus status, std::string_view message) {
  pbf_writer error(out, 7);
  error.add_int32(1, static_cast<std::int32_t>(status));
  error.add_bytes(2, message.data(), message.size());
}

}  // namespace

Reflection::Reflection(std::string_view set) {
  pbf_reader all(set.data(), set.size());
  while (all.next(1, kBytes)) {
    File file;
    file.bytes = text_of(all);
    pbf_reader reader(file.bytes.data(), file.bytes.size());
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case tag_and_type(1, kBytes):
          file.name = text_of(reader);
          break;
        case tag_and_type(2, kBytes):
          file.package = text_of(reader);
          break;
        case tag_and_type(3, kBytes):
          file.imports.push_back(text_of(reader));
          break;
        case tag_and_type(4, kBytes):
          add_message(reader.get_message(), file.package, file.symbols);
          break;
        case tag_and_type(5, kBytes):
          file.symbols.push_back(within(file.package, name_of(reader.get_message())));
          break;
        case tag_and_type(6, kBytes): {
          const pbf_reader service = reader.get_message();
          service_names_.push_back(within(file.package, name_of(service)));
          add_service(service, service_names_.back(), file.symbols);
          break;
        }
        default:
          reader.skip();
      }
    }
    files_.push_back(std::move(file));
  }
  services_.assign(service_names_.begin(), service_names_.end());
  std::ranges::sort(services_);
}

const Reflection::File* Reflection::by_name(std::string_view name) const {
  const auto found = std::ranges::find(files_, name, &File::name);
  return found == files_.end() ? nullptr : &*found;
}

const Reflection::File* Reflection::by_symbol(std::string_view symbol) const {
  const auto found = std::ranges::find_if(
      files_, [&](const File& file) { return std::ranges::find(file.symbols, symbol) != file.symbols.end(); });
  return found == files_.end() ? nullptr : &*found;
}

void Reflection::add_with_imports(const File& file, std::vector<const File*>& out) const {
  if (std::ranges::find(out, &file) != out.end()) return;
  out.push_back(&file);
  for (const std::string_view name : file.imports) {
    if (const File* imported = by_name(name)) add_with_imports(*imported, out);
  }
}

Result<void> Reflection::answer(std::string_view request, std::string& out) const try {
  const Asked asked = read_question(pbf_reader(request.data(), request.size()));
  pbf_writer response(out);
  if (!asked.host.empty()) response.add_bytes(1, asked.host.data(), asked.host.size());
  response.add_bytes(2, request.data(), request.size());
  const File* file = nullptr;
  switch (asked.question) {
    case Question::services: {
      pbf_writer list(response, 6);
      for (const std::string_view name : services_) {
        pbf_writer service(list, 1);
        service.add_bytes(1, name.data(), name.size());
      }
      return {};
    }
    case Question::file:
      file = by_name(asked.name);
      break;
    case Question::symbol:
      file = by_symbol(asked.name);
      break;
    case Question::extension:
    case Question::extensions:
      add_error(response, GrpcStatus::unimplemented, "extensions are not supported");
      return {};
    case Question::none:
      add_error(response, GrpcStatus::invalid_argument, "empty request; set one of message_request");
      return {};
  }
  if (file == nullptr) {
    add_error(response, GrpcStatus::not_found, "no file or symbol is called " + base::in_quotes(asked.name, 80));
    return {};
  }
  std::vector<const File*> files;
  add_with_imports(*file, files);
  pbf_writer descriptors(response, 4);
  for (const File* each : files) descriptors.add_bytes(1, each->bytes.data(), each->bytes.size());
  return {};
} catch (const protozero::exception& wrong) {
  return fail(ErrorCode::invalid_argument, std::string("invalid ServerReflectionRequest: ") + wrong.what());
}

bool is_health_service(std::string_view name) {
  return std::ranges::find(kHealthServices, name) != kHealthServices.end();
}

Result<std::string_view> read_health_request(std::string_view message) try {
  std::string_view service;
  pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    if (!take_text(reader, 1, service)) reader.skip();
  }
  return service;
} catch (const protozero::exception& wrong) {
  return fail(ErrorCode::invalid_argument, std::string("invalid HealthCheckRequest: ") + wrong.what());
}

void append_health_response(ServingStatus status, std::string& out) {
  pbf_writer(out).add_enum(1, static_cast<std::int32_t>(status));
}

void append_health_list(ServingStatus status, std::string& out) {
  pbf_writer writer(out);
  for (const std::string_view name : kHealthServices) {
    pbf_writer entry(writer, 1);
    entry.add_bytes(1, name.data(), name.size());
    pbf_writer value(entry, 2);
    value.add_enum(1, static_cast<std::int32_t>(status));
  }
}

}  // namespace weir::protocol
