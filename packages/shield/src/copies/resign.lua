-- Lets another process take over from one that no longer follows a key.
--
-- KEYS  1 the refresher's key
-- ARGV  1 the process
-- Returns 1 where another process follows the key, 0 where none does now.
local refresher = redis.call('GET', KEYS[1])
if refresher and refresher ~= ARGV[1] then return 1 end
redis.call('DEL', KEYS[1])
return 0
