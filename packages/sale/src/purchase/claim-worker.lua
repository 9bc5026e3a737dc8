-- Takes, renews or gives up the worker id of a source of order ids.
--
-- KEYS  1 the claim of this worker id
-- ARGV  1 who asks  2 a holder that is known to be dead, or ''  3 milliseconds that the claim stands; 0 gives it up
-- Returns '' where the claim is (or was) of who asks, else the holder
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] and holder ~= ARGV[2] then return holder end
if ARGV[3] == '0' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3]) end
return ''
