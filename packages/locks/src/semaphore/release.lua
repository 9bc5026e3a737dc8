-- Gives a permit back and wakes a waiter.
--
-- KEYS 1 permits taken
-- ARGV 1 owner, 2 channel, 3 PUBLISH or SPUBLISH
-- Returns 1 when given back, 0 when it had expired.
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not ends then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call(ARGV[3], ARGV[2], '0')
return tonumber(ends) > now and 1 or 0
