-- Takes a job off the dead letters. KEYS: job:meta. Says 1 if it was there.
local prefix, id = ARGV[1], ARGV[2]
local call = redis.call
local tenant, dlq, why = unpack(call('HMGET', KEYS[1], 'tenant', 'dlq', 'why'), 1, 3)
if not dlq or dlq == '' then return 0 end
call('DEL', prefix .. 'dlq:entry:' .. id)
call('ZREM', prefix .. 'dlq:index', id)
call('ZREM', prefix .. 'dlq:index:' .. tenant, id)
call('HSET', KEYS[1], 'dlq', '')
for _, counts in ipairs{prefix .. 'dlq:count', prefix .. 'dlq:count:' .. tenant} do
  if call('HINCRBY', counts, why, -1) == 0 then call('HDEL', counts, why) end
end
return 1
