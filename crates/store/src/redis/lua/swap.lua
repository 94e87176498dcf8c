-- Compares and swaps one value; `0` is the same as none. KEYS: the value. Says 1 or 0.
if (redis.call('GET', KEYS[1]) or '0') ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', 600000)
end
return 1
