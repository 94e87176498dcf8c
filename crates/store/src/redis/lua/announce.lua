-- What those who watch are told beside the steps of jobs, in the order in which one replica says it.
-- A batch whose answer was lost is said again, and told once.
--
-- KEYS  reveille:events, the last batch of this replica
-- ARGV  now, batch, how many are kept, how many bytes may be kept, then the items
local now, batch, kept_max, bytes_max = unpack(ARGV, 1, 4)
local call = redis.call
if call('GET', KEYS[2]) == batch then return 0 end

local time = call('TIME')
local us = now ~= '' and now * 1000 or time[1] * 1000000 + time[2]
local last = call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local place = math.max(last and last[1]:match('^%d+') + 1 or 0, us)
for i = 5, #ARGV do
  call('XADD', KEYS[1], 'MAXLEN', '~', kept_max, string.format('%.0f-0', place), 'e', ARGV[i])
  place = place + 1
end
-- Steps tell little each. What is said here may be large, so here it is looked at.
if call('MEMORY', 'USAGE', KEYS[1]) > tonumber(bytes_max) then
  call('XTRIM', KEYS[1], 'MAXLEN', math.floor(call('XLEN', KEYS[1]) / 2))
end
call('SET', KEYS[2], batch, 'PX', 600000)
return 1
