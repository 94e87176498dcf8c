-- One change of one run: its revision is compared, then everything that belongs to the change is written, its timer
-- among it. Whatever can refuse comes first.
--
-- KEYS  run, timeline, timers, run_seq
-- ARGS  prefix, id, expects, token, head, revision, state, open, live, updated, due, team, tenant, workflow, version,
--       idempotency, runs_max, lines_max;
--       then two counted lists: parts (name, '1' or '0' for gone, body), lines of the timeline
-- Says  done | conflict | duplicate, id | no room
local call = redis.call
local function key(...) return prefix .. table.concat({...}) end

local known = {'rev', 'by', 'state', 'open', 'live', 'seq', 'due'}
local was = {}
for i, value in ipairs(call('HMGET', run, unpack(known))) do was[known[i]] = value or nil end

-- Our own change, whose answer was lost.
if was.rev and was.by == token then return {'done'} end

local definition = key('wf:def:', tenant, ':', workflow)
if expects == '' then
  if was.rev then return {'duplicate', id} end
  local holder = idempotency ~= '' and call('GET', key('wf:run:idempotency:', tenant, ':', idempotency))
  if holder then return {'duplicate', holder} end
  if runs_max ~= '' and call('SCARD', key('wf:runs:active:', tenant)) >= tonumber(runs_max) then return {'no room'} end
  if version ~= '' and call('HEXISTS', definition, 'v:' .. version) == 0 then return {'conflict'} end
elseif was.rev ~= expects then
  return {'conflict'}
end

-- From here on nothing refuses.

local seq = was.seq
if not seq then
  seq = call('INCR', run_seq)
  for _, index in ipairs{'all', 'org:' .. tenant, 'of:' .. tenant .. ':' .. workflow} do
    call('ZADD', key('wf:runs:', index), seq, id)
  end
  if idempotency ~= '' then call('SET', key('wf:run:idempotency:', tenant, ':', idempotency), id) end
  if version ~= '' then call('HINCRBY', definition, 'runs:' .. version, 1) end
end
if was.state ~= state then
  if was.state then call('ZREM', key('wf:runs:status:', was.state), id) end
  call('ZADD', key('wf:runs:status:', state), seq, id)
end
if was.open ~= open then call(open == '1' and 'SADD' or 'SREM', key('wf:runs:active:', tenant), id) end
if live == '1' then
  if was.live ~= '1' then call('ZADD', key('wf:runs:live'), seq, id) end
  if was.live == '0' then call('ZREM', key('wf:runs:ended'), id) end
else
  if was.live == '1' then call('ZREM', key('wf:runs:live'), id) end
  call('ZADD', key('wf:runs:ended'), updated, id)
end
if (was.due or '') ~= due then
  local member = workflow .. ':' .. id
  if due == '' then call('ZREM', timers, member)
  else call('ZADD', timers, string.format('%.3f', due / 1000), member) end
end

call('HSET', run, 'rev', revision, 'by', token, 'head', head, 'state', state, 'open', open, 'live', live, 'seq', seq,
  'due', due, 'updated_at', updated .. '000', 'team', team, 'tenant', tenant, 'workflow', workflow)
if not was.rev then call('HSET', run, 'version', version, 'key', idempotency) end
local at = more_args
for i = 1, ARGV[at] do
  local name, is_there, body = unpack(ARGV, at + 3 * i - 2, at + 3 * i)
  if is_there == '1' then call('HSET', run, name, body) else call('HDEL', run, name) end
end
at = at + 3 * ARGV[at] + 1
for i = 1, ARGV[at] do call('RPUSH', timeline, ARGV[at + i]) end
if tonumber(ARGV[at]) > 0 then call('LTRIM', timeline, -lines_max, -1) end
return {'done'}
