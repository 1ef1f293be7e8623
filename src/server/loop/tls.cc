// TLS with OpenSSL, which only this file uses. See tls.h.
//
// OpenSSL reads no further than the current record, and a record always fits the buffer it gets, so epoll reports
// everything that has not been read. OpenSSL's error queue belongs to the thread, so it is cleared before each call.
#include "server/loop/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "control/config_file.h"
#include "log/log.h"

namespace weir::server::loop {
namespace {

constexpr std::size_t kCertificatesMax = 1'000;  // in a file

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* thing) const {
    Free(thing);
  }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Context = std::shared_ptr<SSL_CTX>;

// --- one connection --------------------------------------------------------------------------------------------------

class OpenSslStream final : public TlsStream {
 public:
  OpenSslStream(SSL* ssl, TlsInside inside) : ssl_(ssl), inside_(inside) {}

  Step handshake() override {
    ERR_clear_error();
    const Step step = step_of(SSL_accept(ssl_.get()));
    if (has_ended_) return Step::failed;
    is_open_ = step == Step::done;
    if (step != Step::done || inside_ != TlsInside::h2) return step;
    // HTTP/2 over TLS must be negotiated, never guessed.
    const unsigned char* chosen = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &chosen, &size);
    if (size > 0) return Step::done;
    failure_ = "the client did not select h2 by ALPN";
    return Step::failed;
  }

  std::size_t receive(std::span<char> buffer) override {
    std::size_t total = 0;
    while (!has_ended_ && buffer.size() - total >= kRecordMax) {
      ERR_clear_error();
      const int size = SSL_read(ssl_.get(), buffer.data() + total, int_of(buffer.size() - total));
      if (step_of(size) != Step::done) break;
      total += static_cast<std::size_t>(size);
      idle_records_ = 0;
    }
    if (sends_idle_records()) fail_as("the client sends records without data");
    return total;
  }

  std::size_t send(std::string_view bytes) override {
    if (has_failed_ || bytes.empty()) return 0;
    ERR_clear_error();
    const int size = SSL_write(ssl_.get(), bytes.data(), int_of(bytes.size()));
    if (size > 0) return static_cast<std::size_t>(size);
    if (step_of(size) == Step::again && !wants_write_ && !has_ended_) fail_as(kBegun);
    wants_write_ = false;  // a sender waits for that anyway
    return 0;
  }

  Step send_close_notify() override {
    if (has_failed_) return Step::failed;
    if (has_parted_) return Step::done;
    is_parting_ = true;
    ERR_clear_error();
    const int result = SSL_shutdown(ssl_.get());
    const Step step = step_of(result == 0 ? 1 : result);  // 0: sent; the client's answer need not be awaited
    has_parted_ = step == Step::done;
    return step;
  }

  bool wants_write() const override { return wants_write_; }

  void go_on() override {
    if (is_parting_) {
      send_close_notify();
    } else {
      ERR_clear_error();
      step_of(SSL_do_handshake(ssl_.get()));
    }
  }

  bool has_ended() const override { return has_ended_; }
  bool has_failed() const override { return has_failed_; }
  bool sends_idle_records() const override { return idle_records_ > kIdleRecordsMax; }
  // SSL_has_pending() is true once a part of a record's header or body has been read. The state is RB between header
  // and body. SSL_in_init() is true while a handshake message is incomplete.
  bool is_midway() const override {
    if (has_ended_) return false;
    return SSL_has_pending(ssl_.get()) == 1 || SSL_rstate_string(ssl_.get()) == std::string_view("RB") ||
           (SSL_in_init(ssl_.get()) == 1 && !wants_write_);
  }
  std::string_view failure() const override { return failure_; }

  // OpenSSL answers some records itself and reads on while there are more. So its callbacks count the records, and
  // after too many they pretend that the socket is empty. Returns false if there is no memory.
  bool attach(int socket) {
    if (SSL_set_fd(ssl_.get(), socket) != 1) return false;
    SSL_set_msg_callback(ssl_.get(), on_record);
    SSL_set_msg_callback_arg(ssl_.get(), this);
    BIO* const bio = SSL_get_rbio(ssl_.get());
    BIO_set_callback_arg(bio, reinterpret_cast<char*>(this));
    BIO_set_callback_ex(bio, before_reading);
    return true;
  }

 private:
  static void on_record(int is_ours, int, int type, const void*, std::size_t, SSL*, void* stream) {
    auto& self = *static_cast<OpenSslStream*>(stream);
    if (is_ours == 0 && type == SSL3_RT_HEADER && self.is_open_) ++self.idle_records_;
  }

