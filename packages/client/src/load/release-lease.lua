-- Releases a lease, if it is still ours.
--
-- KEYS  1 the lease
-- ARGV  1 the token
-- Returns 1 if it was ours.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
