-- Deletes a workflow: nobody starts it any more, and runs keep the versions that they go by.
-- KEYS: wf:def, wf:index:org. Says whether it was there.
local id, kept_ms = ARGV[1], ARGV[2]
local call = redis.call
local current = call('HGET', KEYS[1], 'current')
if not current then return 0 end
call('HDEL', KEYS[1], 'current', 'document')
call('ZREM', KEYS[2], id)
if (call('HGET', KEYS[1], 'runs:' .. current) or '0') == '0' then
  call('HDEL', KEYS[1], 'v:' .. current, 'runs:' .. current)
end
-- What is left says which numbers were given out. Once no run needs it, it may go.
if call('HLEN', KEYS[1]) == 1 then call('PEXPIRE', KEYS[1], kept_ms) end
return 1
