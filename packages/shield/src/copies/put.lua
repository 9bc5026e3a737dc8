-- Writes one copy, if it is ours and older than the new one. An existing key with that name and without our mark of
-- ownership belongs to the application and is not touched.
--
-- KEYS  1 the copy  2 its marker  3 its mark of ownership  4 its newest version
-- ARGV  1 version  2 the key that it copies  3 milliseconds that the marker lives  4 milliseconds that the copy and
--       its newest version live  5 milliseconds that the mark of ownership lives, more than the copy  6 the dump, or empty
--       if there is no such key
-- Returns 'put', 'newer' (the copy is as new or newer; its marker lives on), 'late' (a newer one was here), or 'foreign'.
local owner = redis.call('GET', KEYS[3])
if owner and owner ~= ARGV[2] then return 'foreign' end
if not owner and redis.call('EXISTS', KEYS[1]) == 1 then return 'foreign' end
local marker = redis.call('GET', KEYS[2])
if marker then
  local version, key = string.match(marker, '^(%d+)|(.*)$')
  if key ~= ARGV[2] then return 'foreign' end
  if tonumber(version) >= tonumber(ARGV[1]) then return 'newer' end
end
-- The marker of a newer picture may have expired, or been removed with its copy, while this one was on its way.
if tonumber(redis.call('GET', KEYS[4]) or 0) > tonumber(ARGV[1]) then return 'late' end
if ARGV[6] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('RESTORE', KEYS[1], ARGV[4], ARGV[6], 'REPLACE')
end
redis.call('SET', KEYS[2], ARGV[1] .. '|' .. ARGV[2], 'PX', ARGV[3])
redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[5])
redis.call('SET', KEYS[4], ARGV[1], 'PX', ARGV[4])
return 'put'
