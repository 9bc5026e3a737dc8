-- Removes one copy, if it is ours.
--
-- KEYS  1 the copy  2 its marker
-- ARGV  1 the key that it copies
-- Returns 1 where it was removed.
local marker = redis.call('GET', KEYS[2])
if not marker or string.match(marker, '^%d+|(.*)$') ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1], KEYS[2])
