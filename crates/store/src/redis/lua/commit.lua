-- One step of one job: its revision is compared, then everything that belongs to the step is written.
-- Whatever can refuse comes first; after that nothing fails.
--
-- KEYS  job_record, job_meta, job_seq, audit_outbox; then the blobs of the step
-- ARGS  prefix, id, expects, now, token, record, was_state, state, was_worker, worker, was_live, live, active, placed,
--       asked, released, updated, owner, tenant, topic, trace, idempotency, letter, reason, worker_max, tenant_max,
--       topic_max, queue_max, approvals_max, lock, fence, processed, in_flight, kept, kept_ms, event, events_max;
--       then entries of the audit trail, counted, then the blobs, and then the fields of job:meta that have changed
-- Says  done | duplicate, id | seen | conflict | no room, of what | fenced
--
-- Those that begin with `was` tell how the job was (nothing of a new one): `expects` is to be compared before they are
-- believed.
local call = redis.call

-- What others write too: a job changes hands, and leaves the dead letters, at the same revision.
local was_rev, seq, was_owner, by, dlq, why, is_state, is_worker =
  unpack(call('HMGET', job_meta, 'rev', 'seq', 'owner', 'by', 'dlq', 'why', 'state', 'worker_id'), 1, 8)
dlq, why = dlq or '', why or ''

-- Our own step, whose answer was lost.
if was_rev and by == token then return {'done'} end

-- The job may have moved on since, or be gone: the message was acted on all the same.
local function refuse(...)
  if processed ~= '' and call('EXISTS', processed) == 1 then return {'seen'} end
  return {...}
end

if expects == '' then
  if was_rev then return {'duplicate', id} end
  local holder = idempotency ~= '' and call('GET', prefix .. 'job:idempotency:' .. tenant .. ':' .. idempotency)
  if holder then return refuse('duplicate', holder) end
  if queue_max ~= '' and active == 'SADD'
      and call('SCARD', prefix .. 'job:tenant:active:' .. tenant) >= tonumber(queue_max) then
    return refuse('no room', 'queue')
  end
elseif was_rev ~= expects or is_state ~= was_state or was_worker ~= '' and is_worker ~= was_worker then
  -- A Redis that has lost its last second counts revisions again that somebody remembers otherwise.
  return refuse('conflict')
end
local time = call('TIME')
local us = now ~= '' and now * 1000 or time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', us)
if lock ~= '' then
  local is, till = (call('GET', lock) or ''):match('^(%d+)|[^|]*|(%d+)$')
  if is ~= fence or us >= till * 1000 then return refuse('fenced') end
end
local asks = prefix .. 'job:tenant:asked:' .. tenant
local is_asked = state == 'approval_required' and was_state ~= state
if is_asked and approvals_max ~= '' and call('SCARD', asks) >= tonumber(approvals_max) then
  return refuse('no room', 'approvals')
end
if worker ~= '' and worker ~= was_worker and worker_max ~= ''
    and call('ZCARD', prefix .. 'worker:jobs:' .. worker) >= tonumber(worker_max) then
  return refuse('no room', 'worker')
end
if placed == 'SADD' then
  if tenant_max ~= '' and call('SCARD', prefix .. 'job:tenant:placed:' .. tenant) >= tonumber(tenant_max) then
    return refuse('no room', 'tenant')
  end
  if topic_max ~= '' and call('SCARD', prefix .. 'job:topic:placed:' .. topic) >= tonumber(topic_max) then
    return refuse('no room', 'topic')
  end
end

-- The last that can refuse is the first that writes.
if processed ~= '' and not call('SET', processed, '1', 'PX', 600000, 'NX') then return {'seen'} end

-- The event's place in the event log is the time, or the one after the last.
local place = stamp
if event ~= '' then
  local events = prefix .. 'reveille:events'
  local function append() return redis.pcall('XADD', events, 'MAXLEN', '~', events_max, place .. '-0', 'e', event) end
  if type(append()) == 'table' then
    place = string.format('%.0f', call('XREVRANGE', events, '+', '-', 'COUNT', 1)[1][1]:match('^%d+') + 1)
    append()
  end
end

-- The time too, or the one after the last.
local function number()
  local last = call('SET', job_seq, stamp, 'GET')
  if not last or tonumber(last) < us then return stamp end
  local next = string.format('%.0f', last + 1)
  call('SET', job_seq, next)
  return next
end

