-- Saves a workflow as its next version, unless it is as the last one. KEYS: wf:def, wf:index:org.
-- A version that no run goes by is gone when the next one is there. Says the version.
local id, document, record = ARGV[1], ARGV[2], ARGV[3]
local call = redis.call
local last, current, saved = unpack(call('HMGET', KEYS[1], 'last', 'current', 'document'))
if current and saved == document then return tonumber(current) end
local next = (tonumber(last) or 0) + 1
if current and (call('HGET', KEYS[1], 'runs:' .. current) or '0') == '0' then
  call('HDEL', KEYS[1], 'v:' .. current, 'runs:' .. current)
end
call('HSET', KEYS[1], 'last', next, 'current', next, 'document', document, 'v:' .. next, record)
call('PERSIST', KEYS[1])
call('ZADD', KEYS[2], 0, id)
return next
