-- A stretch of an index of runs, newest first, filtered. KEYS: the index.
-- Says where it stopped ('' at the end), then sequence, head, sequence, head. It looks at `budget` entries at most,
-- so that nobody else waits for long; the caller goes on from where it stopped.
local prefix, last, want, budget, updated_min, updated_max, tenant, workflow, state, team = unpack(ARGV)
local call = redis.call
local found = {''}
want, budget = 2 * want + 1, tonumber(budget)

local function fits(wanted, is) return wanted == '' or wanted == is end

while budget > 0 do
  local ids = call('ZRANGE', KEYS[1], '(' .. last, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 100, 'WITHSCORES')
  if #ids == 0 then return found end
  for i = 1, #ids, 2 do
    last, budget = ids[i + 1], budget - 1
    local run = prefix .. 'wf:run:' .. ids[i]
    local meta = call('HMGET', run, 'updated', 'tenant', 'workflow', 'state', 'team')
    local updated = tonumber(meta[1])
    if updated and updated >= tonumber(updated_min) and updated <= tonumber(updated_max)
        and fits(tenant, meta[2]) and fits(workflow, meta[3]) and fits(state, meta[4]) and fits(team, meta[5]) then
      found[#found + 1] = last
      found[#found + 1] = call('HGET', run, 'head')
      if #found >= want then
        found[1] = last
        return found
      end
    end
  end
end
found[1] = last
return found