  static long before_reading(BIO* bio, int what, const char*, std::size_t, int, long, int result, std::size_t*) {
    if (what != BIO_CB_READ || !reinterpret_cast<OpenSslStream*>(BIO_get_callback_arg(bio))->sends_idle_records()) {
      return result;
    }
    BIO_set_retry_read(bio);
    return -1;
  }

  void fail_as(std::string_view why) {
    has_failed_ = has_ended_ = true;
    failure_ = why;
  }

  static int int_of(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, INT_MAX)); }

  // Nothing can be sent within such a message, and waiting for the socket would spin, since it is always writable. A
  // well-behaved client sends the message in one record, which is read whole or not at all.
  static constexpr std::string_view kBegun = "a handshake message is incomplete";

  Step step_of(int result) {
    wants_write_ = false;
    if (result > 0) return Step::done;
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_WRITE:
        wants_write_ = true;
        return Step::again;
      case SSL_ERROR_WANT_READ:
        return Step::again;
      case SSL_ERROR_ZERO_RETURN:
        has_ended_ = true;
        return Step::again;
      default:
        has_failed_ = has_ended_ = true;
        if (const char* why = ERR_reason_error_string(ERR_peek_last_error()); why != nullptr) failure_ = why;
        return Step::failed;
    }
  }

  std::unique_ptr<SSL, Freer<SSL_free>> ssl_;
  TlsInside inside_;
  std::string_view failure_ = "the client disconnected";
  std::size_t idle_records_ = 0;  // since the last byte of application data
  bool is_open_ = false;          // the handshake is over
  bool is_parting_ = false;
  bool has_parted_ = false;
  bool wants_write_ = false;
  bool has_ended_ = false;
  bool has_failed_ = false;
};

// --- ALPN ------------------------------------------------------------------------------------------------------------

struct Protocol {
  std::string_view name;         // in ALPN
  std::string_view plain_words;  // the answer to a client that does not speak TLS
};

// In the order of TlsInside. An HTTP/2 client would take a plain text for a broken frame.
constexpr Protocol kProtocols[] = {
    {"http/1.1",
     "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 39\r\nConnection: close\r\n\r\n"
     "This port speaks TLS; write https://.\r\n"},
    {"h2", ""},
    {"redis", "-ERR this port speaks TLS; use rediss:// or redis-cli --tls\r\n"}};

constexpr const Protocol& protocol_of(TlsInside inside) { return kProtocols[static_cast<std::size_t>(inside)]; }

