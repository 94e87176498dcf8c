-- Removes runs that owe nothing, with all that is theirs: one that is named, or those last touched before a moment.
-- Says how many went.
--
-- KEYS  ended
-- ARGS  prefix, named, before, limit, kept_ms
local call = redis.call
local function key(...) return prefix .. table.concat({...}) end

local function let_go_of(tenant, workflow, version)
  local definition = key('wf:def:', tenant, ':', workflow)
  if call('HINCRBY', definition, 'runs:' .. version, -1) > 0 then return end
  call('HDEL', definition, 'runs:' .. version)
  if call('HGET', definition, 'current') ~= version then call('HDEL', definition, 'v:' .. version) end
  if call('HLEN', definition) == 1 then call('PEXPIRE', definition, kept_ms) end
end

local function remove(id)
  local run = key('wf:run:', id)
  local tenant, workflow, version, state, idempotency, live =
    unpack(call('HMGET', run, 'tenant', 'workflow', 'version', 'state', 'key', 'live'))
  if not tenant then
    call('ZREM', ended, id)
    return 0
  end
  if live == '1' then return 0 end
  for _, index in ipairs{'all', 'ended', 'org:' .. tenant, 'of:' .. tenant .. ':' .. workflow, 'status:' .. state} do
    call('ZREM', key('wf:runs:', index), id)
  end
  call('ZREM', key('cordum:wf:delay:timers'), workflow .. ':' .. id)
  if idempotency ~= '' then
    local holder = key('wf:run:idempotency:', tenant, ':', idempotency)
    if call('GET', holder) == id then call('DEL', holder) end
  end
  if version ~= '' then let_go_of(tenant, workflow, version) end
  call('UNLINK', run, key('wf:run:timeline:', id))
  return 1
end

if named ~= '' then return remove(named) end
local gone = 0
for _, id in ipairs(call('ZRANGE', ended, '-inf', '(' .. before, 'BYSCORE', 'LIMIT', 0, limit)) do
  gone = gone + remove(id)
end
return gone
