-- Fills a store with the rules of a file, if it never had a rule and the switch was never used. These rules have time 0, so
-- anything that a user has ever done is newer.
--
-- KEYS 1 the rules, a hash by id; 2 the store's state, a hash
-- ARGV 1 the change's name, then an id and a rule each
-- Returns 1 if it was written, 0 if the store was not empty.
local state = redis.call('HMGET', KEYS[2], 'rulesVersion', 'line', 'isOff')
if tonumber(state[1] or 0) > 0 or (state[2] or '') ~= '' or state[3] == '1' then return 0 end
for index = 2, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[index], ARGV[index + 1]) end
redis.call('HSET', KEYS[2], 'rulesVersion', (#ARGV - 1) / 2, 'line', '0-' .. ARGV[1] .. ' ')
return 1
