-- A writer keeps waiting for readers, or stops: then the readers that were held back may try again.
--
-- KEYS 1 readers, 2 waiting writer
-- ARGV 1 owner, 2 ms to hold new readers back, or 0 to stop, 3 channel, 4 PUBLISH or SPUBLISH
if ARGV[2] ~= '0' then
  if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2]) end
elseif redis.call('GET', KEYS[2]) == ARGV[1] then
  redis.call('DEL', KEYS[2])
  redis.call(ARGV[4], ARGV[3], '0')
end
return 1
