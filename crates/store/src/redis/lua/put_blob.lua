-- Stores a blob if none is there that has not expired. KEYS: the blob. Says 1 or 0.
local prefix, now, value, expires_at, ttl = unpack(ARGV, 1, 5)
local ends = redis.call('ZSCORE', prefix .. 'blob:ends', KEYS[1])
local is_over = ends and tonumber(ends) <= tonumber(now)
if redis.call('EXISTS', KEYS[1]) == 1 and not is_over then return 0 end
redis.call('SET', KEYS[1], value, 'PX', ttl)
redis.call('ZADD', prefix .. 'blob:ends', expires_at, KEYS[1])
return 1
