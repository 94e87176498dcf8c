-- Keeps a packet that nobody could deal with. Of too many, the oldest go.
--
-- KEYS  dlq:packet:<name>, dlq:packets, job:seq
local prefix, name, packet, now, keep_ms, most = unpack(ARGV, 1, 6)
local call = redis.call
local time = call('TIME')
local us = now ~= '' and now * 1000 or time[1] * 1000000 + time[2]
local place = string.format('%.0f', math.max((tonumber(call('GET', KEYS[3])) or 0) + 1, us))
call('SET', KEYS[3], place)
call('SET', KEYS[1], packet, 'PX', keep_ms)
call('ZADD', KEYS[2], place, name)
call('PEXPIRE', KEYS[2], keep_ms)
-- Those whose time is over have lost their content already.
local before = string.format('%.0f', us - keep_ms * 1000)
for _, old in ipairs(call('ZRANGE', KEYS[2], '-inf', before, 'BYSCORE')) do call('ZREM', KEYS[2], old) end
local over = call('ZCARD', KEYS[2]) - most
for i = 1, over do
  local oldest = call('ZRANGE', KEYS[2], 0, 0)[1]
  call('DEL', prefix .. 'dlq:packet:' .. oldest)
  call('ZREM', KEYS[2], oldest)
end
return 1
