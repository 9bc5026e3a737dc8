-- Puts a dead letter back at the end of the orders stream, or deletes it.
--
-- KEYS  1 dead-letter stream  2 orders stream
-- ARGV  1 'replay' or 'discard'  2 id of the dead letter  3 channel  4 publish command
-- Returns 1, or 0 if there is no such letter
local found = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])
if #found == 0 then return 0 end
if ARGV[1] == 'replay' then
  local fields = found[1][2]
  -- The original entry, without the fields put in front when it became a dead letter (entry, reason, maybe a cause).
  local order = {unpack(fields, fields[5] == 'cause' and 7 or 5)}
  if #order == 0 then order = {'kind', ''} end
  -- Before the first change, because Redis would not undo one: the user may lack the right to publish.
  redis.call(ARGV[4], ARGV[3], 'placed')
  redis.call('XADD', KEYS[2], '*', unpack(order))
end
redis.call('XDEL', KEYS[1], ARGV[2])
return 1
