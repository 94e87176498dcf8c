-- One step of one job: its revision is compared, then everything that belongs to the step is written.
-- Whatever can refuse comes first; after the first write nothing fails.
--
-- KEYS  job:rec, job:meta, job:seq, audit:outbox, then the blobs of the step
-- ARGV  the names below, then three counted lists: fields of job:meta, entries of the trail, blobs
-- Says  done | duplicate, id | seen | conflict | no room, of what | fenced
local prefix, id, expects, now, token, record = unpack(ARGV, 1, 6)
local state, live, ended, updated, asked, released = unpack(ARGV, 7, 12)
local tenant, topic, trace, idempotency, worker, owner = unpack(ARGV, 13, 18)
local letter, reason = unpack(ARGV, 19, 20)
local worker_max, tenant_max, topic_max, queue_max = unpack(ARGV, 21, 24)
local lock, fence, processed, inflight, kept, kept_ms = unpack(ARGV, 25, 30)
local news, news_max = unpack(ARGV, 31, 32)
local lists = 33

local call = redis.call

-- How it was; nothing of a job that is new.
local was_rev, was_seq, was_state, was_live, was_ended, was_at, was_owner, was_by, dlq, why = unpack(
  call('HMGET', KEYS[2], 'rev', 'seq', 'state', 'live', 'ended', 'at', 'owner', 'by', 'dlq', 'why'), 1, 10)
dlq, why = dlq or '', why or ''

-- Our own step, whose answer was lost.
if was_rev and was_by == token then return {'done'} end

if expects == '' and was_rev then return {'duplicate', id} end
-- The job may have moved on since, or be gone: the message was acted on all the same.
if processed ~= '' and call('EXISTS', processed) == 1 then return {'seen'} end
if expects == '' then
  local holder = idempotency ~= '' and call('GET', prefix .. 'job:idempotency:' .. tenant .. ':' .. idempotency)
  if holder then return {'duplicate', holder} end
  if queue_max ~= '' and ended == '0'
      and call('SCARD', prefix .. 'job:tenant:active:' .. tenant) >= tonumber(queue_max) then
    return {'no room', 'queue'}
  end
elseif was_rev ~= expects then
  return {'conflict'}
end
local time = call('TIME')
local us = now ~= '' and now * 1000 or time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', us)
if lock ~= '' then
  local is, till = (call('GET', lock) or ''):match('^(%d+)|[^|]*|(%d+)$')
  if is ~= fence or us >= till * 1000 then return {'fenced'} end
end
local function is_placed(in_state) return in_state == 'dispatched' or in_state == 'running' end
local placed, was_placed = is_placed(state), is_placed(was_state)
if worker ~= '' and was_at ~= worker and worker_max ~= ''
    and call('ZCARD', prefix .. 'worker:jobs:' .. worker) >= tonumber(worker_max) then
  return {'no room', 'worker'}
end
if placed and not was_placed then
  if tenant_max ~= '' and call('SCARD', prefix .. 'job:tenant:placed:' .. tenant) >= tonumber(tenant_max) then
    return {'no room', 'tenant'}
  end
  if topic_max ~= '' and call('SCARD', prefix .. 'job:topic:placed:' .. topic) >= tonumber(topic_max) then
    return {'no room', 'topic'}
  end
end

-- From here on nothing refuses.

-- What those who watch are told. Its place is the time, or the one after the last.
if news ~= '' then
  local events = prefix .. 'reveille:events'
  local function tell(place)
    return redis.pcall('XADD', events, 'MAXLEN', '~', news_max, place .. '-0', 'e', news)
  end
  if type(tell(stamp)) == 'table' then
    local last = call('XREVRANGE', events, '+', '-', 'COUNT', 1)[1][1]
    tell(string.format('%.0f', last:match('^%d+') + 1))
  end
end

-- The time too, or the one after the last.
local function number()
  local last = call('SET', KEYS[3], stamp, 'GET')
  if not last or tonumber(last) < us then return stamp end
  local next = string.format('%.0f', last + 1)
  call('SET', KEYS[3], next)
  return next
end

