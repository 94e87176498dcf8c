-- A replica says that it is here. Says whether it was here all the time, who has fallen silent, and who is here.
local prefix, me, about, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local call = redis.call
local replicas, instance = prefix .. 'cordum:replicas', prefix .. 'cordum:instance:scheduler:' .. me
local time = call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
local last = call('ZSCORE', replicas, me)
local was_here = last and ms - last <= ttl and call('EXISTS', instance) == 1
call('ZADD', replicas, ms, me)
call('SET', instance, about, 'PX', ttl)
local silent = call('ZRANGE', replicas, '-inf', ms - ttl, 'BYSCORE')
local here = call('ZRANGE', replicas, '(' .. (ms - ttl), '+inf', 'BYSCORE')
return {was_here and 1 or 0, silent, here}
