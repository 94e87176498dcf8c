-- Holds on to a lock for as long again, or gives it back if `ttl_ms` is empty. Says 1 or 0.
--
-- KEYS  lock
-- ARGS  prefix, fence, ttl_ms, now, grace_ms
local call = redis.call
local time = call('TIME')
local ms = now ~= '' and tonumber(now) or time[1] * 1000 + math.floor(time[2] / 1000)
local held = call('GET', lock) or ''
local is, who, till = held:match('^(%d+)|([^|]*)|(%d+)$')
if is ~= fence or ms >= tonumber(till) then return 0 end
local list = prefix .. 'cordum:locks'
if ttl_ms == '' then
  call('ZREM', list, lock)
  return call('DEL', lock)
end
till = string.format('%.0f', ms + ttl_ms)
call('SET', lock, fence .. '|' .. who .. '|' .. till, 'PX', ttl_ms + grace_ms)
call('ZADD', list, 'XX', till, lock)
if call('PTTL', list) < ttl_ms + grace_ms then call('PEXPIRE', list, ttl_ms + grace_ms) end
return 1
