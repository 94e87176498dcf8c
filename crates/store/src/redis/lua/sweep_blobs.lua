-- Removes blobs that have expired, the longest first. KEYS: blob:ends. Says how many.
local now, limit = ARGV[1], ARGV[2]
local over = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
for _, blob in ipairs(over) do
  redis.call('DEL', blob)
  redis.call('ZREM', KEYS[1], blob)
end
return #over
