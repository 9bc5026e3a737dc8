-- Changes a rule or the switch, with its version, its place in the line of changes and its audit entry, or does nothing.
--
-- KEYS 1 the rules, a hash by id; 2 the store's state, a hash; 3 the audit, a list
-- ARGV 1 the field: a rule's id, or empty for the switch; 2 the rule as JSON (empty: delete it), or the switch (0 or 1);
--      3 the time of the change in ms, 4 its name, 5 the audit entry as JSON or empty, 6 entries to keep in the audit,
--      7 the audit's head that the entry was chained to, 8 its head with the entry, 9 the newest change that the caller
--      knows of, or empty
-- Returns {version of the rules, the audit's head}. If the line has the change's name, it was made before and nothing is
-- done. {-1, the audit's head} if the audit has another head: nothing is done, and the entry must be chained again. An
-- error if the line lacks the caller's newest change: a store that lost data is restored before it is changed.
local state = redis.call('HMGET', KEYS[2], 'rulesVersion', 'line', 'isOff', 'auditHead')
local version, line = tonumber(state[1] or 0), state[2] or ''
-- Written by hubs of a version without a line of changes.
if line == '' and (version > 0 or state[3] == '1') then line = '1-v' .. version .. ' ' end
local function head() return string.match(' ' .. line, '^.* (%S+) $') or '' end
local audited = state[4] or ''
for id in string.gmatch(line, '%S+') do
  if string.sub(id, string.find(id, '-', 1, true) + 1) == ARGV[4] then return { version, audited } end
end
if ARGV[9] ~= '' and not string.find(' ' .. line, ' ' .. ARGV[9] .. ' ', 1, true) then
  return redis.error_reply('WENTBACK it lost changes, which the hubs write again')
end
if ARGV[5] ~= '' and audited ~= ARGV[7] then return { -1, audited } end
if ARGV[1] == '' then
  redis.call('HSET', KEYS[2], 'isOff', ARGV[2])
elseif ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  version = version + 1
elseif redis.call('HDEL', KEYS[1], ARGV[1]) == 1 then
  version = version + 1
else
  return { version, audited }
end
-- Clocks of hubs differ; times in the line only go forward.
local last = tonumber(string.match(head(), '^(%d+)') or 0)
line = line .. string.format('%.0f-%s ', math.max(tonumber(ARGV[3]), last + 1), ARGV[4])
local _, count = string.gsub(line, ' ', '')
for _ = 101, count do line = string.gsub(line, '^%S+ ', '', 1) end
redis.call('HSET', KEYS[2], 'rulesVersion', version, 'line', line)
if ARGV[5] ~= '' then
  redis.call('LPUSH', KEYS[3], ARGV[5])
  redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[6]) - 1)
  redis.call('HSET', KEYS[2], 'auditHead', ARGV[8])
  audited = ARGV[8]
end
return { version, audited }