// Called only if the client sends ALPN.
int choose_protocol(SSL* ssl, const unsigned char** chosen, unsigned char* chosen_size, const unsigned char* names,
                    unsigned size, void*) {
  const std::string_view wanted = static_cast<const Protocol*>(SSL_get_app_data(ssl))->name;
  for (unsigned at = 0; at < size && names[at] < size - at; at += 1U + names[at]) {
    const std::string_view name(reinterpret_cast<const char*>(names) + at + 1, names[at]);
    if (name != wanted) continue;
    *chosen = names + at + 1;
    *chosen_size = names[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// --- files -----------------------------------------------------------------------------------------------------------

tl::unexpected<Error> wrong(const char* option, const std::string& file, const std::string& what) {
  return fail(ErrorCode::invalid_argument, std::string(option) + ": " + file + " " + what);
}

Result<Bio> open_pem(const char* option, const std::string& file) {
  const auto text = control::read_config(file);
  if (!text) return fail(text.error().code, std::string(option) + ": " + text.error().message);
  Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || BIO_write(bio.get(), text->data(), static_cast<int>(text->size())) < 0) {
    return wrong(option, file, "cannot be read: out of memory");
  }
  return bio;
}

// Rejects keys with a passphrase: a server cannot enter it.
int no_passphrase(char*, int, int, void*) { return 0; }

Result<std::vector<Certificate>> read_certificates(const char* option, const std::string& file) {
  auto bio = open_pem(option, file);
  if (!bio) return fail(bio.error());
  std::vector<Certificate> found;
  ERR_clear_error();
  while (Certificate next{PEM_read_bio_X509(bio->get(), nullptr, no_passphrase, nullptr)}) {
    found.push_back(std::move(next));
    if (found.size() > kCertificatesMax) return wrong(option, file, "has more than 1000 certificates; remove some");
  }
  const auto why = ERR_peek_last_error();
  ERR_clear_error();
  const bool at_end = ERR_GET_LIB(why) == ERR_LIB_PEM && ERR_GET_REASON(why) == PEM_R_NO_START_LINE;
  if (!at_end) return wrong(option, file, "has an unreadable certificate; write complete certificates as PEM");
  if (found.empty())
    return wrong(option, file, "has no certificate; a certificate begins with -----BEGIN CERTIFICATE-----");
  return found;
}

Result<Key> read_key(const std::string& file) {
  auto bio = open_pem("--tls-key", file);
  if (!bio) return fail(bio.error());
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio->get(), &text);
  if (std::string_view(text, static_cast<std::size_t>(size)).find("ENCRYPTED") != std::string_view::npos) {
    return wrong("--tls-key", file,
                 "has a passphrase, which the server cannot enter; remove it: openssl pkey -in " + file + " -out NEW");
  }
  Key key(PEM_read_bio_PrivateKey(bio->get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (key) return key;
  return wrong("--tls-key", file, "has no private key; a private key begins with -----BEGIN PRIVATE KEY-----");
}

std::string text_of(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || ASN1_TIME_print(bio.get(), time) != 1) return "an unreadable time";
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::int64_t seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? static_cast<std::int64_t>(timegm(&parts)) : 0;
}

Result<void> check_days(const std::string& file, const X509* leaf) {
  const ASN1_TIME* const from = X509_get0_notBefore(leaf);
  const ASN1_TIME* const to = X509_get0_notAfter(leaf);
  if (X509_cmp_current_time(to) < 0) {
    return wrong("--tls-cert", file, "expired on " + text_of(to) + "; renew it");
  }
  if (X509_cmp_current_time(from) > 0) {
    return wrong("--tls-cert", file, "is not valid before " + text_of(from) + "; check this machine's clock");
  }
  return {};
}

// --- contexts --------------------------------------------------------------------------------------------------------

// The settings that do not depend on the certificate.
Context make_context() {
  Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX* const raw = context.get();
  if (raw == nullptr || SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(raw, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
    return nullptr;
  }
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                               SSL_OP_PRIORITIZE_CHACHA | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_clear_mode(raw, SSL_MODE_AUTO_RETRY);  // constant key updates must not keep the loop reading
  // Sessions are resumed by tickets; the server keeps no session cache.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 1);
  constexpr std::string_view kName = "weir";
  SSL_CTX_set_session_id_context(raw, reinterpret_cast<const unsigned char*>(kName.data()), kName.size());
  SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);
  return context;
}

Result<void> use_pair(SSL_CTX* context, const TlsOptions& options, std::int64_t& not_after) {
  auto chain = read_certificates("--tls-cert", options.certificate);
  if (!chain) return fail(chain.error());
  const auto key = read_key(options.key);
  if (!key) return fail(key.error());
  X509* const leaf = chain->front().get();
  if (X509_check_private_key(leaf, key->get()) != 1) {
    return wrong("--tls-key", options.key,
                 "does not match the certificate in " + options.certificate + "; give the key of that certificate");
  }
  if (auto good = check_days(options.certificate, leaf); !good) return good;
  if (SSL_CTX_use_certificate(context, leaf) != 1 || SSL_CTX_use_PrivateKey(context, key->get()) != 1) {
    return wrong("--tls-cert", options.certificate,
                 std::string("cannot be used: ") + ERR_reason_error_string(ERR_peek_last_error()) +
                     "; make one with an EC key, or RSA of 2048 bits or more");
  }
  for (std::size_t i = 1; i < chain->size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, (*chain)[i].get()) != 1) {
      return wrong("--tls-cert", options.certificate,
                   "has an unusable chain; keep only the issuers of the first certificate");
    }
  }
  not_after = seconds_of(X509_get0_notAfter(leaf));
  return {};
}

Result<void> ask_clients(SSL_CTX* context, const TlsOptions& options) {
  if (options.client_ca.empty()) return {};
  const auto authorities = read_certificates("--tls-client-ca", options.client_ca);
  if (!authorities) return fail(authorities.error());
  for (const Certificate& authority : *authorities) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get());
    SSL_CTX_add_client_CA(context, authority.get());
  }
  ERR_clear_error();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

// A context with its certificates, and the expiry of the leaf.
struct Loaded {
  Context context{};
  std::int64_t not_after = 0;
};

Result<Loaded> load(const TlsOptions& options) {
  Loaded loaded{make_context()};
  if (!loaded.context) return fail(ErrorCode::unavailable, "cannot initialize OpenSSL");
  return use_pair(loaded.context.get(), options, loaded.not_after)
      .and_then([&] { return ask_clients(loaded.context.get(), options); })
      .map([&] { return std::move(loaded); });
}

