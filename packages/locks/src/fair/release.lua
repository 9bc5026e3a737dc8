-- Frees a fair lock and passes it on.
--
-- ARGV 4 owner, or nothing to free it whoever holds it
-- Returns 1 when freed, 0 when the lock was not the owner's any more.
local freed
if ARGV[4] then freed = redis.call('HDEL', KEYS[1], ARGV[4]) else freed = redis.call('DEL', KEYS[1]) end
if freed == 1 then passOn() end
return freed
