-- Saves a workflow as its next version, unless it is as the last one. KEYS: wf:def, wf:index:org.
-- A version that no run goes by is gone when the next one is there. Says the version; nothing, if
-- there is no room for a new one.
local id, document, record, workflows_max = unpack(ARGV)
local call = redis.call
local last, current, saved = unpack(call('HMGET', KEYS[1], 'last', 'current', 'document'))
if current and saved == document then return tonumber(current) end
if not current and call('ZCARD', KEYS[2]) >= tonumber(workflows_max) then return false end
local next = (tonumber(last) or 0) + 1
if current and (call('HGET', KEYS[1], 'runs:' .. current) or '0') == '0' then
  call('HDEL', KEYS[1], 'v:' .. current, 'runs:' .. current)
end
call('HSET', KEYS[1], 'last', next, 'current', next, 'document', document, 'v:' .. next, record)
call('PERSIST', KEYS[1])
call('ZADD', KEYS[2], 0, id)
return next
