-- Takes over jobs of a replica that has fallen silent. KEYS: cordum:replicas. Says false if it is back, else the jobs; none is the end.
local prefix, silent, me, limit, ttl, now = unpack(ARGV, 1, 6)
local call = redis.call
local replicas = KEYS[1]
local time = call('TIME')
local ms = now ~= '' and tonumber(now) or time[1] * 1000 + math.floor(time[2] / 1000)
local last = call('ZSCORE', replicas, silent)
if last and ms - last < tonumber(ttl) then return false end
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
if #ids == 0 then call('ZREM', replicas, silent) end
return found