local is_new = not seq
if is_new then
  -- No other job has the place of the event.
  seq = event ~= '' and place or number()
  call('ZADD', prefix .. 'job:recent', seq, id)
  call('ZADD', prefix .. 'job:index:tenant:' .. tenant, seq, id)
  if idempotency ~= '' then call('SET', prefix .. 'job:idempotency:' .. tenant .. ':' .. idempotency, id) end
  -- A trace that bears its first job's name needs no list until there is a second job.
  local jobs = prefix .. 'trace:' .. trace
  if trace == id then
    if call('EXISTS', jobs) == 1 then call('ZADD', jobs, seq, id) end
  elseif trace ~= '' then
    call('ZADD', jobs, seq, id)
    if call('ZCARD', jobs) == 1 then
      local first, its = unpack(call('HMGET', prefix .. 'job:meta:' .. trace, 'seq', 'trace_id'), 1, 2)
      if first and its == trace then call('ZADD', jobs, first, trace) end
    end
  end
end
if was_state ~= state then
  -- Most jobs have succeeded: who looks for those finds them in the other lists.
  if was_state ~= '' and was_state ~= 'succeeded' then call('ZREM', prefix .. 'job:index:' .. was_state, id) end
  if state ~= 'succeeded' then call('ZADD', prefix .. 'job:index:' .. state, seq, id) end
  if asked == '1' then call('ZADD', prefix .. 'job:index:asked', seq, id) end
end
if was_live == '1' and (live == '0' or was_owner ~= owner) then call('ZREM', prefix .. 'job:owner:' .. was_owner, id) end
if live == '0' then
  owner = ''
  call('ZADD', prefix .. 'job:index:ended', updated, id)
elseif was_live ~= '1' or was_owner ~= owner then
  call('ZADD', prefix .. 'job:owner:' .. owner, seq, id)
  -- The owner may be one that was taken over a moment ago: it is found dead again, and its jobs again.
  call('ZADD', prefix .. 'cordum:replicas', 'NX', 0, owner)
  if was_live == '0' then call('ZREM', prefix .. 'job:index:ended', id) end
end
if is_asked then
  call('SADD', asks, id)
elseif was_state == 'approval_required' and was_state ~= state then
  call('SREM', asks, id)
end
if active ~= '' then call(active, prefix .. 'job:tenant:active:' .. tenant, id) end
if was_worker ~= worker then
  if was_worker ~= '' then call('ZREM', prefix .. 'worker:jobs:' .. was_worker, id) end
  if worker ~= '' then call('ZADD', prefix .. 'worker:jobs:' .. worker, us, id) end
end
if placed ~= '' then
  call(placed, prefix .. 'job:tenant:placed:' .. tenant, id)
  call(placed, prefix .. 'job:topic:placed:' .. topic, id)
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
  call('HSET', job_meta, 'dlq', '')
  count(-1)
  dlq = ''
end
if released == '1' then take_off() end
if letter ~= '' and was_state ~= state then
  take_off()
  dlq, why = number(), reason
  call('HSET', job_meta, 'dlq', dlq, 'why', why)
  call('SET', prefix .. 'dlq:entry:' .. id, letter)
  call('ZADD', prefix .. 'dlq:index', dlq, id)
  call('ZADD', prefix .. 'dlq:index:' .. tenant, dlq, id)
  count(1)
end

local at = more_args
for i = 1, ARGV[at] do call('XADD', audit_outbox, '*', 'o', ARGV[at + 2 * i - 1], 'd', ARGV[at + 2 * i]) end
at = at + 2 * ARGV[at] + 1
for i = more_keys, #KEYS do
  call('SET', KEYS[i], ARGV[at], 'PX', ARGV[at + 2])
  call('ZADD', prefix .. 'blob:ends', ARGV[at + 1], KEYS[i])
  at = at + 3
end
if is_new then
  call('HSET', job_meta, 'seq', seq, 'rev', '1', 'by', token, 'owner', owner, unpack(ARGV, at))
else
  call('HSET', job_meta, 'rev', string.format('%.0f', expects + 1), 'by', token, 'owner', owner, unpack(ARGV, at))
end
-- A worker writes its result without an end; the job's own end gives it one.
if kept ~= '' then call('PEXPIRE', kept, kept_ms, 'NX') end
call('SET', job_record, record)
if in_flight ~= '' then call('DEL', in_flight) end
if lock ~= '' then call('DEL', lock) end
return {'done'}
