-- Removes one copy, if it is ours.
--
-- KEYS  1 the copy  2 its marker  3 its mark of ownership
-- ARGV  1 the key that it copies
-- Returns 1 if it was removed.
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
