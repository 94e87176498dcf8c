-- Takes over jobs of a replica that has fallen silent. Says false if it is back, else the jobs; none is the end.
local prefix, silent, me, limit = unpack(ARGV, 1, 4)
local call = redis.call
if call('EXISTS', prefix .. 'cordum:instance:scheduler:' .. silent) == 1 then return false end
local found = {}
local ids = call('ZRANGE', prefix .. 'job:owner:' .. silent, 0, limit - 1, 'WITHSCORES')
for i = 1, #ids, 2 do
  local id, seq = ids[i], ids[i + 1]
  call('ZREM', prefix .. 'job:owner:' .. silent, id)
  if call('HGET', prefix .. 'job:meta:' .. id, 'owner') == silent then
    call('HSET', prefix .. 'job:meta:' .. id, 'owner', me)
    call('ZADD', prefix .. 'job:owner:' .. me, seq, id)
    found[#found + 1] = call('GET', prefix .. 'job:rec:' .. id)
  end
end
if #ids == 0 then call('ZREM', prefix .. 'cordum:replicas', silent) end
return found
