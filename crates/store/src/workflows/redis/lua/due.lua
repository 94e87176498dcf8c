-- Runs whose time has come. An entry whose run is gone, or waits for nothing, goes too.
--
-- KEYS  timers
-- ARGS  prefix, now, limit
local call = redis.call
local due = {}
local last = string.format('%.3f', now / 1000)
for _, member in ipairs(call('ZRANGE', timers, '-inf', last, 'BYSCORE', 'LIMIT', 0, limit)) do
  -- No run has a colon in its id; a client's own name for its workflow may.
  local id = member:match('^.*:([^:]*)$')
  local at = id and call('HGET', prefix .. 'wf:run:' .. id, 'due')
  if at and at ~= '' then due[#due + 1] = id else call('ZREM', timers, member) end
end
return due
