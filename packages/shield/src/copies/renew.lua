-- Extends a copy's life, if it has the given version or a later one. The key has not changed since that version, so a
-- later one has the same value.
--
-- KEYS  1 the copy  2 its marker  3 its mark of ownership  4 its newest version
-- ARGV  1 version  2 milliseconds that the marker lives  3 milliseconds that the copy and its newest version
--       live  4 milliseconds that the mark of ownership lives  5 the key that it copies
-- Returns 1 if it was renewed.
local version, key = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+)|(.*)$')
if key ~= ARGV[5] or tonumber(version) < tonumber(ARGV[1]) then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[3], ARGV[4])
redis.call('PEXPIRE', KEYS[4], ARGV[3])
return redis.call('PEXPIRE', KEYS[2], ARGV[2])
