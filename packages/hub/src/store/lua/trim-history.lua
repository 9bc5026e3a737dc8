-- Forgets the oldest events that happened before a moment.
--
-- KEYS 1 the history, a list, newest first
-- ARGV 1 the moment, 2 events to forget at most
-- Returns how many were forgotten.
local forgotten = 0
while forgotten < tonumber(ARGV[2]) do
  local oldest = redis.call('LINDEX', KEYS[1], -1)
  if not oldest or cjson.decode(oldest).at >= tonumber(ARGV[1]) then break end
  redis.call('RPOP', KEYS[1])
  forgotten = forgotten + 1
end
return forgotten
