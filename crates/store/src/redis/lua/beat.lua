-- A server says that it is here. Says whether it was here all the time, who has fallen silent, and who is here.
--
-- KEYS  replicas
-- ARGS  prefix, me, about, ttl_ms, now, grace_ms
local ttl = tonumber(ttl_ms)
local call = redis.call
local time = call('TIME')
local ms = now ~= '' and tonumber(now) or time[1] * 1000 + math.floor(time[2] / 1000)
local last = call('ZSCORE', replicas, me)
call('ZADD', replicas, ms, me)
-- Operators, and locks, know a replica by this key.
call('SET', prefix .. 'cordum:instance:scheduler:' .. me, about, 'PX', ttl + grace_ms)
local silent = call('ZRANGE', replicas, '-inf', ms - ttl, 'BYSCORE')
local here = call('ZRANGE', replicas, '(' .. (ms - ttl), '+inf', 'BYSCORE')
return {last and ms - last < ttl and 1 or 0, silent, here}
