-- Removes blobs that have expired, the longest first. Says how many.
local prefix, now, limit = ARGV[1], ARGV[2], ARGV[3]
local over = redis.call('ZRANGE', prefix .. 'blob:ends', '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
for _, blob in ipairs(over) do
  redis.call('DEL', blob)
  redis.call('ZREM', prefix .. 'blob:ends', blob)
end
return #over
