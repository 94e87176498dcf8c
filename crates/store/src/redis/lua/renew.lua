-- Holds on to a lock for as long again, or gives it back if `ttl` is empty. KEYS: the lock. Says 1 or 0.
local fence, ttl, now, grace = unpack(ARGV, 1, 4)
local time = redis.call('TIME')
local ms = now ~= '' and tonumber(now) or time[1] * 1000 + math.floor(time[2] / 1000)
local held = redis.call('GET', KEYS[1]) or ''
local is, who, till = held:match('^(%d+)|([^|]*)|(%d+)$')
if is ~= fence or ms >= tonumber(till) then return 0 end
if ttl == '' then return redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], fence .. '|' .. who .. '|' .. string.format('%.0f', ms + ttl), 'PX', ttl + grace)
return 1
