-- Holds on to a lock for as long again, or gives it back if `ttl` is empty. KEYS: the lock. Says 1 or 0.
local fence, ttl, now, grace, prefix = unpack(ARGV, 1, 5)
local call = redis.call
local time = call('TIME')
local ms = now ~= '' and tonumber(now) or time[1] * 1000 + math.floor(time[2] / 1000)
local held = call('GET', KEYS[1]) or ''
local is, who, till = held:match('^(%d+)|([^|]*)|(%d+)$')
if is ~= fence or ms >= tonumber(till) then return 0 end
local list = prefix .. 'cordum:locks'
if ttl == '' then
  call('ZREM', list, KEYS[1])
  return call('DEL', KEYS[1])
end
till = string.format('%.0f', ms + ttl)
call('SET', KEYS[1], fence .. '|' .. who .. '|' .. till, 'PX', ttl + grace)
call('ZADD', list, 'XX', till, KEYS[1])
if call('PTTL', list) < ttl + grace then call('PEXPIRE', list, ttl + grace) end
return 1
