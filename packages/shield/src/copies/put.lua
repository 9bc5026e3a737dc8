-- Writes one copy, if it is ours and older than what comes. Without a marker of ours an existing key of that name is
-- somebody's real key, and nothing is touched.
--
-- KEYS  1 the copy  2 its marker
-- ARGV  1 version  2 the key that it copies  3 milliseconds that the marker lives  4 milliseconds that the copy lives
--       5 the dump, or empty where there is no such key
-- Returns 'put', 'newer' (the copy is as new or newer; its marker lives on), or 'foreign'.
local marker = redis.call('GET', KEYS[2])
if not marker and redis.call('EXISTS', KEYS[1]) == 1 then return 'foreign' end
if marker then
  local version, key = string.match(marker, '^(%d+)|(.*)$')
  if key ~= ARGV[2] then return 'foreign' end
  if tonumber(version) >= tonumber(ARGV[1]) then return 'newer' end
end
if ARGV[5] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('RESTORE', KEYS[1], ARGV[4], ARGV[5], 'REPLACE')
end
redis.call('SET', KEYS[2], ARGV[1] .. '|' .. ARGV[2], 'PX', ARGV[3])
return 'put'
