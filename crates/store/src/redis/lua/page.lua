-- A stretch of an index of jobs, filtered. KEYS: the index.
-- Says where it stopped ('' at the end), then sequence, job, sequence, job. It looks at `budget` entries at most,
-- so that nobody else waits for long; the caller goes on from where it stopped.
local prefix, direction, last, want, budget, updated_min, updated_max = unpack(ARGV, 1, 7)
local tenant, state, topic, team, trace = unpack(ARGV, 8, 12)
local call = redis.call
local found = {''}
want, budget = 2 * want + 1, tonumber(budget)

local function fits(wanted, is) return wanted == '' or wanted == is end
local function next_ids()
  if direction == 'down' then
    return call('ZRANGE', KEYS[1], '(' .. last, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 100, 'WITHSCORES')
  end
  return call('ZRANGE', KEYS[1], '(' .. last, '+inf', 'BYSCORE', 'LIMIT', 0, 100, 'WITHSCORES')
end

while budget > 0 do
  local ids = next_ids()
  if #ids == 0 then return found end
  for i = 1, #ids, 2 do
    last, budget = ids[i + 1], budget - 1
    local meta = call('HMGET', prefix .. 'job:meta:' .. ids[i], 'updated', 'tenant', 'state', 'topic', 'team', 'trace_id')
    local updated = tonumber(meta[1])
    if updated and updated >= tonumber(updated_min) and updated <= tonumber(updated_max)
        and fits(tenant, meta[2]) and fits(state, meta[3]) and fits(topic, meta[4])
        and fits(team, meta[5]) and fits(trace, meta[6]) then
      found[#found + 1] = last
      found[#found + 1] = call('GET', prefix .. 'job:rec:' .. ids[i])
      if #found >= want then
        found[1] = last
        return found
      end
    end
  end
end
found[1] = last
return found
