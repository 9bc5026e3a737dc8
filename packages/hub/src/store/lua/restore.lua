-- Restores rules and switch in a store that lost some or all of its data. If several hubs notice it, the first one does it.
--
-- KEYS 1 the rules, a hash by id; 2 the store's state, a hash
-- ARGV 1 the newest change that the caller saw in the store, 2 the new line, 3 the version of the rules, 4 the switch (0 or
--      1), then an id and a rule each
-- Returns 1 if it was written, 0 if the store has changed since the caller looked.
local state = redis.call('HMGET', KEYS[2], 'rulesVersion', 'line', 'isOff')
local version, line = tonumber(state[1] or 0), state[2] or ''
if line == '' and (version > 0 or state[3] == '1') then line = '1-v' .. version .. ' ' end
if (string.match(' ' .. line, '^.* (%S+) $') or '') ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[2], 'line', ARGV[2], 'rulesVersion', ARGV[3], 'isOff', ARGV[4])
for index = 5, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[index], ARGV[index + 1]) end
return 1
