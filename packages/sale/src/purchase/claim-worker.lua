-- Claims the worker id of a process that makes order ids, renews the claim, or gives it up.
--
-- KEYS  1 the claim of this worker id
-- ARGV  1 the caller  2 a holder that is known to be dead, or ''  3 milliseconds that the claim is valid; 0 gives it up
-- Returns '' if the claim is (or was) the caller's, otherwise the holder
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] and holder ~= ARGV[2] then return holder end
if ARGV[3] == '0' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3]) end
return ''
