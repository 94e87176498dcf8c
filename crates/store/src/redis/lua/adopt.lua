-- Takes over jobs of a server that has fallen silent. Says false if it is back, else the jobs; none is the end.
--
-- KEYS  replicas
-- ARGS  prefix, silent, me, limit, ttl_ms, now
local call = redis.call
local time = call('TIME')
local ms = now ~= '' and tonumber(now) or time[1] * 1000 + math.floor(time[2] / 1000)
local last = call('ZSCORE', replicas, silent)
if last and ms - last < tonumber(ttl_ms) then return false end
local found = {}
local ids = call('ZRANGE', prefix .. 'job:owner:' .. silent, 0, limit - 1, 'WITHSCORES')
for i = 1, #ids, 2 do
  local id, seq = ids[i], ids[i + 1]
  call('ZREM', prefix .. 'job:owner:' .. silent, id)
  if call('HGET', prefix .. 'job:meta:' .. id, 'owner') == silent then
    call('HSET', prefix .. 'job:meta:' .. id, 'owner', me)
    call('ZADD', prefix .. 'job:owner:' .. me, seq, id)
    found[#found + 1] = call('GET', prefix .. 'job:rec:' .. id)
  end
end
if #ids == 0 then call('ZREM', replicas, silent) end
-- Who takes over may have been taken for dead itself a moment ago: it is found again, and its jobs.
if #found > 0 then call('ZADD', replicas, 'NX', 0, me) end
return found
