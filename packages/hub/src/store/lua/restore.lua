-- Writes rules and switch again into a store that lost everything. Of several hubs that see the loss, the first does it.
--
-- KEYS 1 the rules, a hash by id; 2 the store's state, a hash
-- ARGV 1 the new epoch, 2 the version of the rules, 3 the switch (0 or 1), then an id and a rule each
-- Returns 1 where it was written, 0 where the store has rules, or had some.
if tonumber(redis.call('HGET', KEYS[2], 'rulesVersion') or 0) > 0 then return 0 end
redis.call('HSETNX', KEYS[2], 'epoch', ARGV[1])
redis.call('HSET', KEYS[2], 'rulesVersion', ARGV[2], 'isOff', ARGV[3])
for index = 4, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[index], ARGV[index + 1]) end
return 1
