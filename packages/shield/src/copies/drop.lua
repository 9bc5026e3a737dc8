-- Removes one copy, if it is ours. Its version stays for a moment, for pictures that are still on their way.
--
-- KEYS  1 the copy  2 its marker  3 its mark of ownership  4 its newest version
-- ARGV  1 the key that it copies  2 milliseconds that the version stays
-- Returns 1 where it was removed.
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[4], ARGV[2])
return redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
