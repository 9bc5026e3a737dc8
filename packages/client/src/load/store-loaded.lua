-- Writes what a loader returned, if the loader still has the lease: a slow loader must not overwrite a newer value.
--
-- KEYS  1 the key  2 the lease  3 the note that there is no value
-- ARGV  1 the loader's token  2 '1' if there is a value  3 the value  4 its TTL in milliseconds (0 = no expiry)
-- Returns 1 if it was written, 0 if the lease had ended.
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
if ARGV[2] == '1' then
  if ARGV[4] == '0' then redis.call('SET', KEYS[1], ARGV[3]) else redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4]) end
  redis.call('DEL', KEYS[3])
elseif ARGV[4] ~= '0' then
  redis.call('SET', KEYS[3], '1', 'PX', ARGV[4])
end
redis.call('DEL', KEYS[2])
return 1
