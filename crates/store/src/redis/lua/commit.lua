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

local known = {'rev', 'seq', 'state', 'live', 'ended', 'at', 'placed', 'owner', 'by', 'dlq', 'why'}
local was = {}
for i, value in ipairs(call('HMGET', KEYS[2], unpack(known))) do was[known[i]] = value or nil end

-- Our own step, whose answer was lost.
if was.rev and was.by == token then return {'done'} end

if expects == '' and was.rev then return {'duplicate', id} end
-- The job may have moved on since, or be gone: the message was acted on all the same.
if processed ~= '' and call('EXISTS', processed) == 1 then return {'seen'} end
if expects == '' then
  local holder = idempotency ~= '' and call('GET', prefix .. 'job:idempotency:' .. tenant .. ':' .. idempotency)
  if holder then return {'duplicate', holder} end
  if queue_max ~= '' and ended == '0'
      and call('SCARD', prefix .. 'job:tenant:active:' .. tenant) >= tonumber(queue_max) then
    return {'no room', 'queue'}
  end
elseif was.rev ~= expects then
  return {'conflict'}
end
local time = call('TIME')
local us = now ~= '' and now * 1000 or time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', us)
if lock ~= '' then
  local is, till = (call('GET', lock) or ''):match('^(%d+)|[^|]*|(%d+)$')
  if is ~= fence or us >= till * 1000 then return {'fenced'} end
end
local placed = (state == 'dispatched' or state == 'running') and '1' or '0'
if worker ~= '' and was.at ~= worker and worker_max ~= ''
    and call('ZCARD', prefix .. 'worker:jobs:' .. worker) >= tonumber(worker_max) then
  return {'no room', 'worker'}
end
if placed == '1' and was.placed ~= '1' then
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

local seq = was.seq
if not seq then
  seq = number()
  call('ZADD', prefix .. 'job:recent', seq, id)
  call('ZADD', prefix .. 'job:index:tenant:' .. tenant, seq, id)
  if trace ~= '' then call('ZADD', prefix .. 'trace:' .. trace, seq, id) end
  if idempotency ~= '' then call('SET', prefix .. 'job:idempotency:' .. tenant .. ':' .. idempotency, id) end
end
if was.state ~= state then
  if was.state then call('ZREM', prefix .. 'job:index:' .. was.state, id) end
  call('ZADD', prefix .. 'job:index:' .. state, seq, id)
  if asked == '1' then call('ZADD', prefix .. 'job:index:asked', seq, id) end
end
if live == '1' and was.live ~= '1' then
  call('ZADD', prefix .. 'job:index:live', seq, id)
  if was.live then call('ZREM', prefix .. 'job:index:ended', id) end
elseif live == '0' then
  owner = ''
  if was.live == '1' then call('ZREM', prefix .. 'job:index:live', id) end
  call('ZADD', prefix .. 'job:index:ended', updated, id)
end
if (was.owner or '') ~= owner then
  if was.owner and was.owner ~= '' then call('ZREM', prefix .. 'job:owner:' .. was.owner, id) end
  if owner ~= '' then
    call('ZADD', prefix .. 'job:owner:' .. owner, seq, id)
    -- The owner may be one that was taken over a moment ago: it is found dead again, and its jobs again.
    call('ZADD', prefix .. 'cordum:replicas', 'NX', 0, owner)
  end
end
if ended ~= was.ended then
  call(ended == '0' and 'SADD' or 'SREM', prefix .. 'job:tenant:active:' .. tenant, id)
end
if (was.at or '') ~= worker then
  if was.at and was.at ~= '' then call('ZREM', prefix .. 'worker:jobs:' .. was.at, id) end
  if worker ~= '' then call('ZADD', prefix .. 'worker:jobs:' .. worker, us, id) end
end
if placed ~= (was.placed or '0') then
  local move = placed == '1' and 'SADD' or 'SREM'
  call(move, prefix .. 'job:tenant:placed:' .. tenant, id)
  call(move, prefix .. 'job:topic:placed:' .. topic, id)
end

local dlq, why = was.dlq or '', was.why or ''
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
if letter ~= '' and was.state ~= state then
  take_off()
  dlq, why = number(), reason
  call('SET', prefix .. 'dlq:entry:' .. id, letter)
  call('ZADD', prefix .. 'dlq:index', dlq, id)
  call('ZADD', prefix .. 'dlq:index:' .. tenant, dlq, id)
  count(1)
end

local meta = {
  'rev', expects == '' and '1' or string.format('%.0f', expects + 1), 'seq', seq, 'state', state, 'live', live,
  'ended', ended, 'at', worker, 'placed', placed, 'owner', owner, 'by', token, 'dlq', dlq, 'why', why,
}
local at = lists
for i = 1, 2 * ARGV[at] do meta[#meta + 1] = ARGV[at + i] end
at = at + 2 * ARGV[at] + 1
for i = 1, ARGV[at] do call('XADD', KEYS[4], '*', 'o', ARGV[at + 2 * i - 1], 'd', ARGV[at + 2 * i]) end
at = at + 2 * ARGV[at] + 1
for i = 5, #KEYS do
  call('SET', KEYS[i], ARGV[at], 'PX', ARGV[at + 2])
  call('ZADD', prefix .. 'blob:ends', ARGV[at + 1], KEYS[i])
  at = at + 3
end
-- A worker writes its result without an end; the job's own end gives it one.
if kept ~= '' then call('PEXPIRE', kept, kept_ms, 'NX') end
call('HSET', KEYS[2], unpack(meta))
call('SET', KEYS[1], record)
if processed ~= '' then
  call('SET', processed, '1', 'PX', 600000)
  call('DEL', inflight, lock ~= '' and lock or inflight)
elseif lock ~= '' then
  call('DEL', lock)
end
return {'done'}
