-- Removes blobs that have expired, the longest first. Says how many.
--
-- KEYS  ends
-- ARGS  now, limit
local over = redis.call('ZRANGE', ends, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
for _, blob in ipairs(over) do
  redis.call('DEL', blob)
  redis.call('ZREM', ends, blob)
end
return #over
