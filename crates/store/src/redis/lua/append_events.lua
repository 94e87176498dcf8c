-- Appends events that belong to no step of a job, in the order in which one server tells them.
-- A batch whose answer was lost comes again, and is appended once.
--
-- KEYS  events, last_batch
-- ARGS  now, batch, kept_max, bytes_max; then the items
local call = redis.call
if call('GET', last_batch) == batch then return 0 end

local time = call('TIME')
local us = now ~= '' and now * 1000 or time[1] * 1000000 + time[2]
local last = call('XREVRANGE', events, '+', '-', 'COUNT', 1)[1]
local place = math.max(last and last[1]:match('^%d+') + 1 or 0, us)
for i = more_args, #ARGV do
  call('XADD', events, 'MAXLEN', '~', kept_max, string.format('%.0f-0', place), 'e', ARGV[i])
  place = place + 1
end
-- The events of steps are small. What is appended here may be large, so here the size is looked at.
if call('MEMORY', 'USAGE', events) > tonumber(bytes_max) then
  call('XTRIM', events, 'MAXLEN', math.floor(call('XLEN', events) / 2))
end
call('SET', last_batch, batch, 'PX', 600000)
return 1
