-- A page of an index, filtered; of several indexes, as if they were one.
--
-- KEYS  ; the indexes
-- ARGS  direction, last, want, budget, updated_min, updated_max, hash, record;
--       then fields of the hash, each with what it has to be
--
-- It goes 'up' or 'down' from `last`. `hash` and `record` stand before an id in the names of its hash and of its record
-- ('' if the record is the field 'head' of the hash). Times are in microseconds.
-- Says where it stopped ('' at the end), then sequence, record, sequence, record. It looks at `budget` entries at most,
-- so that nobody else waits for long; the caller goes on from where it stopped.
local call = redis.call
local found, fields, wanted = {''}, {'updated_at'}, {}
want, budget, updated_min, updated_max = 2 * want + 1, tonumber(budget), tonumber(updated_min), tonumber(updated_max)
for i = more_args, #ARGV, 2 do
  fields[#fields + 1] = ARGV[i]
  wanted[#fields] = ARGV[i + 1]
end

local function next_of(index, some)
  if direction == 'down' then
    return call('ZRANGE', index, '(' .. last, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, some, 'WITHSCORES')
  end
  return call('ZRANGE', index, '(' .. last, '+inf', 'BYSCORE', 'LIMIT', 0, some, 'WITHSCORES')
end

local function next_ids()
  local some = math.min(budget, 100)
  if #KEYS == 1 then return next_of(KEYS[more_keys], some) end
  local all, ids = {}, {}
  for _, index in ipairs(KEYS) do
    local its = next_of(index, some)
    for i = 1, #its, 2 do all[#all + 1] = {id = its[i], at = tonumber(its[i + 1]), place = its[i + 1]} end
  end
  table.sort(all, function(a, b) if direction == 'down' then return a.at > b.at else return a.at < b.at end end)
  for i = 1, math.min(some, #all) do
    ids[2 * i - 1], ids[2 * i] = all[i].id, all[i].place
  end
  return ids
end

local function record_of(id)
  if record == '' then return call('HGET', hash .. id, 'head') end
  return call('GET', record .. id)
end

local function fits(is)
  local updated = tonumber(is[1])
  if not updated or updated < updated_min or updated > updated_max then return false end
  for i = 2, #fields do
    if is[i] ~= wanted[i] then return false end
  end
  return true
end

while budget > 0 do
  local ids = next_ids()
  if #ids == 0 then return found end
  for i = 1, #ids, 2 do
    last, budget = ids[i + 1], budget - 1
    if fits(call('HMGET', hash .. ids[i], unpack(fields))) then
      found[#found + 1] = last
      found[#found + 1] = record_of(ids[i])
      if #found >= want then
        found[1] = last
        return found
      end
    end
  end
end
found[1] = last
return found
