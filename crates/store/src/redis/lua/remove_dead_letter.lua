-- Takes a job off the dead letters. Says 1 if it was there.
--
-- KEYS  job_meta
-- ARGS  prefix, id
local call = redis.call
local tenant, dlq, why = unpack(call('HMGET', job_meta, 'tenant', 'dlq', 'why'), 1, 3)
if not dlq or dlq == '' then return 0 end
call('DEL', prefix .. 'dlq:entry:' .. id)
call('ZREM', prefix .. 'dlq:index', id)
call('ZREM', prefix .. 'dlq:index:' .. tenant, id)
call('HSET', job_meta, 'dlq', '')
for _, counts in ipairs{prefix .. 'dlq:count', prefix .. 'dlq:count:' .. tenant} do
  if call('HINCRBY', counts, why, -1) == 0 then call('HDEL', counts, why) end
end
return 1
