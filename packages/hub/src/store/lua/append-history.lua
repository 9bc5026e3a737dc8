-- Appends a batch of events once, even if a writer that got no answer sends it again.
--
-- KEYS 1 the history, a list; 2 the newest batch of this writer
-- ARGV 1 the batch's number, 2 events to keep, then the events as JSON, oldest first
-- Returns 1 if they were appended, 0 if they already had been.
if tonumber(redis.call('GET', KEYS[2]) or 0) >= tonumber(ARGV[1]) then return 0 end
for index = 3, #ARGV do redis.call('LPUSH', KEYS[1], ARGV[index]) end
redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[2]) - 1)
redis.call('SET', KEYS[2], ARGV[1], 'EX', 86400)
return 1