// Identifies the current files, following links: a renewal changes this.
std::string look_at(const TlsOptions& options) {
  std::string seen;
  for (const std::string* file : {&options.certificate, &options.key, &options.client_ca}) {
    struct stat about {};
    if (file->empty() || ::stat(file->c_str(), &about) != 0) {
      seen += "none;";
      continue;
    }
    for (const std::int64_t number :
         {static_cast<std::int64_t>(about.st_dev), static_cast<std::int64_t>(about.st_ino),
          static_cast<std::int64_t>(about.st_mtim.tv_sec), static_cast<std::int64_t>(about.st_mtim.tv_nsec),
          static_cast<std::int64_t>(about.st_size)}) {
      seen += std::to_string(number) + ';';
    }
  }
  return seen;
}

class OpenSslCertificates final : public TlsCertificates {
 public:
  OpenSslCertificates(TlsOptions options, std::string seen, Loaded loaded)
      : options_(std::move(options)), seen_(std::move(seen)), looked_(seen_), loaded_(std::move(loaded)) {}

  void reload() override {
    const base::MutexLock one_at_a_time(reload_mutex_);
    logged_error_.clear();  // an explicit reload logs its error in any case
    reload_as(look_at(options_));
  }

  void reload_if_changed() override {
    const base::MutexLock one_at_a_time(reload_mutex_);
    std::string now = look_at(options_);
    // A renewal writes key and certificate one after the other: wait until the files no longer change.
    const bool rests = now == std::exchange(looked_, now);
    const bool is_due = has_failed_ && ++looks_ >= kLooksUntilRetry;
    if (rests && (now != seen_ || is_due)) reload_as(std::move(now));
  }

  std::unique_ptr<TlsStream> open(int socket, TlsInside inside) const override {
    const Context context = [this] {
      const base::MutexLock lock(mutex_);
      return loaded_.context;
    }();
    SSL* const ssl = SSL_new(context.get());  // keeps the context alive
    if (ssl == nullptr) return nullptr;
    auto stream = std::make_unique<OpenSslStream>(ssl, inside);
    SSL_set_app_data(ssl, const_cast<Protocol*>(&protocol_of(inside)));
    if (!stream->attach(socket)) return nullptr;
    return stream;
  }

  TlsStatus status() const override {
    const base::MutexLock lock(mutex_);
    TlsStatus status = status_;
    status.not_after = loaded_.not_after;
    return status;
  }

 private:
  void reload_as(std::string seen) REQUIRES(reload_mutex_) {
    auto loaded = load(options_);
    seen_ = std::move(seen);
    has_failed_ = !loaded;
    looks_ = 0;
    const std::string until = loaded ? std::to_string(loaded->not_after) : "";
    {
      const base::MutexLock lock(mutex_);
      status_.last_reload_ok = loaded.has_value();
      ++(loaded ? status_.reloads : status_.failed_reloads);
      if (loaded) loaded_ = *loaded;
    }
    if (loaded) {
      log::log(log::LogLevel::info, "certificate reloaded", {{"file", options_.certificate}, {"not_after", until}});
      logged_error_.clear();
    } else if (loaded.error().message != logged_error_) {  // log the same error once, not at every retry
      log::log(log::LogLevel::error, "certificate reload failed, keeping the previous one",
               {{"error", loaded.error().message}});
      logged_error_ = loaded.error().message;
    }
  }

  // Files that failed to load may work later without a change: a certificate becomes valid, or descriptors are free.
  static constexpr int kLooksUntilRetry = 30;

  const TlsOptions options_;
  base::Mutex reload_mutex_;
  std::string seen_ GUARDED_BY(reload_mutex_);          // the files when they were last loaded
  std::string looked_ GUARDED_BY(reload_mutex_);        // the files at the last look
  std::string logged_error_ GUARDED_BY(reload_mutex_);  // the logged error, if loading failed
  int looks_ GUARDED_BY(reload_mutex_) = 0;             // since loading failed
  bool has_failed_ GUARDED_BY(reload_mutex_) = false;   // the last load failed
  mutable base::Mutex mutex_;
  Loaded loaded_ GUARDED_BY(mutex_);
  TlsStatus status_ GUARDED_BY(mutex_){.is_on = true};
};

}  // namespace

std::string_view plain_words(TlsInside inside) { return protocol_of(inside).plain_words; }

Result<std::unique_ptr<TlsCertificates>> load_certificates(TlsOptions options) {
  std::string seen = look_at(options);  // before loading, so that a later change is noticed
  auto loaded = load(options);
  if (!loaded) return fail(std::move(loaded.error()));
  return std::make_unique<OpenSslCertificates>(std::move(options), std::move(seen), *std::move(loaded));
}

}  // namespace weir::server::loop
