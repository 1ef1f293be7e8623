// TLS with OpenSSL, through buffers in memory. Only this file uses OpenSSL. See tls.h.
#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace weir::net {
namespace {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
struct FreeSslContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

std::string openssl_words() {
  const char* const why = ERR_reason_error_string(ERR_peek_last_error());
  return why != nullptr ? why : "the server closed the connection";
}

class OpenSslStream final : public TlsStream {
 public:
  explicit OpenSslStream(SSL* ssl) : ssl_(ssl) {}

  // Sets the expected identity of the server: a host name or an IP address.
  bool expect(const std::string& host, bool is_verified) {
    in6_addr address{};
    const bool is_address =
        inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1;
    if (!is_address && SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) != 1) return false;
    if (!is_verified) return true;
    if (is_address) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) == 1;
    return SSL_set1_host(ssl_.get(), host.c_str()) == 1;
  }

  bool attach() {
    BIO* const in = BIO_new(BIO_s_mem());
    BIO* const out = BIO_new(BIO_s_mem());
    if (in == nullptr || out == nullptr) {
      BIO_free(in);
      BIO_free(out);
      return false;
    }
    SSL_set_bio(ssl_.get(), in, out);
    SSL_set_connect_state(ssl_.get());
    return true;
  }

  Step handshake() override {
    ERR_clear_error();
    const Step step = step_of(SSL_do_handshake(ssl_.get()));
    const long verdict = SSL_get_verify_result(ssl_.get());
    if (step == Step::failed && verdict != X509_V_OK) {
      failure_ = std::string("the server's certificate is not trusted: ") + X509_verify_cert_error_string(verdict);
    }
    return step;
  }

  void take_in(std::string_view cipher) override {
    while (!cipher.empty()) {
      const int size = BIO_write(SSL_get_rbio(ssl_.get()), cipher.data(), int_of(cipher.size()));
      if (size <= 0) return;
      cipher.remove_prefix(static_cast<std::size_t>(size));
    }
  }

  Step read(std::string& plain) override {
    std::array<char, 16 << 10> buffer;
    while (true) {
      ERR_clear_error();
      const int size = SSL_read(ssl_.get(), buffer.data(), int_of(buffer.size()));
      if (const Step step = step_of(size); step != Step::done) return step;
      plain.append(buffer.data(), static_cast<std::size_t>(size));
    }
  }

  bool write(std::string_view plain) override {
    while (!plain.empty()) {
      ERR_clear_error();
      const int size = SSL_write(ssl_.get(), plain.data(), int_of(plain.size()));
      if (step_of(size) != Step::done) return false;  // a memory buffer accepts everything
      plain.remove_prefix(static_cast<std::size_t>(size));
    }
    return true;
  }

  void move_output(std::string& cipher) override {
    BIO* const out = SSL_get_wbio(ssl_.get());
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(out, &bytes);
    if (size > 0) cipher.append(bytes, static_cast<std::size_t>(size));
    (void)BIO_reset(out);
  }

  bool has_ended() const override { return has_ended_; }
  const std::string& failure() const override { return failure_; }

 private:
  static int int_of(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, INT_MAX)); }

  Step step_of(int result) {
    if (result > 0) return Step::done;
    const int why = SSL_get_error(ssl_.get(), result);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return Step::again;
    has_ended_ = why == SSL_ERROR_ZERO_RETURN;
    failure_ = has_ended_ ? "the server ended the TLS session" : openssl_words();
    return Step::failed;
  }

  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::string failure_;
  bool has_ended_ = false;
};

// Returns the identity of the files as they are now. Links are followed.
std::string look_at(const base::TlsSettings& settings) {
  std::string seen;
  for (const std::string* file : {&settings.ca, &settings.certificate, &settings.key}) {
    struct stat about {};
    if (file->empty() || ::stat(file->c_str(), &about) != 0) {
      seen += "none;";
      continue;
    }
    for (const auto number : {static_cast<std::int64_t>(about.st_ino), static_cast<std::int64_t>(about.st_mtim.tv_sec),
                              static_cast<std::int64_t>(about.st_mtim.tv_nsec), std::int64_t{about.st_size}}) {
      seen += std::to_string(number) + ';';
    }
  }
  return seen;
}

class OpenSslContext final : public TlsContext {
 public:
  OpenSslContext(base::TlsSettings settings, SSL_CTX* context)
      : settings_(std::move(settings)), seen_(look_at(settings_)), context_(context) {}

  SSL_CTX* get() const { return context_.get(); }
  bool has_changed() const override { return look_at(settings_) != seen_; }

  std::unique_ptr<TlsStream> open(const std::string& host) const override {
    SSL* const ssl = SSL_new(context_.get());
    if (ssl == nullptr) return nullptr;
    auto stream = std::make_unique<OpenSslStream>(ssl);
    const std::string& name = settings_.server_name.empty() ? host : settings_.server_name;
    if (!stream->attach() || !stream->expect(name, settings_.is_verified)) return nullptr;
    return stream;
  }

 private:
  const base::TlsSettings settings_;
  const std::string seen_;
  const std::unique_ptr<SSL_CTX, FreeSslContext> context_;
};

// `setting` is the name and the file, as the user writes them.
tl::unexpected<Error> bad_file(const std::string& setting, const std::string& file, const char* what) {
  if (::access(file.c_str(), R_OK) != 0) {
    return fail(ErrorCode::invalid_argument, setting + " cannot be read: " + std::strerror(errno) +
                                                 "; name a file that the user who runs this program can read");
  }
  return fail(ErrorCode::invalid_argument, setting + " " + what + ": " + openssl_words());
}

// Refuses keys with a passphrase.
int no_passphrase(char*, int, int, void*) { return 0; }

Result<void> load_files(SSL_CTX* context, const base::TlsSettings& settings, const std::string& before_name,
                        const std::string& after_name) {
  const auto refused = [&](const char* name, const std::string& file, const char* what) {
    return bad_file(before_name + name + after_name + file, file, what);
  };
  SSL_CTX_set_verify(context, settings.is_verified ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (!settings.has_user) SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  if (settings.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_file(context, settings.ca.c_str()) != 1) {
    return refused("ca", settings.ca, "contains no readable certificate");
  }
  if (settings.certificate.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, settings.certificate.c_str()) != 1) {
    return refused("cert", settings.certificate, "contains no readable certificate");
  }
  if (SSL_CTX_use_PrivateKey_file(context, settings.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return refused("key", settings.key, "contains no key without a passphrase that matches the certificate");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> load_tls(const base::TlsSettings& settings, std::string_view before_name,
                                                   std::string_view after_name) {
  ERR_clear_error();
  SSL_CTX* const raw = SSL_CTX_new(TLS_client_method());
  if (raw == nullptr) return fail(ErrorCode::unavailable, "cannot initialize OpenSSL");
  const auto context = std::make_shared<const OpenSslContext>(settings, raw);
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (auto loaded = load_files(raw, settings, std::string(before_name), std::string(after_name)); !loaded)
    return fail(loaded.error());
  return context;
}

std::string sha1_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) base::append_hex(hex, static_cast<char>(digest[i]));
  return hex;
}

}  // namespace weir::net
