-- Compares and swaps one value; `0` is the same as none. Says 1 or 0.
--
-- KEYS  value
-- ARGS  before, after
if (redis.call('GET', value) or '0') ~= before then return 0 end
if after == '0' then
  redis.call('DEL', value)
else
  redis.call('SET', value, after, 'PX', 600000)
end
return 1
