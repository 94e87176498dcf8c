-- A replica says that it is here. KEYS: cordum:replicas. Says whether it was here all the time, who has fallen silent, and who is here.
local prefix, me, about, ttl, now, grace = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local call = redis.call
local replicas = KEYS[1]
local time = call('TIME')
local ms = now ~= '' and tonumber(now) or time[1] * 1000 + math.floor(time[2] / 1000)
local last = call('ZSCORE', replicas, me)
call('ZADD', replicas, ms, me)
-- Operators, and locks, know a replica by this key.
call('SET', prefix .. 'cordum:instance:scheduler:' .. me, about, 'PX', ttl + grace)
local silent = call('ZRANGE', replicas, '-inf', ms - ttl, 'BYSCORE')
local here = call('ZRANGE', replicas, '(' .. (ms - ttl), '+inf', 'BYSCORE')
return {last and ms - last < ttl and 1 or 0, silent, here}
