-- What must be known before a decision, in one trip: whether the message was seen before, whether the lock is
-- free (then it is taken), and the job.
--
-- KEYS  record
-- ARGS  prefix, lock, ttl_ms, now, holder, grace_ms, processed, in_flight, what
-- Says  seen | busy, by whom | yours, fence, job
--
-- `what` is 'job' where a job is opened; otherwise the lock is all that is asked for, and `record` is its name again.
local call = redis.call
local fence = ''

if processed ~= '' and call('EXISTS', processed) == 1 then return {'seen'} end
if lock ~= '' then
  local time = call('TIME')
  local us = now ~= '' and now * 1000 or time[1] * 1000000 + time[2]
  local held = call('GET', lock)
  if held then
    local who, till = held:match('^%d+|([^|]*)|(%d+)$')
    -- A holder with other habits is left alone.
    if not till then return {'busy', held} end
    local is_alive = who == '' or call('EXISTS', prefix .. 'cordum:instance:scheduler:' .. who) == 1
    -- One that would last for longer than two TTLs was taken by a clock that has been set back since.
    local is_valid = is_alive and us < till * 1000 and till * 1000 <= us + 2000 * ttl_ms
    -- Within one replica a job has one turn at a time: what it has left locked it may open again.
    local is_own = what == 'job' and who == holder
    if is_valid and not is_own then return {'busy', who} end
  end
  local last = prefix .. 'cordum:lock:fence'
  fence = string.format('%.0f', us)
  local was = call('SET', last, fence, 'GET')
  if was and tonumber(was) >= us then
    fence = string.format('%.0f', was + 1)
    call('SET', last, fence)
  end
  local till = string.format('%.0f', math.floor(us / 1000) + ttl_ms)
  call('SET', lock, fence .. '|' .. holder .. '|' .. till, 'PX', ttl_ms + grace_ms)
  -- Those who look on find it there, and what has lapsed makes room. Locks of jobs are many and last a moment.
  if what ~= 'job' then
    local list = prefix .. 'cordum:locks'
    local lapsed = call('ZRANGE', list, '-inf', string.format('%.0f', math.floor(us / 1000)), 'BYSCORE', 'LIMIT', 0, 100)
    if #lapsed > 0 then call('ZREM', list, unpack(lapsed)) end
    call('ZADD', list, till, lock)
    if call('PTTL', list) < ttl_ms + grace_ms then call('PEXPIRE', list, ttl_ms + grace_ms) end
  end
end
if in_flight ~= '' then call('SET', in_flight, '1', 'PX', 120000) end
if what ~= 'job' then return {'yours', fence} end
return {'yours', fence, call('GET', record)}
