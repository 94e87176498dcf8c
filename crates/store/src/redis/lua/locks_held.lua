-- Locks that are held, those that lapse first in front. Says key, holder, until, key, ...
--
-- KEYS  locks
-- ARGS  prefix, limit, now
local call = redis.call
local time = call('TIME')
local ms = now ~= '' and tonumber(now) or time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
for _, lock in ipairs(call('ZRANGE', locks, string.format('(%.0f', ms), '+inf', 'BYSCORE', 'LIMIT', 0, limit)) do
  local who, till = (call('GET', lock) or ''):match('^%d+|([^|]*)|(%d+)$')
  -- One whose holder is gone is anybody's.
  local is_alive = who == '' or who and call('EXISTS', prefix .. 'cordum:instance:scheduler:' .. who) == 1
  if is_alive and ms < tonumber(till) then
    found[#found + 1] = lock
    found[#found + 1] = who
    found[#found + 1] = till
  end
end
return found
