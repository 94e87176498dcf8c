-- Keeps a packet that nobody could deal with. Of too many, the oldest go.
--
-- KEYS  packet, packets, job_seq
-- ARGS  prefix, name, content, now, keep_ms, packets_max
local call = redis.call
local time = call('TIME')
local us = now ~= '' and now * 1000 or time[1] * 1000000 + time[2]
local place = string.format('%.0f', math.max((tonumber(call('GET', job_seq)) or 0) + 1, us))
call('SET', job_seq, place)
call('SET', packet, content, 'PX', keep_ms)
call('ZADD', packets, place, name)
call('PEXPIRE', packets, keep_ms)
-- Those whose time is over have lost their content already.
local before = string.format('%.0f', us - keep_ms * 1000)
for _, old in ipairs(call('ZRANGE', packets, '-inf', before, 'BYSCORE')) do call('ZREM', packets, old) end
local over = call('ZCARD', packets) - packets_max
for i = 1, over do
  local oldest = call('ZRANGE', packets, 0, 0)[1]
  call('DEL', prefix .. 'dlq:packet:' .. oldest)
  call('ZREM', packets, oldest)
end
return 1
