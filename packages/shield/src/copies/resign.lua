-- Lets another process take over from one that can no longer follow a key.
--
-- KEYS  1 the refresher's key
-- ARGV  1 the process
-- Returns 1 if it was the refresher.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
