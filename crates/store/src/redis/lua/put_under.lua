-- Puts a blob that was written beside its place into its place, if a lock is held. Says 1 or 0.
--
-- KEYS  lock, beside, blob
-- ARGS  prefix, fence, now, expires_at, ttl_ms
local call = redis.call
local time = call('TIME')
local ms = now ~= '' and tonumber(now) or time[1] * 1000 + math.floor(time[2] / 1000)
local is, till = (call('GET', lock) or ''):match('^(%d+)|[^|]*|(%d+)$')
if is ~= fence or ms >= tonumber(till) then
  call('DEL', beside)
  return 0
end
-- Of two tries the first has done it already.
if call('EXISTS', beside) == 1 then call('RENAME', beside, blob) end
call('PEXPIRE', blob, ttl_ms)
call('ZADD', prefix .. 'blob:ends', expires_at, blob)
return 1