local seq = was_seq
if not seq then
  seq = number()
  call('ZADD', prefix .. 'job:recent', seq, id)
  call('ZADD', prefix .. 'job:index:tenant:' .. tenant, seq, id)
  if trace ~= '' then call('ZADD', prefix .. 'trace:' .. trace, seq, id) end
  if idempotency ~= '' then call('SET', prefix .. 'job:idempotency:' .. tenant .. ':' .. idempotency, id) end
end
if was_state ~= state then
  if was_state then call('ZREM', prefix .. 'job:index:' .. was_state, id) end
  call('ZADD', prefix .. 'job:index:' .. state, seq, id)
  if asked == '1' then call('ZADD', prefix .. 'job:index:asked', seq, id) end
end
if live == '1' and was_live ~= '1' then
  call('ZADD', prefix .. 'job:index:live', seq, id)
  if was_live then call('ZREM', prefix .. 'job:index:ended', id) end
elseif live == '0' then
  owner = ''
  if was_live == '1' then call('ZREM', prefix .. 'job:index:live', id) end
  call('ZADD', prefix .. 'job:index:ended', updated, id)
end
if (was_owner or '') ~= owner then
  if was_owner and was_owner ~= '' then call('ZREM', prefix .. 'job:owner:' .. was_owner, id) end
  if owner ~= '' then
    call('ZADD', prefix .. 'job:owner:' .. owner, seq, id)
    -- The owner may be one that was taken over a moment ago: it is found dead again, and its jobs again.
    call('ZADD', prefix .. 'cordum:replicas', 'NX', 0, owner)
  end
end
if ended ~= was_ended then
  call(ended == '0' and 'SADD' or 'SREM', prefix .. 'job:tenant:active:' .. tenant, id)
end
if (was_at or '') ~= worker then
  if was_at and was_at ~= '' then call('ZREM', prefix .. 'worker:jobs:' .. was_at, id) end
  if worker ~= '' then call('ZADD', prefix .. 'worker:jobs:' .. worker, us, id) end
end
if placed ~= was_placed then
  local move = placed and 'SADD' or 'SREM'
  call(move, prefix .. 'job:tenant:placed:' .. tenant, id)
  call(move, prefix .. 'job:topic:placed:' .. topic, id)
end

local function count(by)
  for _, counts in ipairs{prefix .. 'dlq:count', prefix .. 'dlq:count:' .. tenant} do
    if call('HINCRBY', counts, why, by) == 0 then call('HDEL', counts, why) end
  end
end
local function take_off()
  if dlq == '' then return end
  call('DEL', prefix .. 'dlq:entry:' .. id)
  call('ZREM', prefix .. 'dlq:index', id)
  call('ZREM', prefix .. 'dlq:index:' .. tenant, id)
  count(-1)
  dlq = ''
end
if released == '1' then take_off() end
if letter ~= '' and was_state ~= state then
  take_off()
  dlq, why = number(), reason
  call('SET', prefix .. 'dlq:entry:' .. id, letter)
  call('ZADD', prefix .. 'dlq:index', dlq, id)
  call('ZADD', prefix .. 'dlq:index:' .. tenant, dlq, id)
  count(1)
end

local rev = expects == '' and '1' or string.format('%.0f', expects + 1)
local at = lists + 2 * ARGV[lists] + 1
call('HSET', KEYS[2], 'rev', rev, 'seq', seq, 'state', state, 'live', live, 'ended', ended, 'at', worker,
  'owner', owner, 'by', token, 'dlq', dlq, 'why', why, unpack(ARGV, lists + 1, at - 1))
for i = 1, ARGV[at] do call('XADD', KEYS[4], '*', 'o', ARGV[at + 2 * i - 1], 'd', ARGV[at + 2 * i]) end
at = at + 2 * ARGV[at] + 1
for i = 5, #KEYS do
  call('SET', KEYS[i], ARGV[at], 'PX', ARGV[at + 2])
  call('ZADD', prefix .. 'blob:ends', ARGV[at + 1], KEYS[i])
  at = at + 3
end
-- A worker writes its result without an end; the job's own end gives it one.
if kept ~= '' then call('PEXPIRE', kept, kept_ms, 'NX') end
call('SET', KEYS[1], record)
if processed ~= '' then
  call('SET', processed, '1', 'PX', 600000)
  call('DEL', inflight, lock ~= '' and lock or inflight)
elseif lock ~= '' then
  call('DEL', lock)
end
return {'done'}
