-- Stores a blob if none is there that has not expired. Says 1 or 0.
--
-- KEYS  blob
-- ARGS  prefix, now, value, expires_at, ttl_ms
local ends = redis.call('ZSCORE', prefix .. 'blob:ends', blob)
local is_over = ends and tonumber(ends) <= tonumber(now)
if redis.call('EXISTS', blob) == 1 and not is_over then return 0 end
redis.call('SET', blob, value, 'PX', ttl_ms)
redis.call('ZADD', prefix .. 'blob:ends', expires_at, blob)
return 1
