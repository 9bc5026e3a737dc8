-- Gives a permit back and wakes a waiter.
--
-- KEYS 1 permits taken, 2 channel
-- ARGV 1 owner, 2 PUBLISH or SPUBLISH
-- Returns 1 when given back, 0 when it had expired.
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not ends then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call(ARGV[2], KEYS[2], '0')
return tonumber(ends) > now and 1 or 0
