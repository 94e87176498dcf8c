-- Removes blobs. Says how many had not expired.
--
-- KEYS  ; the blobs
-- ARGS  prefix, now
local gone = 0
for _, blob in ipairs(KEYS) do
  local ends = redis.call('ZSCORE', prefix .. 'blob:ends', blob)
  local is_over = ends and tonumber(ends) <= tonumber(now)
  if redis.call('DEL', blob) == 1 and not is_over then gone = gone + 1 end
  redis.call('ZREM', prefix .. 'blob:ends', blob)
end
return gone
