-- Makes one process the refresher of a key, or keeps it in that role.
--
-- KEYS  1 the refresher's key
-- ARGV  1 the process  2 milliseconds for which it stays the refresher
-- Returns 1 if the process is the refresher.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
