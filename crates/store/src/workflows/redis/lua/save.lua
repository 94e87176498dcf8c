-- Saves a workflow as its next version, unless it is as the last one.
-- A version that no run goes by is gone when the next one is there. Says the version; nothing, if
-- there is no room for a new one.
--
-- KEYS  definition, index
-- ARGS  id, document, record, workflows_max
local call = redis.call
local last, current, saved = unpack(call('HMGET', definition, 'last', 'current', 'document'))
if current and saved == document then return tonumber(current) end
if not current and call('ZCARD', index) >= tonumber(workflows_max) then return false end
local next = (tonumber(last) or 0) + 1
if current and (call('HGET', definition, 'runs:' .. current) or '0') == '0' then
  call('HDEL', definition, 'v:' .. current, 'runs:' .. current)
end
call('HSET', definition, 'last', next, 'current', next, 'document', document, 'v:' .. next, record)
call('PERSIST', definition)
call('ZADD', index, 0, id)
return next
