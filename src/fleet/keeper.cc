// Heartbeats, invalidation messages and write-backs. See keeper.h.
#include "fleet/keeper.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "fleet/key_name.h"
#include "fleet/own_key.h"
#include "fleet/redis_key.h"

namespace weir {
namespace {

// One heartbeat: a node registers, or leaves, and receives the list of live nodes. KEYS: a hash. ARGV: the node's id,
// its description (empty: it leaves), how many milliseconds the heartbeat is valid. Reply: the time, then id, age and
// description of each node.
constexpr std::string_view kNodesScript = R"lua(
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local key, id, says, believed = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
if says == '' then
  redis.call('HDEL', key, id)
else
  redis.call('HSET', key, id, string.format('%.0f ', now) .. says)
  redis.call('PEXPIRE', key, believed)
end
local all, answer = redis.call('HGETALL', key), {now}
for i = 1, #all, 2 do
  local at, text = string.match(all[i + 1], '^(%d+) (.*)$')
  local age = at and now - tonumber(at)
  if age and age <= believed and age >= -believed then
    answer[#answer + 1] = all[i]
    answer[#answer + 1] = string.format('%.0f', age)
    answer[#answer + 1] = text
  else
    redis.call('HDEL', key, all[i])
  end
end
return answer
)lua";

constexpr std::uint64_t kBeatTag = 1, kNewsTag = 2, kLookTag = 3;  // kLookTag + place in kOtherVersions
// Neighbours of this version of the key format. An older server cannot know of this version, so this server looks
// both ways.
constexpr std::array<char, 2> kOtherVersions = {kRedisVersion - 1, kRedisVersion + 1};
constexpr Micros kPatience{500'000};           // for calls that are not decisions
constexpr std::size_t kNewsMax = 10'000;       // names; beyond it, all denials are invalidated
constexpr Micros kNewsRest{100'000};           // after a failure to publish
constexpr Micros kMuteRest{1'000'000};         // after Redis has refused to publish
constexpr std::size_t kPayloadMax = 64 << 10;  // bytes of names in one message
constexpr std::size_t kPaymentsMax = 32;       // in flight, so that no check waits long for them
constexpr std::size_t kBatchMax = 100;         // keys of a write-back
constexpr std::size_t kBatchesMax = 4;         // batches before a pause
constexpr Micros kPayRest{100};                // minimum pause between two batches
constexpr Micros kPayAgain{20'000};            // after a batch was not answered
constexpr Micros kBeatSoon{100'000};           // between heartbeats while other nodes wait for this one's report
constexpr std::string_view kSynced = "sync=1 ", kUnsynced = "sync=0 ";
constexpr std::string_view kEverything = "*";

// Refusals of the command itself. A server that is down or unwell is reported elsewhere.
bool is_refusal(redis::FaultKind kind) {
  using enum redis::FaultKind;
  return kind == noperm || kind == wrong_type || kind == error;
}

}  // namespace

std::string to_string(const Strangers& strangers, std::string_view prefix) {
  if (strangers.version == 0) return {};
  const bool is_one = strangers.nodes == 1;
  return std::to_string(strangers.nodes) + (is_one ? " server" : " servers") + " with the prefix " +
         std::string(prefix) + (is_one ? " uses" : " use") + " version " + strangers.version +
         " of the key format, and this server uses version " + kRedisVersion;
}

Keeper::Keeper(KeeperOptions options, House house, std::function<void()> wake)
    : options_(std::move(options)),
      memory_(house.memory),
      backs_(house.backs),
      owed_(house.owed),
      lent_(house.lent),
      local_(house.local),
      handover_(house.handover),
      log_(commands_, std::move(wake)) {
  says_ = options_.says;
}

Keeper::~Keeper() = default;

void Keeper::begin(Lane& lane) {
  lane_ = &lane;
  prefix_ = lane.options().prefix;
  hash_ = own_key(prefix_, "nodes");
  channel_ = own_key(prefix_, "void");
  script_ = lane.client().add_script(std::string(kNodesScript));
  log_.begin(lane);
  memory_.believe(false);
  lane.client().subscribe(channel_, [this](std::string_view payload) { take_news(payload); });
}

// A denial is cached only while invalidations reach every node. So this node must receive messages, and Redis must
// accept its own. An empty message finds out whether it does.
void Keeper::listen(Lane& lane) {
  const redis::Client::Hearing hearing = lane.client().hearing();
  const bool was_hearing = std::exchange(is_hearing_, hearing.is_sure);
  if (!is_hearing_) can_tell_ = false;
  if (is_hearing_ && !was_hearing) has_news_ = true;
  memory_.believe(is_hearing_ && can_tell_);
  const std::string_view why = hearing.refusal.empty() ? std::string_view(mute_why_) : hearing.refusal;
  {
    const std::lock_guard lock(mutex_);
    if (why == deaf_why_) return;
    deaf_why_ = why;
  }
  if (options_.on_deaf) options_.on_deaf(why);
}

std::string Keeper::deaf_why() const {
  const std::lock_guard lock(mutex_);
  return deaf_why_;
}

std::string Keeper::unheard_why() const {
  const std::lock_guard lock(mutex_);
  return unheard_why_;
}

Micros Keeper::turn(Lane& lane, Micros now) {
  if (std::exchange(has_missed_, false)) {
    memory_.drop_all();
    held_ = nodes();
    held_at_ = now;
    held_until_ = now + options_.believed;
  }
  if (now >= beat_at_) {
    look_for_strangers(lane, now);
    if (has_joined()) beat(lane, now, false);
  }
  listen(lane);
  if (has_news_ && now >= news_at_) send_news(lane, now);
  commands_.turn(lane, now);
  if (lane.is_any_open()) owed_.tidy();
  send_undos(lane, now);
  pay_back(lane, now);
  hand_over(lane, now);
  is_strict_.store(is_heard_ && !lane.is_any_open() && !handover_.is_on(), std::memory_order_relaxed);
  const bool is_joining = !has_joined() && !is_barred() && !is_beat_refused_;
  if (is_joining || (handover_.is_on() && !is_barred())) beat_at_ = std::min(beat_at_, beat_sent_at_ + kBeatSoon);
  const bool is_paid = backs_.is_empty() && lent_.is_empty();
  const bool can_write = !is_paid && writes_ == 0 && !lane.is_any_open() && !is_barred();
  const Micros next = std::min(beat_at_, undos_.due(now));
  return can_write ? std::min(next, std::max(pay_at_, now + kPayRest)) : next;
}

void Keeper::end(Lane& lane, Micros now) {
  beat(lane, now, true);
  commands_.end();
}

void Keeper::beat(Lane& lane, Micros now, bool is_leaving) {
  beat_at_ = now + options_.beat;
  beat_sent_at_ = now;
  beat_sent_ = wall_->now();
  std::string says;
  if (!is_leaving) {
    const std::lock_guard lock(says_mutex_);
    says = handover_.reports_synced(is_synced(), now) ? kSynced : kUnsynced;
    says += says_ ? says_() : "-";
  }
  const std::string believed = std::to_string(options_.believed.count() / 1'000);
  const std::array<std::string_view, 5> words = {"1", hash_, options_.id, says, believed};
  lane.client().send({.words = words, .script = script_, .slot = redis::slot_of(hash_), .deadline = now + kPatience},
                     is_leaving ? redis::Callback{} : redis::Callback{this, kBeatTag});
}

// look_for_strangers()
//
// The heartbeats of other versions have another key. A hash of heartbeats expires when no server has renewed it for
// as long as a heartbeat is valid. So every node in it is alive, or was until a few seconds ago. A node that has not
// joined sends its first heartbeat when there are none.
void Keeper::look_for_strangers(Lane& lane, Micros now) {
  beat_at_ = now + options_.beat;
  beat_sent_at_ = now;
  if (looks_ > 0) return;
  looks_ = kOtherVersions.size();
  has_look_failed_ = false;
  for (std::size_t place = 0; place < kOtherVersions.size(); ++place) {
    const std::string hash = own_key(prefix_, "nodes", kOtherVersions[place]);
    const std::array<std::string_view, 2> words = {"HGETALL", hash};
    lane.client().send({.words = words, .slot = redis::slot_of(hash), .deadline = now + kPatience},
                       {this, kLookTag + place});
  }
}

void Keeper::on_look(std::size_t place, const redis::Reply& reply) {
  --looks_;
  if (!reply.is_ok() && !is_refusal(reply.fault->kind)) has_look_failed_ = true;
  found_[place] =
      reply.is_ok() && reply.value != nullptr ? static_cast<std::uint32_t>(reply.value->items.size() / 2) : 0;
  if (looks_ > 0 || has_look_failed_) return;
  Strangers strangers;
  for (std::size_t i = 0; i < found_.size(); ++i) {
    if (found_[i] > 0) strangers = {.version = kOtherVersions[i], .nodes = found_[i]};
  }
  meet(strangers);
  if (!has_joined() && !is_barred()) beat(*lane_, redis::steady_now(), false);
}

// A barred node takes its part of each limit, as if it were one more of the strangers.
void Keeper::meet(const Strangers& strangers) {
  const bool is_barred = strangers.version != 0 && !has_joined();
  if (is_barred) {
    if (!is_barred_.exchange(true)) handover_.begin();
    sit({.rank = strangers.nodes, .nodes = strangers.nodes + 1});
  } else {
    is_barred_.store(false);
  }
  {
    const std::lock_guard lock(mutex_);
    if (strangers == strangers_) return;
    strangers_ = strangers;
  }
  if (options_.on_strangers) options_.on_strangers(strangers, is_barred);
}

Strangers Keeper::strangers() const {
  const std::lock_guard lock(mutex_);
  return strangers_;
}

void Keeper::sit(Seat seat) {
  if (seat == local_.seat()) return;
  local_.sit(seat);
  if (options_.on_seat) options_.on_seat(seat);
}

void Keeper::on_news_sent(const redis::Reply& reply) {
  const bool is_refused = !reply.is_ok() && reply.fault->kind == redis::FaultKind::noperm;
  if (reply.is_ok() || is_refused) can_tell_ = !is_refused;
  if (reply.is_ok()) return mute_why_.clear();
  if (is_refused) mute_why_ = "PUBLISH: " + std::string(reply.fault->text);
  news_at_ = redis::steady_now() + (is_refused ? kMuteRest : kNewsRest);
  const std::lock_guard lock(mutex_);  // the names of the lost message are no longer known
  news_.resize(kNewsMax + 1);
  has_news_ = true;
}

void Keeper::on_reply(std::uint64_t tag, const redis::Reply& reply) {
  if (tag == kNewsTag) on_news_sent(reply);
  if (tag == kBeatTag) on_beat(reply);
  if (tag >= kLookTag) on_look(tag - kLookTag, reply);
}

void Keeper::on_beat(const redis::Reply& reply) {
  is_heard_ = reply.is_ok();
  if (is_heard_ && reply.value != nullptr) take_nodes(reply.value->items);
  if (!is_heard_ && !is_refusal(reply.fault->kind)) return;
  is_beat_refused_ = !is_heard_;
  const std::string why = is_heard_ ? "" : std::string(reply.fault->text);
  {
    const std::lock_guard lock(mutex_);
    if (why == unheard_why_) return;
    unheard_why_ = why;
  }
  if (options_.on_unheard) options_.on_unheard(why);
}

// {now, id, age, says, id, age, says, ...}
void Keeper::take_nodes(const std::vector<resp::Value>& items) {
  std::vector<FleetNode> nodes;
  for (std::size_t i = 1; i + 2 < items.size(); i += 3) {
    FleetNode& node = nodes.emplace_back(FleetNode{.id = items[i].text, .says = items[i + 2].text});
    std::int64_t age = 0;
    std::from_chars(items[i + 1].text.data(), items[i + 1].text.data() + items[i + 1].text.size(), age);
    node.age = Micros{age * 1'000};
    node.is_self = node.id == options_.id;
    node.is_synced = !node.says.starts_with(kUnsynced);
    if (node.says.starts_with(kSynced) || !node.is_synced) node.says.erase(0, kSynced.size());
  }
  if (!items.empty()) {
    const Micros middle = (beat_sent_ + wall_->now()) / 2;
    clock_skew_us_.store(middle.count() - items[0].integer * 1'000, std::memory_order_relaxed);
    redis_ms_ = items[0].integer;
    ++beats_;
    has_joined_.store(true, std::memory_order_relaxed);
  }
  hold(nodes, redis::steady_now());
  others_.clear();
  unsynced_nodes_ = 0;
  for (const FleetNode& node : nodes) {
    if (node.is_self) continue;
    others_.push_back({redis_ms_ - node.age.count() / 1'000, node.is_synced});
    unsynced_nodes_ += node.is_synced ? 0 : 1;
  }
  std::ranges::sort(nodes, {}, &FleetNode::id);
  const auto self = std::ranges::find(nodes, true, &FleetNode::is_self);
  if (self == nodes.end()) return;
  const Seat seat{.rank = static_cast<std::uint32_t>(self - nodes.begin()),
                  .nodes = static_cast<std::uint32_t>(nodes.size())};
  {
    const std::lock_guard lock(mutex_);
    nodes_ = std::move(nodes);
    heard_at_ = redis::steady_now();
  }
  sit(seat);
}

void Keeper::set_says(Says says) {
  const std::lock_guard lock(says_mutex_);
  says_ = std::move(says);
}

// A Redis that was down may have lost the heartbeats. The nodes known before still count while their heartbeat is
// valid.
void Keeper::hold(std::vector<FleetNode>& nodes, Micros now) const {
  if (now >= held_until_) return;
  for (const FleetNode& known : held_) {
    if (std::ranges::find(nodes, known.id, &FleetNode::id) != nodes.end()) continue;
    nodes.push_back(known);
    nodes.back().age += now - held_at_;
  }
}

std::vector<FleetNode> Keeper::nodes() const {
  const std::lock_guard lock(mutex_);
  std::vector<FleetNode> nodes = nodes_;
  for (FleetNode& node : nodes) node.age += redis::steady_now() - heard_at_;
  return nodes;
}

Micros Keeper::heard() const {
  const std::lock_guard lock(mutex_);
  return redis::steady_now() - heard_at_;
}

void Keeper::publish(std::string_view name) {
  memory_.drop(memory_.mark_of(name));
  const std::lock_guard lock(mutex_);
  if (news_.size() > kNewsMax) return;
  if (news_.size() == kNewsMax) {
    news_.assign(1, std::string(kEverything));
    news_.resize(kNewsMax + 1);
  } else {
    news_.emplace_back(name);
  }
  has_news_ = true;
}

// The message has names, each with its length before it; or a star, for all; or nothing, to test whether Redis
// accepts it.
void Keeper::send_news(Lane& lane, Micros now) {
  std::vector<std::string> news;
  {
    const std::lock_guard lock(mutex_);
    news.swap(news_);
    has_news_ = false;
  }
  std::string payload;
  const auto send = [&] {
    const std::array<std::string_view, 3> words = {"PUBLISH", channel_, payload};
    lane.client().send({.words = words, .deadline = now + kPatience}, {this, kNewsTag});
    payload.clear();
  };
  if (news.size() > kNewsMax) {
    payload = kEverything;
    return send();
  }
  for (const std::string& name : news) {
    payload.append(std::to_string(name.size())).append(":").append(name);
    if (payload.size() >= kPayloadMax) send();
  }
  if (!payload.empty() || news.empty()) send();
}

void Keeper::take_news(std::string_view payload) {
  if (payload == kEverything) return memory_.drop_all();
  while (!payload.empty()) {
    std::size_t size = 0;
    const auto read = std::from_chars(payload.data(), payload.data() + payload.size(), size);
    payload.remove_prefix(static_cast<std::size_t>(read.ptr - payload.data()));
    if (read.ec != std::errc{} || payload.empty() || payload.front() != ':' || size > payload.size() - 1) {
      return memory_.drop_all();  // not our message: dropping everything is safe
    }
    memory_.drop(memory_.mark_of(payload.substr(1, size)));
    payload.remove_prefix(1 + size);
  }
}

// Writes back as much as fits, a little at a time.
void Keeper::pay_back(Lane& lane, Micros now) {
  if (lane.is_any_open() || is_barred() || now < pay_at_) return;
  tell_of_permits(lane, now);
  write_back(lane, now);
}

void Keeper::tell_of_permits(Lane& lane, Micros now) {
  if (lent_.is_empty() || payments_ >= kPaymentsMax) return;
  for (LentPermit& permit : lent_.take(kPaymentsMax - payments_, now)) {
    Ask& ask = lane.make();
    const Charge charge{.key = permit.key, .limit = &permit.limit, .cost = permit.cost};
    ask.fill(ScriptRequest::What::acquire, {&charge, 1}, permit.id);
    ask.mark = new LentPermit(std::move(permit));
    ++payments_;
    if (!lane.submit(ask, teller_, now)) teller_.on_done(ask);
  }
}

// An ask without a permit is a release, and its result does not matter.
void Keeper::Teller::on_done(Ask& ask) {
  const std::unique_ptr<LentPermit> permit(static_cast<LentPermit*>(std::exchange(ask.mark, nullptr)));
  Lane& lane = *keeper.lane_;
  --keeper.payments_;
  const bool is_released = permit && keeper.lent_.told(*permit, ask.state != Ask::State::failed);
  lane.give(ask);
  if (!is_released) return;
  Ask& again = lane.make();
  const Charge charge{.key = permit->key};
  again.fill(ScriptRequest::What::release, {&charge, 1}, permit->id);
  again.mark = nullptr;
  ++keeper.payments_;
  if (!lane.submit(again, *this, redis::steady_now())) on_done(again);
}

void Keeper::send_undos(Lane& lane, Micros now) {
  if (is_barred()) return;
  const auto can_be_sent = [&](const Undo& one) { return !lane.is_open(lane.slot_of(subject_of(one.key))); };
  for (Undo& undo : undos_.take(now, can_be_sent)) {
    Ask& ask = lane.make();
    const Charge charge = undo.charge();
    ask.fill(undo.asks(), {&charge, 1}, undo.id, {}, undo.charged_us);
    ask.mark = new Undo(std::move(undo));
    if (!lane.submit(ask, undoer_, now)) undoer_.on_done(ask);
  }
}

void Keeper::Undoer::on_done(Ask& ask) {
  const std::unique_ptr<Undo> undo(static_cast<Undo*>(std::exchange(ask.mark, nullptr)));
  if (ask.doubt) ask.doubt->decide(false);
  const KeyName name(undo->limit.algorithm, undo->key);
  if (keeper.undos_.finish(std::move(*undo), ask.state, ask.is_in_doubt, redis::steady_now())) keeper.publish(name);
  keeper.lane_->give(ask);
}

// write_back()
//
// Sends a few batches, and pauses when all are answered (write_back.h). Calls of other connections are executed
// between two batches. In a cluster a batch is one key, and many are in flight. Building batches takes this thread
// some time, which counts as part of the pause.
void Keeper::write_back(Lane& lane, Micros now) {
  if (writes_ > 0) return;
  const bool is_cluster = lane.slot_of({}) >= 0;
  const Micros begun = redis::steady_now();
  while (writes_ < (is_cluster ? kPaymentsMax : kBatchesMax)) {
    auto batch = backs_.take(is_cluster ? 1 : kBatchMax, now);
    if (!batch) break;
    Ask& ask = lane.make();
    ask.fill(ScriptRequest::What::write_back, batch->charges, batch->id, kWriteBackLasts);
    ask.mark = new WriteBack(*std::move(batch));
    ++writes_;
    if (!lane.submit(ask, *this, now)) {
      on_done(ask);
      break;
    }
  }
  if (writes_ == 0) return;
  lane.flush(now);
  wrote_at_ = redis::steady_now();
  making_ = wrote_at_ - begun;
}

void Keeper::on_done(Ask& ask) {
  const std::unique_ptr<WriteBack> batch(static_cast<WriteBack*>(ask.mark));
  const Micros now = redis::steady_now();
  --writes_;
  backs_.finish(std::move(*batch), {ask.state, ask.is_in_doubt, ask.decisions, ask.decided_us}, now);
  if (ask.state == Ask::State::failed) {
    pay_at_ = now + kPayAgain;
  } else if (writes_ == 0) {
    const std::uint64_t unsent = lane_->options().totals ? lane_->options().totals->counts().unsent : 0;
    const bool is_overloaded = std::exchange(unsent_, unsent) != unsent && !handover_.is_on();
    const Micros rest = rest_after_write_back(now - wrote_at_, unsynced_nodes_, is_overloaded);
    pay_at_ = std::max(pay_at_, now + rest - making_);
  }
  lane_->give(ask);
}

// hand_over()
//
// Checks whether Redis can decide alone again.
void Keeper::hand_over(Lane& lane, Micros now) {
  if (!handover_.is_on()) return;
  const bool is_away = lane.options().totals && lane.options().totals->is_away();
  handover_.turn({.is_any_open = lane.is_any_open() || is_away || is_barred(),
                  .is_synced = is_synced(),
                  .beats = beats_,
                  .redis_ms = redis_ms_,
                  .others = others_},
                 now);
}

bool Keeper::is_synced() const {
  return handover_.is_none_pending() && owed_.is_synced() && backs_.is_empty() && lent_.is_empty();
}

}  // namespace weir
