-- Lets a copy live on, if it still is of that version.
--
-- KEYS  1 the copy  2 its marker  3 its mark of ownership
-- ARGV  1 the marker's whole text  2 milliseconds that the marker lives  3 milliseconds that the copy lives
--       4 milliseconds that the mark of ownership lives
-- Returns 1 where it was renewed.
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[3], ARGV[4])
return redis.call('PEXPIRE', KEYS[2], ARGV[2])
