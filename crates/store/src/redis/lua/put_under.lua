-- Puts a blob that was written beside its place into its place, if a lock is held. KEYS: the lock, beside, the blob.
-- Says 1 or 0.
local prefix, fence, now, expires_at, ttl = unpack(ARGV, 1, 5)
local call = redis.call
local time = call('TIME')
local ms = now ~= '' and tonumber(now) or time[1] * 1000 + math.floor(time[2] / 1000)
local is, till = (call('GET', KEYS[1]) or ''):match('^(%d+)|[^|]*|(%d+)$')
if is ~= fence or ms >= tonumber(till) then
  call('DEL', KEYS[2])
  return 0
end
-- Of two tries the first has done it already.
if call('EXISTS', KEYS[2]) == 1 then call('RENAME', KEYS[2], KEYS[3]) end
call('PEXPIRE', KEYS[3], ttl)
call('ZADD', prefix .. 'blob:ends', expires_at, KEYS[3])
return 1
