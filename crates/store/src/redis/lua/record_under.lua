-- Appends audit entries to the outbox, if a lock is held. Says 1 or 0.
--
-- KEYS  lock, audit_outbox
-- ARGS  fence, now; then of each entry its origin and its content
local call = redis.call
local time = call('TIME')
local ms = now ~= '' and tonumber(now) or time[1] * 1000 + math.floor(time[2] / 1000)
local is, till = (call('GET', lock) or ''):match('^(%d+)|[^|]*|(%d+)$')
if is ~= fence or ms >= tonumber(till) then return 0 end
for at = more_args, #ARGV, 2 do call('XADD', audit_outbox, '*', 'o', ARGV[at], 'd', ARGV[at + 1]) end
return 1
