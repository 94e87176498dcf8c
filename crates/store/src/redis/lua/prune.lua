-- Removes ended jobs that were last touched before a moment, with all that is theirs.
-- Says how many rows went, and on a cluster (which has a tag) of which jobs: their other blobs are not here.
--
-- KEYS  ended
-- ARGS  prefix, tag, before, limit
local call = redis.call
local gone, jobs = 0, {}
for _, id in ipairs(call('ZRANGE', ended, '-inf', '(' .. before, 'BYSCORE', 'LIMIT', 0, limit)) do
  local fields = call('HMGET', prefix .. 'job:meta:' .. id, 'state', 'tenant', 'trace_id', 'idempotency_key', 'dlq', 'why')
  local state, tenant, trace, idempotency, dlq, why = unpack(fields, 1, 6)
  for _, index in ipairs{'recent', 'index:ended', 'index:asked', 'index:' .. (state or ''), 'index:tenant:' .. (tenant or '')} do
    call('ZREM', prefix .. 'job:' .. index, id)
  end
  if trace and trace ~= '' then call('ZREM', prefix .. 'trace:' .. trace, id) end
  if idempotency and idempotency ~= '' then
    local key = prefix .. 'job:idempotency:' .. tenant .. ':' .. idempotency
    if call('GET', key) == id then call('DEL', key) end
  end
  if dlq and dlq ~= '' then
    call('ZREM', prefix .. 'dlq:index', id)
    call('ZREM', prefix .. 'dlq:index:' .. tenant, id)
    gone = gone + call('DEL', prefix .. 'dlq:entry:' .. id)
    for _, counts in ipairs{prefix .. 'dlq:count', prefix .. 'dlq:count:' .. tenant} do
      if call('HINCRBY', counts, why, -1) == 0 then call('HDEL', counts, why) end
    end
  end
  for _, blob in ipairs{tag .. 'ctx:' .. id, tag .. 'res:' .. id} do
    gone = gone + call('DEL', blob)
    call('ZREM', prefix .. 'blob:ends', blob)
  end
  call('DEL', prefix .. 'job:rec:' .. id)
  gone = gone + call('DEL', prefix .. 'job:meta:' .. id)
  if tag ~= '' then jobs[#jobs + 1] = id end
end
return {gone, jobs}
