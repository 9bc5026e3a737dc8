-- Frees a fair lock and passes it on.
--
-- ARGV 5 owner, or nothing to free the lock whoever holds it
-- Returns 1 when freed, 0 when the owner no longer had the lock.
local freed
if ARGV[5] then freed = redis.call('HDEL', KEYS[1], ARGV[5]) else freed = redis.call('DEL', KEYS[1]) end
if freed == 1 then passOn() end
return freed
