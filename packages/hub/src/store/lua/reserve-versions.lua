-- Raises the floor for versions: none below it is issued again.
--
-- KEYS 1 the store's state, a hash
-- ARGV 1 the version
-- Returns the new floor.
local floor = tonumber(redis.call('HGET', KEYS[1], 'versionFloor') or 0)
if tonumber(ARGV[1]) <= floor then return floor end
redis.call('HSET', KEYS[1], 'versionFloor', ARGV[1])
return tonumber(ARGV[1])
