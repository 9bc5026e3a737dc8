-- Removes a reader; the last one wakes the writers.
--
-- KEYS 1 readers
-- ARGV 1 owner, 2 channel, 3 PUBLISH or SPUBLISH
-- Returns 1 when removed, 0 when its lease had expired.
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) == 0 then redis.call(ARGV[3], ARGV[2], '0') end
return ends and tonumber(ends) > now and 1 or 0
