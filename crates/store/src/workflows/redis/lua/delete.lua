-- Deletes a workflow: nobody starts it any more, and runs keep the versions that they go by.
-- Says whether it was there.
--
-- KEYS  definition, index
-- ARGS  id, kept_ms
local call = redis.call
local current = call('HGET', definition, 'current')
if not current then return 0 end
call('HDEL', definition, 'current', 'document')
call('ZREM', index, id)
if (call('HGET', definition, 'runs:' .. current) or '0') == '0' then
  call('HDEL', definition, 'v:' .. current, 'runs:' .. current)
end
-- What is left says which numbers were given out. Once no run needs it, it may go.
if call('HLEN', definition) == 1 then call('PEXPIRE', definition, kept_ms) end
return 1
